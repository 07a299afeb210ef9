// What Agent Chat UI asks for, in its order, without its looks.

import { all, client, given, tell } from "./told.mjs";

const asked = { streamMode: ["values", "messages-tuple", "custom"], streamSubgraphs: true, streamResumable: true };
const seen = { info: (await fetch(`${given.url}/info`)).ok };

const { thread_id: thread } = await client.threads.create();
const first = await all(
  client.runs.stream(thread, "mails", {
    ...asked,
    input: { messages: [{ type: "human", content: "tell ada", id: "h1" }], context: {} },
    onDisconnect: "continue",
  }),
);
seen.words = first.filter((part) => part.event === "messages").map((part) => part.data[0].content);
seen.asked = first.findLast((part) => part.event === "values").data.__interrupt__[0].value.action_requests[0].name;
const [head] = await client.threads.getHistory(thread, { limit: 10 });
seen.inHistory = head.tasks.flatMap((task) => task.interrupts).length;

const listed = await client.threads.search({ metadata: { graph_id: "mails" }, limit: 100 });
seen.listed = listed.some((one) => one.thread_id === thread);

await all(
  client.runs.stream(thread, "mails", {
    ...asked,
    input: {},
    command: { resume: { decisions: [{ type: "edit", edited_action: { name: "send_mail", args: { to: "bob" } } }] } },
  }),
);
seen.edited = (await client.threads.getState(thread)).values.decision.decisions[0].edited_action.args;

// "Mark as resolved" ends another one without an answer.
const { thread_id: other } = await client.threads.create();
await client.runs.wait(other, "mails", { input: { messages: [{ type: "human", content: "tell ada" }] } });
await all(client.runs.stream(other, "mails", { ...asked, command: { goto: "__end__" } }));
seen.resolved = (await client.threads.get(other)).status;
tell(seen);
