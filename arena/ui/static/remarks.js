// Remarks beside a vote, in the form of "Why?". They go on their own, once the vote is safe; before
// the names are shown, all of them go with the request for the names.
import { all, byKey, focusPrompt, hush, page, paint, root, say, settings, when, withheld, words, $ } from "./page.js";
import { api, send } from "./stream.js";
import { reveal } from "./vote.js";

const remarked = new Map(); // battle -> what is remarked beside its vote

function on(battle) {
  if (!remarked.has(battle)) remarked.set(battle, { values: {}, unsent: false, unsaved: false, sending: false });
  return remarked.get(battle);
}

function written() {
  const data = new FormData($("remarks"));
  const [reasons_a, reasons_b] = ["reasons_a", "reasons_b"].map((name) => data.getAll(name));
  return { reasons_a, reasons_b, comment: data.get("comment"), confidence: Number(data.get("confidence")) || null, intent: data.get("intent") };
}

function write(values) {
  $("remarks").reset();
  $("comment").value = values.comment || "";
  for (const [name, value] of Object.entries(values)) {
    for (const one of [value].flat()) {
      const control = $("remarks").querySelector(`[name=${name}][value="${one}"]`);
      if (control) control.checked = true;
    }
  }
}

// After a click the focus goes back: what is typed then is no reason.
function onChange({ target }) {
  Object.assign(on(page.battle), { values: written(), unsent: true });
  paint();
  if (!withheld()) sendRemarks();
  if (target !== $("comment") && !byKey()) focusPrompt();
}

function onSubmit(event) {
  event.preventDefault();
  if (withheld() || on(page.battle).unsent) sendRemarks();
  if (!withheld()) focusPrompt();
}

export function askForNames() {
  if (withheld()) sendRemarks();
}

export function closeWhy() {
  $("why").open = false;
  $("why").firstElementChild.focus({ preventScroll: true });
}

// One at a time, so that the last word is the last to arrive.
async function sendRemarks(battle = page.battle) {
  const mine = on(battle);
  if (mine.sending) return;
  Object.assign(mine, { sending: true, unsent: false });
  const response = await send(api(battle, "/remarks?html=1"), mine.values, { keepalive: true });
  const body = response ? await response.json().catch(() => ({})) : {};
  mine.sending = false;
  mine.unsaved = !response?.ok || !body.vote; // it may be saved or not: it can be sent again
  if (mine.unsaved) mine.unsent = true;
  else if (mine.unsent) return sendRemarks(battle);
  if (battle !== page.battle || page.state !== "voted") return;
  page.note = mine.unsaved ? `${words.remarksUnsaved} ${body.detail || ""}`.trim() : "";
  if (!mine.unsaved && withheld()) return showNames(body.vote.html);
  paint();
  if (!mine.unsaved) say(words.remarked);
}

function showNames(html) {
  const held = document.activeElement?.closest("[data-do=names], #why");
  reveal(html);
  if (held) focusPrompt();
}

export function sendLeft() {
  if (page.battle && on(page.battle).unsent) sendRemarks();
}

// Reasons are asked for before the names, whether the answer was known after them.
function asked() {
  if (page.sending || page.state !== "voted") return "none";
  if (withheld()) return "reasons";
  return { after: "all", before: "intent", off: "none" }[settings().reasons];
}

export function listen() {
  $("remarks").addEventListener("change", onChange);
  $("remarks").addEventListener("submit", onSubmit);
  $("why").firstElementChild.addEventListener("click", () => hush()); // at once: it opens later
  $("why").addEventListener("toggle", () => {
    if (!$("why").open || !byKey() || document.activeElement !== $("why").firstElementChild) return;
    all("#remarks input").find((control) => control.offsetParent)?.focus({ preventScroll: true });
  });
}

when("leaving", () => {
  sendLeft();
  $("why").open = false;
  write({});
});
when("taken", (saved) => {
  const mine = on(page.battle);
  if (saved && !mine.unsent && !mine.sending) mine.values = saved;
  write(mine.values);
});
when("paint", () => {
  const asks = asked();
  if (asks === "reasons" && root.dataset.asks !== asks) $("why").open = true;
  Object.assign(root.dataset, { asks, remarks: on(page.battle).unsaved ? "unsaved" : "saved" });
});
