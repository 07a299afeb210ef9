// A run in all stream modes, with the graph inside it; a chat word by word, in both modes of messages; tools.

import { all, client, newThread, tell } from "./told.mjs";

const MODES = ["values", "updates", "custom", "tasks", "checkpoints", "debug", "events", "messages", "messages-tuple"];
const hello = { messages: [{ type: "human", content: "hello", id: "h1" }] };

const everything = await all(
  client.runs.stream(null, "nested", { input: { goal: "sea" }, streamMode: MODES, streamSubgraphs: true }),
);
const tuples = await all(
  client.runs.stream(await newThread(), "chat", { input: hello, streamMode: ["messages-tuple", "values"] }),
);
const growing = await all(client.runs.stream(null, "chat", { input: hello, streamMode: "messages" }));
const tools = await all(client.runs.stream(null, "tooling", { input: hello, streamMode: ["tools"] }));
const failing = await all(client.runs.stream(null, "failing", { input: {}, streamMode: "updates" }));

tell({ everything, tuples, growing, tools, failing });
