// The controls of the battle page: keys, clicks, the prompt, and the start.
import { OUTCOMES, addressed, all, box, canSend, count, fill, hush, invite, keep, page, paint, recall, reset, rests, root,
  running, settings, uses, votable, withheld, words, $ } from "./page.js";
import { addPanes, copy } from "./answer.js";
import { again, ask, clear, goOn, open, regenerate, sendPrompt, showRest, startOver, stop, watchOver, writtenBy } from "./stream.js";
import { deliverAll, vote } from "./vote.js";
import { askForNames, closeWhy, listen, sendLeft } from "./remarks.js";

const DRAFT = "arena.draft"; // in sessionStorage: a prompt that was not sent yet
const IN_WHY = "#why[open]";
const FIELDS = "textarea, select, input:not([type=checkbox], [type=radio]), [contenteditable]";
let pressed = ""; // the key that was a shortcut or pressed a button last

const sheet = (id) => () => {
  $(id).showModal();
  hush();
};
const DO = { again, regenerate, stop, rest: showRest, "go-on": goOn, new: startOver, copy: (button) => copy(location.href, button),
  answer: (button) => copy(writtenBy(button.dataset.side), button), wide,
  reload: () => location.assign(page.battle ? `/?b=${page.battle}` : "/"), // a voted battle's own page has no prompt
  skip: () => vote("skip"), help: sheet("help"), prompts: sheet("prompts") };

function wide({ dataset: { side } }) {
  root.dataset.wide = root.dataset.wide === side ? "no" : side;
  for (const button of all("[data-do=wide]")) button.setAttribute("aria-pressed", root.dataset.wide === button.dataset.side);
}

// --- keys -------------------------------------------------------------------------------------

function onKey(event) {
  uses("key");
  if (event.target === box()) return onPromptKey(event);
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest(FIELDS) && !(event.target === $("comment") && event.key === "Escape")) return;
  const button = ["Enter", " "].includes(event.key) && event.target.closest("input, a, button, summary");
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
  return target.closest(IN_WHY) && $("comment").offsetParent ? $("comment") : document.querySelector("#first textarea, #prompt textarea");
}

// A key that is held, or pressed twice, presses a button once.
function onButtonKey(event, button) {
  if (event.repeat || rests(button)) event.preventDefault();
  else pressed = event.code;
}

// A character is a key on the vote buttons alone, where only keys put the focus.
function deedOf(event) {
  const { target, key } = event;
  const group = target.closest("#votes, .reasons");
  if (group && ["ArrowLeft", "ArrowRight"].includes(key)) return () => besides(event, group);
  if (event.repeat) return null;
  if (key === "Escape") return running() ? stop : target.closest(IN_WHY) ? closeWhy : votable() && !root.dataset.quiet && toVotes;
  if (key === "Enter") return withheld() && askForNames;
  const outcome = target.closest("#votes") && OUTCOMES[Number(key) - 1];
  return outcome && (() => vote(outcome));
}

function toVotes() {
  $("votes").focus({ preventScroll: true });
}

function besides({ target, key }, group) {
  const buttons = Array.from(group.querySelectorAll("input, button"));
  buttons[buttons.indexOf(target) + (key === "ArrowRight" ? 1 : -1)]?.focus();
}

// The key that has just voted is not typed, nor does it send.
function onPromptKey(event) {
  if (event.isComposing) return;
  const echo = event.code === pressed && (event.repeat || root.dataset.quiet);
  if (event.key === "Enter") event.stopPropagation(); // Shift+Enter stays a new line
  else if (!echo) return;
  if (event.shiftKey && !echo) return;
  event.preventDefault();
  if (echo || event.repeat) return;
  if (withheld() && !box().value.trim()) askForNames();
  else sendPrompt();
}

// --- clicks and scrolling ---------------------------------------------------------------------

function onPointer(event) {
  uses(event.pointerType);
  pressed = "";
  if (root.dataset.quiet) hush(root.dataset.quiet); // tap, tap, tap
}

function onClick(event) {
  const button = event.target.closest("button, a");
  if (!button) return;
  const [, kind, name] = /^(vote|do)-(.+)$/.exec(button.id) || [];
  if (button.id === "send") sendPrompt();
  else if (kind === "vote") vote(name);
  else if (kind === "do" || button.dataset.do) DO[name || button.dataset.do]?.(button); // the others send a form
  else if ("ask" in button.dataset) onPromptChosen(button);
  else if (button.id.startsWith("tab-")) showPane(button.id.slice(-1));
  else if (button.matches('#panes a[href^="#"]')) event.preventDefault();
}

function onPromptChosen(button) {
  button.closest("dialog")?.close();
  if (canSend()) ask(button.textContent, "new");
}

function onSearch({ target }) {
  const wanted = target.value.toLowerCase().split(/\s+/);
  const items = all("#prompts li");
  for (const item of items) item.hidden = !wanted.every((word) => item.textContent.toLowerCase().includes(word));
  $("prompts-none").hidden = items.some((item) => !item.hidden);
}

function showPane(side) {
  const strip = $("panes");
  const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
  strip.scrollTo({ left: $(`pane-${side}`).offsetLeft - strip.offsetLeft, behavior });
}

function onSwipe({ target: strip }) {
  const atB = strip.scrollLeft > strip.clientWidth / 2;
  $("tab-a").setAttribute("aria-selected", String(!atB));
  $("tab-b").setAttribute("aria-selected", String(atB));
}

// --- the start --------------------------------------------------------------------------------

function onAddress() {
  const battle = addressed();
  if (battle && battle === page.battle) return;
  if (battle) open(battle);
  else clear();
}

function start() {
  // Gradio's own look for Markdown would outweigh that of answers.
  for (const around of all("#battle :has(arena-battle)")) around.className = "";
  addPanes();
  root.dataset.recorded = settings().recorded;
  root.dataset.readable = settings().readable;
  $("panes").addEventListener("scroll", onSwipe, { passive: true });
  document.addEventListener("keydown", onKey, true);
  document.addEventListener("pointerdown", onPointer, true);
  document.addEventListener("mousedown", (event) => event.target.closest("#votes") && event.preventDefault());
  for (const dialog of all("dialog")) dialog.addEventListener("close", () => hush());
  document.addEventListener("click", onClick);
  listen();
  addEventListener("popstate", onAddress);
  addEventListener("pagehide", sendLeft);
  addEventListener("online", () => {
    deliverAll();
    watchOver(0);
  });
  setInterval(() => watchOver(), 1000);
  $("prompts-search")?.addEventListener("input", onSearch);
  const battle = addressed();
  if (battle) open(battle);
  else clear();
  deliverAll();
  whenPrompt();
}

// Gradio puts the prompt into the page when it is ready.
function whenPrompt() {
  if (!box() || OUTCOMES.some((outcome) => !$(`vote-${outcome}`))) return requestAnimationFrame(whenPrompt);
  const early = document.querySelector("#first textarea");
  invite(early.placeholder);
  box().setAttribute("aria-label", words.prompt);
  Object.assign($("votes"), { tabIndex: -1, role: "group", ariaLabel: words.choice });
  box().addEventListener("input", () => {
    pressed = "";
    keep(sessionStorage, DRAFT, box().value);
    count();
  });
  fill(early.value || recall(sessionStorage, DRAFT) || "");
  if (document.activeElement === early || matchMedia("(pointer: fine)").matches) box().focus();
  $("first").remove();
  paint();
}

reset();
customElements.define("arena-battle", class extends HTMLElement {
  connectedCallback() {
    // Its parts come with it, but after it when the page's own HTML brings it.
    queueMicrotask(start);
  }
});
