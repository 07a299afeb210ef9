// The long-term store: items put, read, found, listed, deleted.

import { client, refused, tell } from "./told.mjs";

const place = ["js", "users", "42"];
const seen = { put: (await client.store.putItem(place, "taste", { colour: "green" }, { ttl: 60 })) ?? null };
seen.got = await client.store.getItem(place, "taste");
seen.missing = await client.store.getItem(place, "nothing");
seen.found = await client.store.searchItems(["js"], { filter: { colour: "green" }, limit: 5 });
seen.none = await client.store.searchItems(["js"], { filter: { colour: "red" } });
seen.namespaces = await client.store.listNamespaces({ prefix: ["js"], maxDepth: 2 });
seen.words = await refused(() => client.store.searchItems(["js"], { query: "colours" }));
seen.deleted = (await client.store.deleteItem(place, "taste")) ?? null;
seen.gone = await client.store.getItem(place, "taste");
tell(seen);
