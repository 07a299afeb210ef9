// `useStream` of @langchain/react on a thread with a past: it works until the new run is over, or is stopped.

import { writeFileSync } from "node:fs";
import { useStream } from "@langchain/react";
import { chatOf, leave, mount, until } from "./page.mjs";
import { client, given, newThread, tell } from "./told.mjs";

const open = `${given.folder}/open`;
const shut = `${given.folder}/shut`;
writeFileSync(open, "");
const seen = {};

const thread = await newThread();
await client.runs.wait(thread, "gated", { input: { gate: open } });

const created = [];
const completed = [];
const Page = chatOf(useStream, {
  apiUrl: given.url,
  assistantId: "gated",
  onCreated: (run) => created.push(run.runId),
  onCompleted: (run) => completed.push(run.reason),
});

// The new run stands before a gate: the end of the run before it is not its end.
const page = mount(Page, { threadId: thread });
await until(() => Page.stream?.values.steps?.length === 3, "its past is there");
let isOver = false;
Page.stream.submit({ gate: shut }).then(() => (isOver = true));
await until(() => Page.stream?.values.steps?.length === 4, "the new run has made its first step");
seen.before = { isOver, shown: page.text("output")[0] };
writeFileSync(shut, "");
await until(() => isOver, "the new run is over");
await until(() => Page.stream?.values.steps?.length === 6, "its last step is there");
seen.after = page.text("output")[0];

// Another one is stopped before a gate that nobody opens in time.
const never = `${given.folder}/never`;
Page.stream.submit({ gate: never });
await until(() => Page.stream?.values.steps?.length === 7, "the third run has made its first step");
await Page.stream.stop();
await until(() => page.text("output")[0] === "rests", "it is stopped");
const stopped = await client.runs.get(thread, created[1]);
writeFileSync(never, "");
seen.stopped = stopped.status;
seen.completed = completed[0];
seen.created = created.length;

page.unmount();
await leave();
tell(seen);
process.exit(0);
