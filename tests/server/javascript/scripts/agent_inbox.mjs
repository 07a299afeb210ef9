// What Agent Inbox asks for, in its order: the threads that wait, an answer, and "ignore".

import { all, client, given, newThread, tell } from "./told.mjs";

async function asking() {
  const thread = await newThread({ metadata: { inbox: given.folder } });
  await client.runs.wait(thread, "mails", { input: { messages: [{ type: "human", content: "tell ada" }] } });
  return thread;
}

const seen = { info: await (await fetch(`${given.url}/info`)).json() };
const [answered, ignored] = [await asking(), await asking()];
const search = { status: "interrupted", limit: 10, offset: 0, metadata: { inbox: given.folder } };
const waiting = await client.threads.search(search);
seen.waiting = waiting.length;
const [interrupt] = Object.values(waiting.find((one) => one.thread_id === answered).interrupts).flat();
seen.asks = Object.keys(interrupt.value).sort();

const events = await all(
  client.runs.stream(answered, "mails", { command: { resume: [{ type: "accept", args: null }] }, streamMode: "events" }),
);
seen.nodes = [...new Set(events.map((part) => part.data.metadata?.langgraph_node).filter(Boolean))];
seen.answered = (await client.threads.get(answered)).status;

await client.threads.updateState(ignored, { values: null, asNode: "__end__" });
seen.ignored = (await client.threads.get(ignored)).status;
seen.left = (await client.threads.search(search)).length;
tell(seen);
