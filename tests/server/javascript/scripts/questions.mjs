// A run that asks is answered by another run: one question, two by their ids, and one that is answered twice.

import { all, client, newThread, refused, tell } from "./told.mjs";

const thread = await newThread();
const asked = await all(
  client.runs.stream(thread, "asking", { input: { goal: "sea" }, streamMode: ["values", "updates"] }),
);
const waiting = await client.threads.get(thread);
const [run] = await client.runs.list(thread);
const answered = await all(
  client.runs.stream(thread, "asking", { command: { resume: "Rome" }, streamMode: ["values", "updates"] }),
);
const again = await refused(() => client.runs.wait(thread, "asking", { command: { resume: "Oslo" } }));

const two = await newThread();
const both = await client.runs.wait(two, "both", { input: { goal: "sea" } });
const ids = Object.fromEntries(both.__interrupt__.map((one) => [one.value.question ?? one.value, one.id]));
const unclear = await refused(() => client.runs.wait(two, "both", { command: { resume: "Rome" } }));
const clear = await client.runs.wait(two, "both", {
  command: { resume: { [ids["Where?"]]: "Rome", [ids["When?"]]: "May" } },
});

const stopped = await newThread();
const before = await client.runs.wait(stopped, "steps", { input: { goal: "sea" }, interruptBefore: ["last"] });
const after = await client.runs.wait(stopped, "steps", { input: null });

tell({
  asked: asked.map((part) => [part.event, part.data]),
  waiting: { status: waiting.status, interrupts: Object.values(waiting.interrupts).flat() },
  run: run.status,
  answered: answered.map((part) => [part.event, part.data]),
  again,
  unclear,
  clear: clear.answers,
  before: before.steps,
  after: after.steps,
});
