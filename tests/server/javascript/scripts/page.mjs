// A page without a browser: React renders into a document of happy-dom, and requests are those of Node.

import { Window } from "happy-dom";
import { createElement } from "react";

const window = new Window({ url: "http://localhost:3000/" });
globalThis.window = window;
globalThis.document = window.document;
globalThis.sessionStorage = window.sessionStorage;

// Only now: it looks for a document when it is loaded.
const { createRoot } = await import("react-dom/client");

// What a component shows, each time it has changed.
export function mount(Component, props = {}) {
  const place = window.document.createElement("main");
  window.document.body.append(place);
  const shown = [];
  Component.stream = undefined; // what another page has shown is not what this one shows
  const root = createRoot(place);
  root.render(createElement(Component, { ...props, onShown: (view) => shown.push(view) }));
  return {
    shown,
    text: (selector) => [...place.querySelectorAll(selector)].map((one) => one.textContent),
    unmount: () => root.unmount(),
  };
}

export async function until(isSo, what, seconds = 30) {
  for (const end = Date.now() + seconds * 1000; Date.now() < end; ) {
    if (isSo()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`It has not come true in ${seconds} seconds that ${what}.`);
}

export async function leave() {
  await window.happyDOM.close();
}

// A chat as people build it with either hook: what was said, what is asked, whether it works.
export function chatOf(useStream, options) {
  return function Chat({ onShown, ...props }) {
    const stream = useStream({ ...options, ...props });
    Chat.stream = stream;
    const said = stream.messages.map((one) => `${one.type}: ${one.text ?? one.content}`);
    onShown({ said, isLoading: stream.isLoading, asks: stream.interrupt?.value ?? null });
    return createElement(
      "section",
      null,
      said.map((text, number) => createElement("li", { key: number }, text)),
      stream.interrupt && createElement("blockquote", null, JSON.stringify(stream.interrupt.value)),
      createElement("output", null, stream.isLoading ? "works" : "rests"),
      createElement("pre", null, JSON.stringify(stream.values)),
      stream.error && createElement("strong", null, String(stream.error.message ?? stream.error)),
    );
  };
}
