// Crons: made with and without a thread, found, changed, deleted.

import { client, newThread, refused, tell } from "./told.mjs";

const thread = await newThread();
const made = await client.crons.create("steps", {
  schedule: "0 9 * * 1",
  timezone: "Europe/Berlin",
  input: { goal: "sea" },
  metadata: { team: "js" },
});
const ofThread = await client.crons.createForThread(thread, "steps", { schedule: "0 9 * * 1", input: { goal: "sea" } });
const changed = await client.crons.update(made.cron_id, { enabled: false });

const seen = {
  made: { schedule: made.schedule, next: Boolean(made.next_run_date), input: made.payload.input },
  thread: ofThread.thread_id === thread,
  changed: { enabled: changed.enabled, next: changed.next_run_date },
  found: (await client.crons.search({ threadId: thread })).map((one) => one.cron_id === ofThread.cron_id),
  count: await client.crons.count({ threadId: thread }),
  wrong: await refused(() => client.crons.create("steps", { schedule: "at noon", input: {} })),
};
seen.deleted = (await client.crons.delete(made.cron_id)) ?? null;
seen.gone = (await refused(() => client.crons.delete(made.cron_id))).status;
await client.crons.delete(ofThread.cron_id);
tell(seen);
