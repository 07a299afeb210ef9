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
  const focused = document.activeElement;
  if (focused !== node && node.contains(focused)) return true;
  if ("refused" in node.dataset || node.querySelector("[data-refused], details[open] form")) return true;
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
  for (const time of copy.querySelectorAll("time")) time.textContent = "";
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
    if (isBusy(known) || said(known) === said(item)) { tellTime(known, item); wanted.push(known); continue; }
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

/** Let moments of something that stays be as long ago as they are by now. */
function tellTime(old, fresh) {
  const now = fresh.querySelectorAll("time");
  old.querySelectorAll("time").forEach((time, place) => {
    if (now[place]?.dateTime === time.dateTime) time.textContent = now[place].textContent;
  });
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
  const regions = [...page.querySelectorAll("[data-live]")];
  const names = new Set(regions.map((region) => region.id));
  const isNew = regions.some((region) => !document.getElementById(region.id));
  if (isNew && !isBusy(main)) { show(page); return; }
  for (const fresh of regions) {
    const old = document.getElementById(fresh.id);
    if (!old) continue; // somebody is busy: it is shown when they are done
    if ("keyed" in fresh.dataset) mergeItems(old, fresh);
    else if (isBusy(old) || said(old) === said(fresh)) tellTime(old, fresh);
    else { keepFolds(old, fresh); old.replaceWith(fresh); }
  }
  for (const old of main.querySelectorAll("[data-live]")) if (!names.has(old.id) && !isBusy(old)) old.remove();
}

/** Show a page in place of the one that is there; what was said at its top stays. */
function show(page) {
  const flash = document.getElementById("flash");
  main.replaceChildren(...page.body.childNodes);
  if (flash && !document.getElementById("flash")) main.prepend(flash);
}

let asking = false;
let again = false;
let answers = 0; // An answer that was asked for before something was done here is not true any more.

async function refresh() {
  if (asking) { again = true; return; }
  asking = true;
  try {
    const place = new URL(location.href);
    for (const name of ["said", "wait"]) place.searchParams.delete(name);
    const before = answers;
    const answer = await fetch(place, { headers: { "X-Fragment": "1" }, credentials: "same-origin" });
    if (answer.status === 401 || answer.redirected) { location.reload(); return; }
    const text = await answer.text();
    if (before !== answers) again = true;
    else if (answer.ok) merge(text);
  } catch (problem) {
    // The server is away; the stream says when it is back.
    if (!(problem instanceof TypeError)) throw problem;
  } finally {
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

let stream = null;

/** Follow what changes. A browser opens few connections to one server, so a page that nobody looks at has none. */
function listen() {
  stream?.close();
  stream = null;
  if (!live.dataset.source || document.visibilityState === "hidden") return;
  live.hidden = false;
  live.textContent ||= "connecting…";
  const mine = stream = new EventSource(live.dataset.source);
  mine.addEventListener("open", () => {
    live.classList.remove("is-lost");
    live.textContent = "live";
  });
  // The first word comes at once: a page may have been true only until the stream began.
  mine.addEventListener("changed", (event) => {
    count(JSON.parse(event.data).waiting);
    refresh();
  });
  mine.addEventListener("error", () => {
    live.classList.add("is-lost");
    live.textContent = "reconnecting…";
    if (mine.readyState !== EventSource.CLOSED) return;
    // It was refused, and does not say why: whoever must sign in again is led there when the page is asked for.
    setTimeout(() => { if (stream === mine) { listen(); refresh(); } }, 1000);
  });
}

document.addEventListener("visibilitychange", listen);
addEventListener("pagehide", () => stream?.close());

// What was said stays in view, and what went well need not stay for long.
const FLASH_SECONDS = 8;

function fade(flash) {
  if (flash?.classList.contains("is-good")) setTimeout(() => flash.remove(), FLASH_SECONDS * 1000);
}

// The second click of a double click would land on whatever has moved there: on the next card, for another decision.
document.addEventListener("click", (event) => {
  if (event.detail > 1 && event.target.closest("button")) event.preventDefault();
}, true);

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
    answers += 1;
    localise(page);
    const place = new URL(answer.redirected ? answer.url : form.action);
    if (!answer.redirected) stay(page, place);
    else if (place.pathname === location.pathname) arrive(page, card);
    else location.assign(place);
  } catch {
    delete form.dataset.sent;
    buttons.forEach((button) => { button.disabled = false; });
    card?.classList.remove("is-sending");
    complain("The server could not be reached. Send it again: it counts once, however often it is sent.");
  }
});

/** Show what was refused, or worked out: with what was typed, and why. */
function stay(page, place) {
  main.replaceChildren(...page.body.childNodes);
  const wait = place.pathname.match(/^(\/inbox\/waits\/[^/]+)\//);
  if (wait && location.pathname !== wait[1]) history.pushState({}, "", wait[1]);
  const field = main.querySelector("[aria-invalid]");
  if (field) field.focus();
  else (main.querySelector("ul.wrong, .result, [role=alert]") ?? main).scrollIntoView({ block: "center" });
}

/** Show the same page after something was done on it: what was said, and the next card. */
function arrive(page, card) {
  const next = card?.nextElementSibling ?? card?.previousElementSibling;
  document.getElementById("flash")?.remove();
  const flash = page.getElementById("flash");
  if (flash) main.prepend(flash);
  fade(flash);
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
    a: () => {
      const button = card?.querySelector("button[data-key=a]");
      const fold = button?.closest("details:not([open])");
      if (fold) unfold(card, fold.dataset.fold);
      else button?.click();
    },
    r: () => card && unfold(card, "say", "act-respond", "decide", "fill", "payload"),
    x: () => card && unfold(card, "cancel"),
  }[event.key];
  if (does) { event.preventDefault(); does(); }
});

addEventListener("popstate", () => location.reload());
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
localise(document);
fade(document.getElementById("flash"));
listen();
setInterval(() => { if (document.visibilityState === "visible" && live.dataset.source) refresh(); }, 30000);
// The link to an agent opens its form.
if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.querySelector("details[data-fold=start]")?.setAttribute("open", "");
