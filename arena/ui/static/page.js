// What the page shows: the state of its battle, what the server has rendered of it, and the controls
// that follow from it.
//
// The stylesheet decides what is shown and hidden, from the data attributes of <html> that paint()
// sets. The prompt and the buttons around <arena-battle> are Gradio's: they are looked up when they
// are needed, for Gradio may put them into the page later than the element.

export const SIDES = ["a", "b"];
export const OUTCOMES = ["model_a", "tie", "both_bad", "model_b"]; // in the order of the keys 1 to 4
const RUNNING = ["created", "streaming"];
const QUIET_MS = 600; // in which a second tap, or a second key, belongs to the first

export const $ = (id) => document.getElementById(id);
export const all = (selector) => Array.from(document.querySelectorAll(selector));
export const box = () => document.querySelector("#prompt textarea");
export const settings = () => document.querySelector("arena-battle").dataset; // by the server
export const root = document.documentElement;
export const words = JSON.parse($("words").textContent); // of the catalogue
export const parsed = (html) => document.createRange().createContextualFragment(html);

export const page = {};

// "leaving": another battle takes the page; "taken": one was loaded, with its remarks; "settled": one
// has ended, or had when it was loaded; "paint": what the page shows may have changed.
const events = new EventTarget();
export const announce = (name, detail) => events.dispatchEvent(new CustomEvent(name, { detail }));
export const when = (name, act) => events.addEventListener(name, (event) => act(event.detail));

let invitation = ""; // what the empty prompt says before any battle
let face = ""; // which controls are shown
let quiet = 0; // the timer that ends data-quiet

export function reset(values) {
  Object.assign(page, {
    battle: null, turn: 0, attempt: 0, prompt: "", rest: false, done: { a: false, b: false },
    state: "empty", choice: "none", known: "false", gold: "false", both: "", live: "", // as the server has it
    note: "", // a refusal, beside the vote bar until the state changes
    sending: null, // what was asked for and has not begun yet: "new", "turn", "continue", ...
    goingOn: false, // whether the next prompt goes to the two revealed models
    ...values,
  });
}

export const running = (state = page.state) => RUNNING.includes(state);
export const ready = () => page.state === "ready" && !page.sending;
export const counted = () => page.known === "false" || page.choice !== "none";
export const votable = () => ready() && counted();
export const withheld = () => page.state === "voted" && page.known === "false";
export const canSend = () => !page.sending && !running() && page.state !== "saving";
export const recorded = () => settings().recorded === "true";
export const rests = (control) => getComputedStyle(control).pointerEvents === "none";

// Puts what the server has rendered into its places: the state of the battle, names, facts, the hint.
export function place(html) {
  const view = parsed(html).firstElementChild;
  Object.assign(page, view.dataset);
  for (const part of view.children) {
    for (const at of all(`[data-part=${part.dataset.for}]`)) Object.assign(at, { innerHTML: part.innerHTML.trim(), hidden: false });
  }
  if (!running()) page.note = "";
  paint();
}

export function wipe() {
  for (const part of all("arena-battle [data-part]")) part.replaceChildren();
}

// --- words ------------------------------------------------------------------------------------

const number = (value) => value.toLocaleString(root.lang);
export const filled = (template, values) => template.replace(/%\((\w+)\)s/g, (_, name) => values[name]);

export function say(text) {
  $("live").textContent = text;
}

export function tell(text) {
  page.note = text;
  paint();
}

function invited() {
  if (page.goingOn || !counted()) return page.both;
  if (page.battle && ["created", "streaming", "ready", "saving", "opening"].includes(page.state)) return recorded() ? words.voteOrNew : words.askOrVote;
  return invitation;
}

export function count() {
  const longest = Number(settings().longest);
  const length = box() ? [...box().value].length : 0;
  $("count").textContent = length > 0.8 * longest ? filled(words.characters, { n: number(length), longest: number(longest) }) : "";
  $("count").classList.toggle("over", length > longest);
}

// --- painting ---------------------------------------------------------------------------------

export function paint() {
  const { sending, state, choice, gold } = page;
  const data = root.dataset;
  Object.assign(data, { choice, gold, sending: sending || "no", later: page.turn > 1, rest: page.rest });
  data.state = sending || state === "created" ? "waiting" : state;
  data.counted = counted() && sending !== "continue";
  data.names = withheld() ? "withheld" : "open";
  for (const side of SIDES) data[side] = progress(side);
  for (const outcome of OUTCOMES) {
    const button = $(`vote-${outcome}`);
    button?.setAttribute("aria-disabled", data.state !== "ready");
    button?.setAttribute("aria-pressed", choice === outcome);
  }
  document.querySelector("[data-do=go-on]").setAttribute("aria-pressed", page.goingOn);
  $("send")?.setAttribute("aria-disabled", !canSend());
  if (box()) box().placeholder = invited();
  $("asked").textContent = page.prompt;
  $("note").textContent = page.note;
  count();
  announce("paint");
  hushIfChanged();
}

function progress(side) {
  if (!page.battle && !page.sending) return "none";
  if (page.done[side]) return "done";
  return $(`answer-${side}`).firstChild ? "writing" : "waiting";
}

// A double tap is one tap: where the controls have changed, none reacts for a moment. What ends by
// itself changes the actions alone, and leaves the vote buttons in their place.
function hushIfChanged() {
  const before = face;
  face = [page.sending || running() ? "running" : page.state, page.rest, withheld()].join();
  if (before === face || !before || before.startsWith("opening")) return;
  const ran = before.startsWith("running") && /^(running|ready)/.test(face);
  hush(ran && root.dataset.quiet !== "all" ? "actions" : "all");
}

// The stylesheet takes the controls from the pointer.
export function hush(what = "all") {
  root.dataset.quiet = what;
  clearTimeout(quiet);
  quiet = setTimeout(() => { delete root.dataset.quiet; }, QUIET_MS);
}

// --- the prompt -------------------------------------------------------------------------------

export function invite(text) {
  invitation = text;
}

export function fill(text) {
  if (!box() || box().value === text) return;
  box().value = text;
  box().dispatchEvent(new Event("input", { bubbles: true }));
}

let hand = ""; // what was used last: "key", "mouse", "touch" or "pen"

export function uses(what) {
  hand = what;
}

export const byKey = () => hand === "key";

// The focus waits in the prompt, but not where that opens a keyboard over the names.
export function focusPrompt() {
  const types = byKey() || (hand === "mouse" && matchMedia("(pointer: fine)").matches);
  (types ? box() : $("panes")).focus({ preventScroll: true });
}

// --- storage and the address ------------------------------------------------------------------

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

export function address(battle, voted = false) {
  const readable = voted && settings().readable === "true";
  const path = !battle ? "/" : readable ? `/battles/${battle}` : `/?b=${encodeURIComponent(battle)}`;
  if (location.pathname + location.search === path) return;
  history[voted ? "replaceState" : "pushState"](null, "", path);
}

export function addressed() {
  return new URLSearchParams(location.search).get("b") || /^\/battles\/(\w+)$/.exec(location.pathname)?.[1];
}
