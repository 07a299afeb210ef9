// Runs: created, waited for, joined, listed, deleted; one that fails; several at once without a thread.

import { client, newThread, refused, tell } from "./told.mjs";

const thread = await newThread();
let announced;
const created = await client.runs.create(thread, "steps", {
  input: { goal: "sea" },
  metadata: { by: "js" },
  context: { colour: "green" },
  onRunCreated: (run) => (announced = run),
});
const joined = await client.runs.join(thread, created.run_id);
const got = await client.runs.get(thread, created.run_id);
const waited = await client.runs.wait(thread, "steps", { input: { goal: "moon" }, durability: "exit" });
const list = await client.runs.list(thread, { limit: 5 });
const successes = await client.runs.list(thread, { status: "success", select: ["run_id", "status"] });
const deleted = (await client.runs.delete(thread, created.run_id)) ?? null;
const gone = await refused(() => client.runs.get(thread, created.run_id));

const failed = await refused(() => client.runs.wait(null, "failing", { input: {} }));
const failure = await client.runs.wait(null, "failing", { input: {}, raiseError: false });

let stateless;
const alone = await client.runs.wait(null, "steps", {
  input: { goal: "sea" },
  onRunCreated: (run) => (stateless = run),
});
const batch = await client.runs.createBatch([
  { assistantId: "steps", input: { goal: "one" } },
  { assistantId: "steps", input: { goal: "two" } },
]);

tell({
  announced: announced.run_id === created.run_id && announced.thread_id === thread,
  created: { status: created.status, metadata: created.metadata.by },
  joined: joined.steps,
  got: got.status,
  waited: waited.steps,
  list: list.map((run) => run.run_id === created.run_id),
  successes: successes.map((run) => Object.keys(run).sort()),
  deleted,
  gone,
  failed,
  failure: failure.__error__,
  alone: alone.steps,
  stateless: { hasRun: Boolean(stateless.run_id), thread: stateless.thread_id ?? null },
  batch: batch.length,
});
