// `useStream` of @langchain/langgraph-sdk/react, on which Agent Chat UI is built: words, a question, an edit, a reload
// in the middle of a run, and a stop.

import { writeFileSync } from "node:fs";
import { useStream } from "@langchain/langgraph-sdk/react";
import { chatOf, leave, mount, until } from "./page.mjs";
import { client, given, newThread, tell } from "./told.mjs";

const seen = {};
const options = { apiUrl: given.url, fetchStateHistory: true };
const rests = (page) => page.text("output")[0] === "rests";

// A chat, and a message that is written anew: its thread goes on from the point before it.
let thread;
const Chat = chatOf(useStream, { ...options, assistantId: "chat", onThreadId: (id) => (thread = id) });
const chat = mount(Chat);
await until(() => Chat.stream, "it is there");
Chat.stream.submit({ messages: [{ type: "human", content: "hello" }] }, { streamSubgraphs: true });
await until(() => chat.text("li").includes("ai: You said hello") && rests(chat), "it has answered");
seen.said = chat.text("li");
await until(() => Chat.stream.getMessagesMetadata(Chat.stream.messages[0])?.firstSeenState, "its history is there");
const { parent_checkpoint: checkpoint } = Chat.stream.getMessagesMetadata(Chat.stream.messages[0]).firstSeenState;
Chat.stream.submit({ messages: [{ type: "human", content: "goodbye" }] }, { checkpoint });
await until(() => chat.text("li").includes("ai: You said goodbye") && rests(chat), "it has answered the other");
seen.edited = chat.text("li");
seen.named = Boolean(thread);
chat.unmount();

// A tale, of which the first words are shown before the others are told.
const pause = `${given.folder}/tale`;
const Tales = chatOf(useStream, { ...options, assistantId: "tales" });
const tale = mount(Tales);
await until(() => Tales.stream, "it is there");
Tales.stream.submit({ messages: [{ type: "human", content: pause }] });
await until(() => tale.text("li")[1]?.startsWith("ai: Once upon"), "its first words are there");
seen.beginning = tale.text("li")[1];
writeFileSync(pause, "");
await until(() => tale.text("li")[1] === "ai: Once upon a time" && rests(tale), "it is told");
tale.unmount();

// A question, in the values and in the head of the history; its answer is another run.
const Mails = chatOf(useStream, { ...options, assistantId: "mails", threadId: await newThread() });
const mails = mount(Mails);
await until(() => Mails.stream && !Mails.stream.isThreadLoading, "it is there");
Mails.stream.submit({ messages: [{ type: "human", content: "tell ada" }] });
await until(() => mails.text("blockquote").length && rests(mails), "it asks");
seen.asked = Mails.stream.interrupt.value;
Mails.stream.submit(undefined, { command: { resume: { decisions: [{ type: "reject", message: "no" }] } } });
await until(() => mails.text("li").includes("ai: It is done") && rests(mails), "it has gone on");
await until(() => mails.text("blockquote").length === 0, "nothing is asked");
seen.decision = Mails.stream.values.decision;
mails.unmount();

// The page is left in the middle of a run, and loaded again: the same run goes on being shown.
const gate = `${given.folder}/gate`;
const place = await newThread();
const Gated = chatOf(useStream, { ...options, assistantId: "gated", threadId: place, reconnectOnMount: true });
const left = mount(Gated);
await until(() => Gated.stream && !Gated.stream.isThreadLoading, "it is there");
Gated.stream.submit({ gate }, { onDisconnect: "continue", streamResumable: true });
await until(() => Gated.stream?.values.steps?.length === 1, "its first step is there");
seen.kept = window.sessionStorage.getItem(`lg:stream:${place}`);
seen.run = (await client.runs.list(place))[0].run_id;
left.unmount();

const back = mount(Gated);
await until(() => Gated.stream?.values.steps?.length === 1 && Gated.stream.isLoading, "it is shown again");
writeFileSync(gate, "");
await until(() => Gated.stream?.values.steps?.length === 3 && rests(back), "it has come to its end");
seen.rejoined = Gated.stream.values.steps;
seen.forgotten = window.sessionStorage.getItem(`lg:stream:${place}`);
seen.runs = (await client.runs.list(place)).length;

back.unmount();

// A run that is stopped. On a thread of its own: a page that was left goes on reading, and forgets the run of its thread
// when it has read to the end, though that is another one by then.
const never = `${given.folder}/never`;
const elsewhere = await newThread();
const Stopped = chatOf(useStream, { ...options, assistantId: "gated", threadId: elsewhere, reconnectOnMount: true });
const stopped = mount(Stopped);
await until(() => Stopped.stream && !Stopped.stream.isThreadLoading, "it is there");
Stopped.stream.submit({ gate: never }, { onDisconnect: "continue", streamResumable: true });
await until(() => Stopped.stream?.values.steps?.length === 1, "its first step is there");
await Stopped.stream.stop();
await until(() => rests(stopped), "it is stopped");
await client.runs.join(elsewhere, (await client.runs.list(elsewhere))[0].run_id);
seen.stopped = (await client.runs.list(elsewhere))[0].status;
writeFileSync(never, "");
stopped.unmount();

await leave();
tell(seen);
process.exit(0);
