// With API keys: those of an owner open what is theirs, and nothing else.

import { Client } from "@langchain/langgraph-sdk";
import { given, refused, tell } from "./told.mjs";

const ada = new Client({ apiUrl: given.url, apiKey: given.ada });
const bob = new Client({ apiUrl: given.url, apiKey: given.bob });
const nobody = new Client({ apiUrl: given.url, apiKey: null });

const { thread_id: thread } = await ada.threads.create();
const counted = await ada.runs.wait(thread, "counting", { input: {} });
tell({
  counted: counted.count,
  found: (await ada.threads.search()).length,
  others: (await bob.threads.search()).length,
  foreign: await refused(() => bob.threads.get(thread)),
  onlyReads: await refused(() => bob.runs.wait(null, "counting", { input: {} })),
  unknown: await refused(() => nobody.threads.search()),
});
