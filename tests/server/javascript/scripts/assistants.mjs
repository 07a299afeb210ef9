// Assistants: those of the graphs, and one of one's own with two versions.

import { client, refused, tell } from "./told.mjs";

const found = await client.assistants.search({ limit: 100, includePagination: true });
const own = await client.assistants.create({
  graphId: "steps",
  name: "Green steps",
  context: { colour: "green" },
  metadata: { team: "js" },
});
const changed = await client.assistants.update(own.assistant_id, { context: { colour: "blue" } });
const versions = await client.assistants.getVersions(own.assistant_id);
const latest = await client.assistants.setLatest(own.assistant_id, 1);
const again = await refused(() => client.assistants.create({ graphId: "steps", assistantId: own.assistant_id }));
const run = await client.runs.wait(null, own.assistant_id, { input: { goal: "sea" } });

const seen = {
  graphs: found.assistants.map((one) => one.graph_id),
  next: found.next,
  byName: (await client.assistants.get("steps")).graph_id,
  graph: await client.assistants.getGraph("nested", { xray: true }),
  schemas: await client.assistants.getSchemas("steps"),
  subgraphs: Object.keys(await client.assistants.getSubgraphs("nested")),
  versions: versions.map((one) => [one.version, one.context]),
  changed: changed.version,
  latest: latest.context,
  again,
  count: await client.assistants.count({ metadata: { team: "js" } }),
  selected: await client.assistants.search({ metadata: { team: "js" }, select: ["name"] }),
  run: run.steps,
};
seen.deleted = await client.assistants.delete(own.assistant_id);
seen.gone = await refused(() => client.assistants.get(own.assistant_id));
tell(seen);
