// What the page shows: the state of its battle, and the words and controls that follow from it.
//
// The stylesheet decides what is shown and hidden, from the data attributes of <html> that paint()
// sets. The prompt and the buttons around <arena-battle> are Gradio's: they are looked up when they
// are needed, for Gradio may put them into the page later than the element.

export const SIDES = ["a", "b"];
export const OUTCOMES = ["model_a", "tie", "both_bad", "model_b"]; // in the order of the keys 1 to 4
const RUNNING = ["created", "streaming"];
const ENDED = ["voted", "skipped", "failed", "stopped", "interrupted", "expired", "missing"];
const QUIET_MS = 600; // in which a second tap, or a second key, belongs to the first

export const $ = (id) => document.getElementById(id);
export const all = (selector) => Array.from(document.querySelectorAll(selector));
export const box = () => document.querySelector("#prompt textarea");
export const settings = () => document.querySelector("arena-battle").dataset; // by the server
export const root = document.documentElement;
export const { words, counted, ends, kinds, cuts } = JSON.parse($("words").textContent); // of the catalogue

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
    battle: null, turn: 0, attempt: 0, state: "empty", message: null, prompt: "", counted: true, choice: null,
    models: null, gold: false, standing: "", followed: [], stopped: false, rest: false, done: { a: false, b: false },
    note: "", // a refusal, beside the vote bar until the state changes
    sending: null, // what was asked for and has not begun yet: "new", "turn", "continue", ...
    goingOn: false, // whether the next prompt goes to the two revealed models
    why: false, // whether "Why?" is open
    ...values,
  });
}

export const running = (state = page.state) => RUNNING.includes(state);
export const ready = () => page.state === "ready" && !page.sending;
export const votable = () => ready() && page.counted;
export const withheld = () => page.state === "voted" && page.counted && !page.models;
export const canSend = () => !page.sending && !running() && page.state !== "saving";
export const recorded = () => settings().recorded === "true";
export const asksFirst = () => settings().reasons === "before";
export const rests = (control) => getComputedStyle(control).pointerEvents === "none";

// --- words ------------------------------------------------------------------------------------

const language = root.lang;
const plurals = new Intl.PluralRules(language);
const number = (value, options) => value.toLocaleString(language, options);
const digits = (value, count) => number(value, { minimumFractionDigits: count, maximumFractionDigits: count });
export const filled = (template, values) => template.replace(/%\((\w+)\)s/g, (_, name) => values[name]);
export const counting = (name, n, values) => filled(counted[name][plurals.select(n)], { ...values, n: number(n) });

export function say(text) {
  $("live").textContent = text;
}

export function tell(text) {
  page.note = text;
  paint();
}

export function hint() {
  if (page.message) return ends[page.message] || page.message; // the log has it in English
  if (withheld()) return filled(words.sayWhy, { vote: voteInWords() });
  if (page.state === "voted") return `${filled(words.saved, { vote: voteInWords() })} ${page.gold ? words.gold : page.standing}`.trim();
  if (page.state === "skipped") return words.skipped;
  if (page.battle && !page.counted) return words.notCounted;
  if (page.state !== "ready") return "";
  return page.stopped ? words.stopped : words.finished;
}

function voteInWords() {
  const better = (side) => filled(words.wasBetter, { name: page.models?.[side].name ?? side.toUpperCase() });
  return { model_a: better("a"), model_b: better("b"), tie: words.tie, both_bad: words.bothBad }[page.choice];
}

function factsOf({ latency_s: latency, tokens, cost }) {
  const small = { maximumSignificantDigits: 2, maximumFractionDigits: 6, roundingPriority: "lessPrecision" };
  const known = [];
  if (latency !== null) known.push(filled(words.firstToken, { seconds: digits(latency, 1) }));
  if (tokens !== null) known.push(counting("tokens", tokens));
  if (cost !== null) known.push(filled(words.dollars, { amount: cost >= 0.1 ? digits(cost, 2) : number(cost, small) }));
  return known.join(" · ");
}

function invited() {
  const { models } = page;
  if (page.goingOn || !page.counted) return models ? filled(words.askBoth, { a: models.a.name, b: models.b.name }) : words.askTheseTwo;
  if (!page.battle || ENDED.includes(page.state)) return invitation;
  return recorded() ? words.voteOrNew : words.askOrVote;
}

export function count() {
  const longest = Number(settings().longest);
  const length = box() ? [...box().value].length : 0;
  $("count").textContent = length > 0.8 * longest ? filled(words.characters, { n: number(length), longest: number(longest) }) : "";
  $("count").classList.toggle("over", length > longest);
}

// --- painting ---------------------------------------------------------------------------------

export function paint() {
  const { sending, state } = page;
  const data = root.dataset;
  data.state = sending || state === "created" ? "waiting" : state;
  data.sending = sending || "no";
  data.counted = String(page.counted && sending !== "continue");
  data.later = String(page.turn > 1);
  data.rest = String(page.rest);
  data.choice = ["voted", "saving"].includes(state) && page.choice ? page.choice : "none";
  data.gold = String(page.gold);
  data.names = withheld() ? "withheld" : "open";
  SIDES.forEach(paintSide);
  for (const outcome of OUTCOMES) {
    const button = $(`vote-${outcome}`);
    if (!button) continue;
    button.setAttribute("aria-disabled", String(data.state !== "ready"));
    button.setAttribute("aria-pressed", String(page.choice === outcome));
  }
  document.querySelector("[data-do=go-on]").setAttribute("aria-pressed", String(page.goingOn));
  if ($("send")) $("send").setAttribute("aria-disabled", String(!canSend()));
  if (box()) box().placeholder = invited();
  $("asked").textContent = page.prompt;
  $("hint").textContent = hint();
  $("note").textContent = page.note;
  count();
  announce("paint");
  hushIfChanged();
}

function paintSide(side) {
  const model = page.models?.[side];
  const whole = model && !page.sending && !running(); // nothing is told of an answer that runs
  const facts = whole ? factsOf(model) : "";
  const letter = side.toUpperCase();
  root.dataset[side] = progress(side);
  $(`name-${side}`).textContent = $(`name-${side}`).title = model?.name ?? "";
  $(`facts-${side}`).textContent = $(`tab-${side}`).querySelector(".facts").textContent = facts;
  $(`tab-${side}`).querySelector(".label").textContent = model ? `${letter} · ${model.name}` : letter;
  $(`cut-${side}`).textContent = (whole && cuts[model.cut]) || "";
  $(`followed-${side}`).replaceChildren(...(whole ? page.followed : []).map((one) => {
    const [mark, word] = { true: ["✓", words.followed], false: ["✗", words.notFollowed], null: ["?", words.notKnown] }[one[side]];
    const chip = document.createElement("li");
    chip.dataset.mark = mark;
    chip.textContent = `${mark} ${filled(word, { what: kinds[one.id] })}`;
    return chip;
  }));
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
  face = [page.sending || running() ? "running" : page.state, page.rest, withheld(), root.dataset.why].join();
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
