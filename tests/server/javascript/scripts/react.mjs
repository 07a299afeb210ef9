// `useStream` of @langchain/react: a chat, the page loaded again, words as they come, and questions.

import { writeFileSync } from "node:fs";
import { useStream } from "@langchain/react";
import { chatOf, leave, mount, until } from "./page.mjs";
import { client, given, tell } from "./told.mjs";

const hello = { messages: [{ type: "human", content: "hello" }] };
const seen = {};

// A thread of its own, which the hook names.
const Chat = chatOf(useStream, { apiUrl: given.url, assistantId: "chat" });
const chat = mount(Chat);
await until(() => Chat.stream, "it is there");
await Chat.stream.submit(hello);
await until(() => chat.text("li").includes("ai: You said hello"), "it has answered");
await until(() => chat.text("output")[0] === "rests", "it rests");
seen.first = chat.text("li");
await Chat.stream.submit({ messages: [{ type: "human", content: "again" }] });
await until(() => chat.text("li").includes("ai: You said again"), "it has answered again");
await until(() => chat.text("output")[0] === "rests", "it rests again");
seen.second = chat.text("li");
const thread = Chat.stream.threadId;
chat.unmount();

// The page is loaded again: what was said is there, and the talk goes on.
const reloaded = mount(Chat, { threadId: thread });
await until(() => reloaded.text("li").length === 4, "what was said is there");
const from = reloaded.shown.length;
const submitted = Chat.stream.submit({ messages: [{ type: "human", content: "more" }] });
await until(() => reloaded.text("li").includes("ai: You said more"), "it goes on");
await submitted;
await until(() => reloaded.text("output")[0] === "rests", "it rests once more");
seen.third = reloaded.text("li");
seen.shrunk = reloaded.shown.slice(from).some((view) => view.said.length < 4);
reloaded.unmount();

// A tale, of which the first words are shown before the others are told.
const gate = `${given.folder}/tale`;
const Tales = chatOf(useStream, { apiUrl: given.url, assistantId: "tales" });
const tale = mount(Tales);
await until(() => Tales.stream, "it is there");
Tales.stream.submit({ messages: [{ type: "human", content: gate }] });
await until(() => tale.text("li")[1]?.startsWith("ai: Once upon"), "its first words are there");
seen.beginning = tale.text("li")[1];
writeFileSync(gate, "");
await until(() => tale.text("li")[1] === "ai: Once upon a time", "it is told");
tale.unmount();

// A question, seen by another page as well, which answers it.
const Mails = chatOf(useStream, { apiUrl: given.url, assistantId: "mails" });
const asking = mount(Mails);
await until(() => Mails.stream, "it is there");
await Mails.stream.submit({ messages: [{ type: "human", content: "tell ada" }] });
await until(() => asking.text("blockquote").length, "it asks");
await until(() => asking.text("output")[0] === "rests", "it rests while it asks");
seen.asked = Mails.stream.interrupt.value;
const asker = Mails.stream.threadId;
asking.unmount();

const answering = mount(Mails, { threadId: asker });
await until(() => answering.text("blockquote").length, "the other page asks, too");
await Mails.stream.respond({ decisions: [{ type: "approve" }] }, { interruptId: Mails.stream.interrupt.id });
await until(() => answering.text("li").includes("ai: It is done"), "it has gone on");
await until(() => answering.text("blockquote").length === 0, "nothing is asked");
await until(() => answering.text("output")[0] === "rests", "it rests in the end");
seen.answered = answering.text("li");
seen.decision = (await client.threads.getState(asker)).values.decision;
answering.unmount();

// Two questions, answered together.
const Both = chatOf(useStream, { apiUrl: given.url, assistantId: "both" });
const both = mount(Both);
await until(() => Both.stream, "it is there");
await Both.stream.submit({ goal: "sea" });
await until(() => Both.stream?.interrupts.length === 2, "it asks twice");
const where = Both.stream.interrupts.find((one) => one.value.question === "Where?");
const when = Both.stream.interrupts.find((one) => one.value === "When?");
await Both.stream.respondAll({ [where.id]: "Rome", [when.id]: "May" });
await until(() => Both.stream.values.answers?.when === "May", "both answers are there");
seen.both = Both.stream.values.answers;
both.unmount();

await leave();
tell(seen);
process.exit(0);
