// Threads: made, found, changed, copied, given a life, deleted.

import { client, newThread, refused, tell } from "./told.mjs";

const made = await client.threads.create({ metadata: { team: "js" }, graphId: "steps", ttl: 60 });
const id = made.thread_id;
const same = await client.threads.create({ threadId: id, ifExists: "do_nothing" });
const twice = await refused(() => client.threads.create({ threadId: id }));
await client.runs.wait(id, "steps", { input: { goal: "sea" } });
const copy = await client.threads.copy(id);
const filled = await newThread({
  graphId: "steps",
  supersteps: [{ updates: [{ values: { goal: "moon", steps: ["by hand"] }, asNode: "__start__" }] }],
});

const seen = {
  made,
  same: same.thread_id === id,
  twice,
  got: await client.threads.get(id, { include: ["ttl"] }),
  changed: await client.threads.update(id, { metadata: { more: 1 } }),
  minimal: (await client.threads.update(id, { metadata: { less: 2 }, returnMinimal: true })) ?? null,
  patched: await client.threads.patchState(id, { old: true }),
  found: await client.threads.search({
    ids: [id],
    metadata: { team: "js", less: 2, old: true },
    values: { goal: "sea" },
    status: "idle",
    sortBy: "created_at",
    sortOrder: "asc",
    select: ["thread_id", "status"],
    extract: { first: "values.steps[0]" },
  }),
  count: await client.threads.count({ metadata: { team: "js", more: 1 }, status: "idle" }),
  copy: { isOther: copy.thread_id !== id, values: copy.values },
  filled: (await client.threads.getState(filled)).values,
};
seen.deleted = (await client.threads.delete(id)) ?? null;
seen.gone = await refused(() => client.threads.get(id));
seen.pruned = await client.threads.prune([copy.thread_id, filled]);
tell(seen);
