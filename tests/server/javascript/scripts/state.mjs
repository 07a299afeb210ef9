// The state of a thread and its past: read, changed by hand, and gone on with from an older point.

import { client, newThread, tell } from "./told.mjs";

const thread = await newThread();
await client.runs.wait(thread, "steps", { input: { goal: "sea" } });
const head = await client.threads.getState(thread);
const history = await client.threads.getHistory(thread, { limit: 10 });
const older = history.find((state) => state.next.includes("last"));

const fork = await client.runs.wait(thread, "steps", { checkpoint: older.checkpoint });
const written = await client.threads.updateState(thread, { values: { goal: "moon" }, asNode: "last" });

const paused = await newThread();
await client.runs.wait(paused, "nested", { input: { goal: "sea" } });
const inside = await client.threads.getState(paused, null, { subgraphs: true });
await client.threads.updateState(paused, { values: null, asNode: "__end__" });

tell({
  head,
  nexts: history.map((state) => state.next),
  one: (await client.threads.getHistory(thread, { limit: 1 })).length,
  before: (await client.threads.getHistory(thread, { before: older.checkpoint, limit: 1 }))[0].next,
  bySource: (await client.threads.getHistory(thread, { metadata: { source: "input" } })).length,
  byId: (await client.threads.getState(thread, older.checkpoint.checkpoint_id)).next,
  byCheckpoint: (await client.threads.getState(thread, older.checkpoint)).next,
  fork: fork.steps,
  written: written.checkpoint.thread_id === thread,
  goal: (await client.threads.getState(thread)).values.goal,
  inside: inside.tasks.map((task) => ({ name: task.name, next: task.state?.next, asks: task.interrupts.length })),
  resolved: { status: (await client.threads.get(paused)).status, next: (await client.threads.getState(paused)).next },
});
