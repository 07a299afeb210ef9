// What every script here begins with: what it was given, a client, and how to tell what was seen.

import { Client } from "@langchain/langgraph-sdk";

export const given = JSON.parse(process.argv[2]);
export const client = new Client({ apiUrl: given.url });

export function tell(seen) {
  process.stdout.write(`${JSON.stringify(seen)}\n`);
}

// A refusal is a result, too.
export async function refused(call) {
  try {
    return { result: await call() };
  } catch (error) {
    return { status: error.status, text: error.text ?? error.message };
  }
}

export async function all(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

export async function newThread(options) {
  return (await client.threads.create(options)).thread_id;
}
