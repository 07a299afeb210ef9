// What a browser adds to the pages: they stay true by themselves, forms are sent in place, and keys move about.
// Everything works without this file; nothing is decided here.

const main = document.getElementById("main");
const live = document.getElementById("live");
document.documentElement.classList.add("has-script");

// ── Times ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const zoned = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/** Show moments in the reader's own time zone. */
function localise(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const when = new Date(time.dateTime);
    time.title = zoned.format(when);
    if ("clock" in time.dataset) time.textContent = clock.format(when);
  }
}

// ── Staying true ───────────────────────────────────────────────────────────────────────────────────────────────────

/** Whether somebody is in the middle of something here: that must not be taken away. */
function isBusy(node) {
  if (node.contains(document.activeElement) && document.activeElement.matches("input, textarea, select, button")) return true;
  if (node.querySelector("details[open] form")) return true;
  return [...node.querySelectorAll("input:not([type=hidden]), textarea, select")].some(isChanged);
}

function isChanged(field) {
  if (field.type === "checkbox") return field.checked !== field.defaultChecked;
  if (field.tagName === "SELECT") {
    const was = [...field.options].findIndex((option) => option.defaultSelected);
    return field.selectedIndex !== Math.max(was, 0);
  }
  return field.value !== field.defaultValue;
}

/** What a node says, without what is another in every answer of the server. */
function said(node) {
  const copy = node.cloneNode(true);
  for (const hidden of copy.querySelectorAll("input[name=key], input[name=csrf]")) hidden.removeAttribute("value");
  for (const time of copy.querySelectorAll("time")) time.removeAttribute("title");
  for (const time of copy.querySelectorAll("time[data-clock]")) time.textContent = "";
  for (const fold of copy.querySelectorAll("details")) fold.removeAttribute("open");
  return copy.innerHTML + copy.className.replace(" is-sending", "");
}

function keepFolds(old, fresh) {
  for (const fold of old.querySelectorAll("details[open][data-fold]")) {
    const same = fresh.querySelector(`details[data-fold="${CSS.escape(fold.dataset.fold)}"]`);
    if (same) same.open = true;
  }
}

/** Put the new list in place of the old one, item by item; what somebody works on stays. */
function mergeItems(old, fresh) {
  const before = new Map([...old.children].map((item) => [item.dataset.key, item]));
  const wanted = [];
  for (const item of [...fresh.children]) {
    const known = before.get(item.dataset.key);
    before.delete(item.dataset.key);
    if (!known) { wanted.push(item); continue; }
    if (isBusy(known) || said(known) === said(item)) { wanted.push(known); continue; }
    keepFolds(known, item);
    const hadFocus = known === document.activeElement;
    known.replaceWith(item);
    if (hadFocus) item.focus({ preventScroll: true });
    wanted.push(item);
  }
  for (const item of before.values()) {
    if (isBusy(item) && !item.classList.contains("is-sending")) { wanted.push(item); markGone(item); }
    else item.remove();
  }
  wanted.forEach((item, place) => { if (old.children[place] !== item) old.insertBefore(item, old.children[place] ?? null); });
}

function markGone(item) {
  if (item.classList.contains("is-gone")) return;
  item.classList.add("is-gone");
  const note = document.createElement("p");
  note.className = "gone";
  note.role = "status";
  note.textContent = "This was settled meanwhile. What you typed is still here, but nobody waits for it any more.";
  item.prepend(note);
}

/** Put a new version of the page in place, region by region. */
function merge(html) {
  const page = new DOMParser().parseFromString(html, "text/html");
  localise(page);
  for (const fresh of page.querySelectorAll("[data-live]")) {
    const old = document.getElementById(fresh.id);
    if (!old) { if (!isBusy(main)) show(page); return; }
    if ("keyed" in fresh.dataset) mergeItems(old, fresh);
    else if (said(old) !== said(fresh)) { keepFolds(old, fresh); old.replaceWith(fresh); }
  }
  for (const old of main.querySelectorAll("[data-live]")) if (!page.getElementById(old.id) && !isBusy(old)) old.remove();
}

/** Show a page that is a new one for the reader. */
function show(page) {
  main.replaceChildren(...page.body.childNodes);
}

let asking = false;
let again = false;

async function refresh() {
  if (asking) { again = true; return; }
  asking = true;
  try {
    const place = new URL(location.href);
    for (const name of ["said", "wait"]) place.searchParams.delete(name);
    const answer = await fetch(place, { headers: { "X-Fragment": "1" }, credentials: "same-origin" });
    if (answer.status === 401 || answer.redirected) { location.reload(); return; }
    if (answer.ok) merge(await answer.text());
  } catch { /* The server is away; the stream says when it is back. */ } finally {
    asking = false;
    if (again) { again = false; refresh(); }
  }
}

function count(number) {
  const badge = document.getElementById("waiting");
  if (!badge || badge.textContent === String(number)) return;
  badge.textContent = badge.dataset.count = number;
  if (location.pathname === "/") document.title = `Inbox (${number}) · Bide`;
}

function listen(source) {
  live.hidden = false;
  live.textContent = "connecting…";
  const stream = new EventSource(source);
  let isFirst = true;
  stream.addEventListener("open", () => {
    live.classList.remove("is-lost");
    live.textContent = "live";
    if (!isFirst) refresh();
    isFirst = false;
  });
  let heard = false;
  stream.addEventListener("changed", (event) => {
    count(JSON.parse(event.data).waiting);
    if (heard) refresh();
    heard = true;
  });
  stream.addEventListener("error", () => {
    heard = false;
    isFirst = false;
    live.classList.add("is-lost");
    live.textContent = "reconnecting…";
    if (stream.readyState === EventSource.CLOSED) setTimeout(() => listen(source), 2000);
  });
  addEventListener("pagehide", () => stream.close(), { once: true });
}

// ── Sending forms in place ─────────────────────────────────────────────────────────────────────────────────────────

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.method !== "post" || form.action.endsWith("/logout")) return;
  event.preventDefault();
  if (form.dataset.sent) return;
  const body = new URLSearchParams(new FormData(form, event.submitter));
  const card = form.closest(".card");
  const buttons = [...(card ?? form).querySelectorAll("button")];
  form.dataset.sent = "1";
  buttons.forEach((button) => { button.disabled = true; });
  card?.classList.add("is-sending");
  try {
    const answer = await fetch(form.action, { method: "POST", body, headers: { "X-Fragment": "1" }, credentials: "same-origin" });
    if (answer.status === 401) { location.reload(); return; }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    localise(page);
    const place = new URL(answer.redirected ? answer.url : form.action);
    if (answer.redirected && place.pathname === location.pathname) arrive(page, card);
    else { show(page); if (answer.redirected) history.pushState({}, "", place); scrollTo(0, 0); main.focus({ preventScroll: true }); }
    if (answer.redirected && place.pathname !== location.pathname) location.assign(place);
  } catch {
    delete form.dataset.sent;
    buttons.forEach((button) => { button.disabled = false; });
    card?.classList.remove("is-sending");
    complain("The server could not be reached. Send it again: it counts once, however often it is sent.");
  }
});

/** Show the same page after something was done on it: what was said, and the next card. */
function arrive(page, card) {
  const next = card?.nextElementSibling ?? card?.previousElementSibling;
  document.getElementById("flash")?.remove();
  const flash = page.getElementById("flash");
  if (flash) main.prepend(flash);
  card?.remove();
  merge(page.body.innerHTML);
  if (next?.isConnected && next.matches("[data-key]")) next.focus({ preventScroll: true });
}

function complain(text) {
  document.getElementById("flash")?.remove();
  const flash = document.createElement("div");
  flash.id = "flash";
  flash.className = "flash is-bad";
  flash.role = "alert";
  flash.textContent = text;
  main.prepend(flash);
}

// ── Keys ───────────────────────────────────────────────────────────────────────────────────────────────────────────

const cards = () => [...main.querySelectorAll("[data-keyed] > .card")];

function move(step) {
  const all = cards();
  if (!all.length) return;
  const here = all.findIndex((card) => card.contains(document.activeElement));
  const there = all[Math.max(0, Math.min(all.length - 1, here < 0 ? 0 : here + step))];
  there.focus();
  there.scrollIntoView({ block: "nearest" });
}

/** Open the first fold of these in a card, and go to its first field. */
function unfold(card, ...names) {
  for (const name of names) {
    const fold = [...card.querySelectorAll("details[data-fold]")].find((one) => one.dataset.fold.startsWith(name));
    if (!fold) continue;
    fold.open = true;
    fold.querySelector("input:not([type=hidden]), textarea, select, button")?.focus();
    return;
  }
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) {
    if (event.key === "Escape") document.activeElement.blur();
    return;
  }
  const card = document.activeElement.closest?.("[data-keyed] > .card");
  const does = {
    j: () => move(1),
    k: () => move(-1),
    a: () => card?.querySelector("button[data-key=a]")?.click(),
    r: () => card && unfold(card, "say", "act-respond", "fill", "payload"),
    x: () => card && unfold(card, "cancel"),
  }[event.key];
  if (does) { event.preventDefault(); does(); }
});

addEventListener("popstate", () => location.reload());
localise(document);
if (live.dataset.source) listen(live.dataset.source);
setInterval(() => { if (document.visibilityState === "visible" && live.dataset.source) refresh(); }, 30000);
// The link to an agent opens its form.
if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.querySelector("details[data-fold=start]")?.setAttribute("open", "");
