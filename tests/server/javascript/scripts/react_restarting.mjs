// A page of @langchain/react stays while its server goes away and comes back.

import { useStream } from "@langchain/react";
import { chatOf, leave, mount, until } from "./page.mjs";
import { given, tell } from "./told.mjs";

const Tales = chatOf(useStream, { apiUrl: given.url, assistantId: "tales" });
const tale = mount(Tales);
await until(() => Tales.stream, "it is there");
Tales.stream.submit({ messages: [{ type: "human", content: `${given.folder}/gate` }] });
await until(() => tale.text("li")[1]?.startsWith("ai: Once upon"), "its first words are there");
tell({ isThere: true });
await until(() => tale.text("li")[1] === "ai: Once upon a time", "it is told");
await until(() => tale.text("output")[0] === "rests", "it rests");
tell({ said: tale.text("li").slice(1), error: tale.text("strong") });
tale.unmount();
await leave();
process.exit(0);
