// A run, or its thread, is streamed while the server goes away and comes back: the client reconnects by itself.

import { client, given, newThread, tell } from "./told.mjs";

const thread = await newThread();
const run = { input: { gate: `${given.folder}/gate` }, streamMode: ["values", "custom"] };
if (given.what === "thread") await client.runs.create(thread, "gated", run);
const stream =
  given.what === "thread"
    ? client.threads.joinStream(thread, { lastEventId: "-" })
    : client.runs.stream(thread, "gated", run);

const seen = [];
for await (const part of stream) {
  seen.push(part);
  if (part.data === "before the gate") tell({ isThere: true });
  if (part.data.status === "run_done") break;
}
const [{ status }] = await client.runs.list(thread);
tell({ events: seen.map((part) => part.event), ids: seen.map((part) => part.id), status });
process.exit(0);
