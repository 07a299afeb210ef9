// A thread is followed across its runs: by the thread protocol, over server-sent events and a WebSocket, and by the
// older stream of a thread.

import { client, given, newThread, tell } from "./told.mjs";

async function talk(transport) {
  const seen = { texts: [], states: 0 };
  const thread = client.threads.stream({ assistantId: "mails", transport });
  const messages = (async () => {
    for await (const message of thread.messages) seen.texts.push(await message.text);
  })();
  const started = await thread.run.start({ input: { messages: [{ type: "human", content: "tell ada" }] } });
  seen.run = Boolean(started.run_id);
  seen.paused = (await thread.output).messages.length;
  for (; thread.interrupts.length === 0; ) await new Promise((resolve) => setTimeout(resolve, 10));
  await messages;
  const [{ interruptId, namespace, payload }] = thread.interrupts;
  seen.asked = payload.action_requests[0].name;

  const events = await thread.subscribe({ channels: ["values", "lifecycle"] });
  await thread.input.respond({ interrupt_id: interruptId, namespace, response: { decisions: [{ type: "approve" }] } });
  for await (const event of events) {
    if (event.method === "values") seen.states += 1;
    if (event.params.data.event === "completed") break;
  }
  seen.said = (await client.threads.getState(thread.threadId)).values.messages.map((one) => one.content);
  seen.late = await thread.input
    .respond({ interrupt_id: interruptId, namespace, response: "again" })
    .catch((error) => error.code ?? error.message);
  await thread.close();
  return seen;
}

// The older stream begins now, and tells of every run that comes.
async function follow() {
  const thread = await newThread();
  await client.runs.wait(thread, "steps", { input: { goal: "sea" } });
  const leaving = new AbortController();
  const events = [];
  const stream = client.threads.joinStream(thread, { lastEventId: "-", signal: leaving.signal });
  for await (const part of stream) {
    events.push(part.event === "metadata" ? (part.data.status ?? "began") : part.event);
    if (events.filter((event) => event === "run_done").length === 2) break;
    if (part.data.status === "run_done") await client.runs.create(thread, "steps", { input: { goal: "moon" } });
  }
  leaving.abort();
  return events;
}

tell({ sse: await talk("sse"), websocket: await talk("websocket"), follow: await follow() });
process.exit(0);
