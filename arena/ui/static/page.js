// The page: its state, its words, its prompt, its controls, and its address.
//
// The state is the data attributes of <html>. The server gives them with what it has rendered of a
// battle, the stylesheet shows and hides by them, and paint() sets what else follows from them.
// What is pressed is announced by its name, and the module that owns the matter listens.
//
// The prompt and the buttons around <arena-battle> are Gradio's, which may put them into the page
// later than the element: they are looked up when they are needed.

export const SIDES = ["a", "b"];
export const OUTCOMES = ["model_a", "tie", "both_bad", "model_b"]; // by the keys 1 to 4
const DRAFT = "arena.draft"; // in sessionStorage: a prompt that was not sent yet
const QUIET_MS = 600; // in which a second tap, or a second key, belongs to the first
const IN_WHY = "#why[open]";
const FIELDS = "textarea, select, input:not([type=checkbox], [type=radio]), [contenteditable]";
const EMPTY = {
  battle: "", round: "", later: "false", rest: "false", a: "none", b: "none", // of the answers
  state: "empty", choice: "none", counted: "true", gold: "false", names: "open", // of the vote
  asks: "none", remarks: "saved", // of the form of "Why?"
  invitation: "", both: "", // what the empty prompt says of this battle, and of going on after it
  known: "false", live: "", // whether the models are known; what is said of the battle
  further: "false", // whether the next prompt goes on with the two revealed models
  sending: "no", // what was asked for and has not begun yet: "new", "turns", "continue", ...
};

export const $ = (id) => document.getElementById(id);
export const all = (selector) => Array.from(document.querySelectorAll(selector));
export const box = () => document.querySelector("#prompt textarea");
export const data = document.documentElement.dataset;
export const words = JSON.parse($("words").textContent); // of the catalogue
export const parsed = (html) => document.createRange().createContextualFragment(html);

export const running = () => ["waiting", "streaming"].includes(data.state);
export const votable = () => data.state === "ready" && data.counted === "true";
export const withheld = () => data.names === "withheld";
export const canSend = () => !running() && data.state !== "saving";

// Beside the controls: "start"; "leaving": another battle takes the page; "placed": what the server
// has rendered of one is on the page; "loaded": so is all of it, with the remarks that are saved.
const events = new EventTarget();
export const when = (name, act) => events.addEventListener(name, ({ detail }) => act(detail));

export function announce(name, detail) {
  events.dispatchEvent(new CustomEvent(name, { detail }));
}

let invitation = ""; // what the empty prompt says before any battle
let face = ""; // which controls are shown
let quiet = 0; // the timer that ends data-quiet
let hand = ""; // what was used last: "key", "mouse", "touch" or "pen"
let pressed = ""; // the key that was a shortcut or pressed a button last

// --- what is shown ----------------------------------------------------------------------------

export function place(html) {
  const view = parsed(html).firstElementChild;
  if (view.dataset.state === "created") view.dataset.state = "waiting";
  Object.assign(data, view.dataset, { sending: "no" });
  fillParts(view.children);
  say(data.live);
  tell("");
  announce("placed");
}

// Leaves the page without a battle, or with one that is not known yet.
export function clear(values) {
  announce("leaving");
  Object.assign(data, EMPTY, values);
  fillParts([]);
  say("");
  tell("");
}

// What has not changed stays in place, with what somebody has selected in it.
function fillParts(given) {
  const parts = new Map(Array.from(given, (part) => [part.dataset.for, part.innerHTML]));
  for (const at of all("[data-part]")) {
    const html = parts.get(at.dataset.part) ?? (at.closest("arena-battle") ? "" : at.placed);
    if (html !== at.placed) Object.assign(at, { innerHTML: html, hidden: false, placed: html });
  }
}

export function put(id, text) {
  Object.assign($(id), { textContent: text, placed: text });
}

export function say(text) {
  $("live").textContent = text;
}

// A refusal, beside the vote bar until something else is placed.
export function tell(text) {
  $("note").textContent = text;
}

function paint() {
  for (const outcome of OUTCOMES) {
    $(`vote-${outcome}`)?.setAttribute("aria-disabled", data.state !== "ready");
    $(`vote-${outcome}`)?.setAttribute("aria-pressed", data.choice === outcome);
  }
  $("send")?.setAttribute("aria-disabled", !canSend());
  document.querySelector("[data-do=go-on]").setAttribute("aria-pressed", data.further);
  for (const button of all("[data-do=wide]")) {
    button.setAttribute("aria-pressed", data.wide === button.dataset.side);
  }
  const further = data.further === "true" && data.both;
  if (box()) box().placeholder = further || data.invitation || invitation;
  hushIfChanged();
}

// A double tap is one tap: where the controls have changed, none reacts for a moment. What ends by
// itself changes the actions alone, and leaves the vote buttons in their place.
function hushIfChanged() {
  const before = face;
  face = [running() ? "running" : data.state, data.rest, data.names].join();
  if (before === face || !before || before.startsWith("opening")) return;
  const ran = before.startsWith("running") && /^(running|ready)/.test(face);
  hush(ran && data.quiet !== "all" ? "actions" : "all");
}

// The stylesheet takes the controls from the pointer.
export function hush(what = "all") {
  data.quiet = what;
  clearTimeout(quiet);
  quiet = setTimeout(() => delete data.quiet, QUIET_MS);
}

// --- keys -------------------------------------------------------------------------------------

function onKey(event) {
  hand = "key";
  if (event.target === box()) return onPromptKey(event);
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const leaves = event.target === $("comment") && event.key === "Escape";
  if (event.target.closest(FIELDS) && !leaves) return;
  const presses = ["Enter", " "].includes(event.key);
  const button = presses && event.target.closest("input, a, button, summary");
  if (button) return onButtonKey(event, button);
  if (document.querySelector("dialog[open]")) return;
  const deed = deedOf(event);
  if (deed) {
    event.preventDefault();
    pressed = event.code;
    deed();
  } else if (event.key.length === 1 && event.key !== " " && !event.repeat) {
    fieldFor(event.target).focus({ preventScroll: true });
  }
}

// A character that is typed beside the fields is text: the field that gets the focus takes it.
function fieldFor(target) {
  if (target.closest(IN_WHY) && $("comment").offsetParent) return $("comment");
  return document.querySelector("#first textarea, #prompt textarea");
}

// A key that is held, or pressed twice, presses a button once.
function onButtonKey(event, button) {
  const rests = getComputedStyle(button).pointerEvents === "none";
  if (event.repeat || rests) event.preventDefault();
  else pressed = event.code;
}

// A character is a key on the vote buttons alone, where only keys put the focus.
function deedOf({ target, key, repeat }) {
  const group = target.closest("#votes, .reasons");
  if (group && ["ArrowLeft", "ArrowRight"].includes(key)) return () => besides(target, key, group);
  if (repeat) return null;
  if (key === "Escape") {
    if (running()) return () => announce("stop");
    if (target.closest(IN_WHY)) return () => announce("close-why");
    return votable() && !data.quiet && (() => $("votes").focus({ preventScroll: true }));
  }
  if (key === "Enter") return withheld() && askForNames;
  const outcome = target.closest("#votes") && OUTCOMES[Number(key) - 1];
  return outcome && (() => announce("vote", outcome));
}

function besides(target, key, group) {
  const buttons = Array.from(group.querySelectorAll("input, button"));
  buttons[buttons.indexOf(target) + (key === "ArrowRight" ? 1 : -1)]?.focus();
}

const askForNames = () => $("remarks").requestSubmit();

// The key that has just voted is not typed, nor does it send.
function onPromptKey(event) {
  if (event.isComposing) return;
  const echo = event.code === pressed && (event.repeat || data.quiet);
  if (event.key === "Enter") event.stopPropagation(); // Shift+Enter stays a new line
  else if (!echo) return;
  if (event.shiftKey && !echo) return;
  event.preventDefault();
  if (echo || event.repeat) return;
  if (withheld() && !box().value.trim()) askForNames();
  else announce("send");
}

// --- clicks and scrolling ---------------------------------------------------------------------

function onPointer(event) {
  hand = event.pointerType;
  pressed = "";
  if (data.quiet) hush(data.quiet); // tap, tap, tap
}

// Our buttons have their deeds in data-do, Gradio's in their ids.
function onClick({ target }) {
  const button = target.closest("button");
  const [, kind, name] = /^(vote|do)-(.+)$/.exec(button?.id) || [];
  if (kind === "vote") announce("vote", name);
  else if (button) announce(name || button.dataset.do || button.id, button);
}

for (const name of ["help", "prompts"]) {
  when(name, () => {
    $(name).showModal();
    hush();
  });
}

when("wide", ({ dataset: { side } }) => {
  data.wide = data.wide === side ? "no" : side;
});

// A battle's page for readers has no prompt.
when("reload", () => location.assign(data.battle ? `/?b=${data.battle}` : "/"));

when("tab", ({ dataset: { side } }) => {
  const strip = $("panes");
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const left = $(`pane-${side}`).offsetLeft - strip.offsetLeft;
  strip.scrollTo({ left, behavior: still ? "auto" : "smooth" });
});

function onSwipe({ target: strip }) {
  const atB = strip.scrollLeft > strip.clientWidth / 2;
  $("tab-a").setAttribute("aria-selected", !atB);
  $("tab-b").setAttribute("aria-selected", atB);
}

function onSearch({ target }) {
  const wanted = target.value.toLowerCase().split(/\s+/);
  const items = all("#prompts li");
  for (const item of items) {
    const text = item.textContent.toLowerCase();
    item.hidden = !wanted.every((word) => text.includes(word));
  }
  $("prompts-none").hidden = items.some((item) => !item.hidden);
}

// --- the prompt -------------------------------------------------------------------------------

export function fill(text) {
  if (!box() || box().value === text) return;
  box().value = text;
  box().dispatchEvent(new Event("input", { bubbles: true }));
}

const number = (value) => value.toLocaleString(document.documentElement.lang);

function onInput() {
  pressed = "";
  keep(sessionStorage, DRAFT, box().value);
  const [length, longest] = [[...box().value].length, Number(data.longest)];
  const figures = { n: length, longest };
  const shown = words.characters.replace(/%\((\w+)\)s/g, (_, name) => number(figures[name]));
  $("count").textContent = length > 0.8 * longest ? shown : "";
  $("count").classList.toggle("over", length > longest);
}

export const byKey = () => hand === "key";

// The focus waits in the prompt, but not where that opens a keyboard over the names.
export function focusPrompt() {
  const types = byKey() || (hand === "mouse" && matchMedia("(pointer: fine)").matches);
  (types ? box() : $("panes")).focus({ preventScroll: true });
}

// --- storage, time and the address ------------------------------------------------------------

export function recall(storage, key) {
  try {
    return JSON.parse(storage.getItem(key));
  } catch {
    return null;
  }
}

export function keep(storage, key, value) {
  try {
    storage.setItem(key, JSON.stringify(value));
  } catch {
    // Storage is full or forbidden: what it was to keep lives as long as this page.
  }
}

// Waits, but no longer than until the browser is online again.
export function pause(ms) {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
    addEventListener("online", resolve, { once: true });
  });
}

export function address(battle, voted = false) {
  let path = battle ? `/?b=${encodeURIComponent(battle)}` : "/";
  if (voted && data.readable === "true") path = `/battles/${battle}`;
  if (location.pathname + location.search === path) return;
  history[voted ? "replaceState" : "pushState"](null, "", path);
}

export function addressed() {
  const { search, pathname } = location;
  return new URLSearchParams(search).get("b") || /^\/battles\/(\w+)$/.exec(pathname)?.[1];
}

// --- the start --------------------------------------------------------------------------------

function start() {
  // Gradio's own look for Markdown would outweigh that of answers.
  for (const around of all("#battle :has(arena-battle)")) around.className = "";
  new MutationObserver(paint).observe(document.documentElement, { attributes: true });
  $("panes").addEventListener("scroll", onSwipe, { passive: true });
  $("panes").addEventListener("click", (event) => {
    if (event.target.closest('a[href^="#"]')) event.preventDefault();
  });
  document.addEventListener("keydown", onKey, true);
  document.addEventListener("pointerdown", onPointer, true);
  document.addEventListener("mousedown", (event) => {
    if (event.target.closest("#votes")) event.preventDefault();
  });
  document.addEventListener("click", onClick);
  for (const dialog of all("dialog")) dialog.addEventListener("close", () => hush());
  $("prompts-search")?.addEventListener("input", onSearch);
  announce("start");
  whenPrompt();
}

// Gradio puts the prompt into the page when it is ready.
function whenPrompt() {
  if (!box() || OUTCOMES.some((outcome) => !$(`vote-${outcome}`))) {
    return requestAnimationFrame(whenPrompt);
  }
  const early = document.querySelector("#first textarea");
  invitation = early.placeholder;
  box().setAttribute("aria-label", words.prompt);
  Object.assign($("votes"), { tabIndex: -1, role: "group", ariaLabel: words.choice });
  box().addEventListener("input", onInput);
  fill(early.value || recall(sessionStorage, DRAFT) || "");
  if (document.activeElement === early || matchMedia("(pointer: fine)").matches) box().focus();
  $("first").remove();
  paint();
}

customElements.define("arena-battle", class extends HTMLElement {
  connectedCallback() {
    queueMicrotask(start); // its parts come with it, but may come after it
  }
});
