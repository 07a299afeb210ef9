// A run is left in the middle, and joined again behind the last event that was seen, at its beginning, or at its end.

import { writeFileSync } from "node:fs";
import { all, client, given, newThread, refused, tell } from "./told.mjs";

const gate = `${given.folder}/gate`;
const thread = await newThread();
const modes = ["values", "custom"];
const leaving = new AbortController();
const seen = [];
let run;
const stream = client.runs.stream(thread, "gated", {
  input: { gate },
  streamMode: modes,
  streamResumable: true,
  onDisconnect: "continue",
  onRunCreated: (created) => (run = created.run_id),
  signal: leaving.signal,
});
for await (const part of stream) {
  seen.push(part);
  if (part.data === "before the gate") break;
}
leaving.abort();

const behind = all(client.runs.joinStream(thread, run, { lastEventId: seen.at(-1).id, streamMode: modes }));
const whole = all(client.runs.joinStream(thread, run, { lastEventId: "-1", streamMode: modes }));
const values = all(client.runs.joinStream(thread, run, { streamMode: "values" }));
writeFileSync(gate, "");
const rest = await behind;
const everything = await whole;
const later = await all(client.runs.joinStream(thread, run, { lastEventId: "-1" }));

tell({
  left: seen.map((part) => part.event),
  rest: rest.map((part) => part.event),
  isWhole: JSON.stringify([...seen, ...rest]) === JSON.stringify(everything),
  isSameLater: JSON.stringify(everything) === JSON.stringify(later),
  values: [...new Set((await values).map((part) => part.event))],
  run: (await client.runs.get(thread, run)).status,
  strange: await refused(() => all(client.runs.joinStream(thread, run, { lastEventId: "what?" }))),
});
