// Runs are cancelled: by hand, with and without waiting, several at once, taken back, or because their client has left.

import { writeFileSync } from "node:fs";
import { client, given, newThread, refused, tell } from "./told.mjs";

const gate = `${given.folder}/never`;

// Starts a run that stands before a gate.
async function standing(options = {}) {
  const thread = await newThread();
  const leaving = new AbortController();
  const stream = client.runs.stream(thread, "gated", {
    input: { gate },
    streamMode: ["custom"],
    signal: leaving.signal,
    onDisconnect: "continue",
    ...options,
  });
  for await (const part of stream) if (part.data === "before the gate") break;
  const [run] = await client.runs.list(thread);
  return { thread, run: run.run_id, leave: () => leaving.abort() };
}

async function statusOf(one) {
  return (await client.runs.get(one.thread, one.run)).status;
}

const seen = {};
const one = await standing();
seen.cancelled = (await client.runs.cancel(one.thread, one.run)) ?? null;
seen.status = await statusOf(one);
seen.again = (await refused(() => client.runs.cancel(one.thread, one.run))).status;

const two = await standing();
seen.waited = await client.runs.cancel(two.thread, two.run, true);

const three = await standing();
await client.runs.cancel(three.thread, three.run, true, "rollback");
seen.takenBack = (await refused(() => client.runs.get(three.thread, three.run))).status;

const four = await standing();
seen.many = (await client.runs.cancelMany({ threadId: four.thread, runIds: [four.run] })) ?? null;
seen.manyStatus = await statusOf(four);

// It is cancelled because its client has left.
const five = await standing({ onDisconnect: "cancel" });
five.leave();
for (seen.left = "running"; seen.left === "running"; ) seen.left = await statusOf(five);

// One run at a time: another is refused, put behind, or takes its place.
const six = await standing();
seen.reject = await refused(() => client.runs.create(six.thread, "gated", { input: { gate }, multitaskStrategy: "reject" }));
const behind = await client.runs.create(six.thread, "gated", { input: { gate }, multitaskStrategy: "enqueue" });
seen.behind = behind.status;
await client.runs.cancel(six.thread, six.run);
writeFileSync(gate, "");
await client.runs.join(six.thread, behind.run_id);
seen.afterwards = (await client.runs.get(six.thread, behind.run_id)).status;
tell(seen);
