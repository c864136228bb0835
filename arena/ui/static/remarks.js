// Remarks beside a vote, in the form of "Why?". They go on their own, once the vote is safe; before
// the names are shown, all of them go with the request for the names.
import { all, byKey, data, focusPrompt, hush, place, say, tell, when, withheld, words,
  $ } from "./page.js";
import { api, send } from "./stream.js";

const drafts = new Map(); // battle -> what is remarked beside its vote and not saved yet
let sent = Promise.resolve(); // one after the other, so that the last word is the last to arrive

function written() {
  const form = new FormData($("remarks"));
  const [reasons_a, reasons_b] = ["reasons_a", "reasons_b"].map((name) => form.getAll(name));
  return { ...Object.fromEntries(form), reasons_a, reasons_b };
}

function write(values) {
  for (const input of all("#remarks input")) {
    const given = [values[input.name] ?? []].flat().map(String);
    if (input.id === "comment") input.value = given.join();
    else input.checked = given.includes(input.value);
  }
}

// After a click the focus goes back: what is typed then is no reason.
function onChange({ target }) {
  drafts.set(data.battle, written());
  if (!withheld()) remark();
  if (target !== $("comment") && !byKey()) focusPrompt();
}

function onSubmit(event) {
  event.preventDefault();
  if (withheld() || data.remarks === "unsaved") remark();
  if (!withheld()) focusPrompt();
}

function remark() {
  const { battle } = data;
  const values = drafts.get(battle) || {};
  sent = sent.then(() => deliver(battle, values));
}

async function deliver(battle, values) {
  const answer = await send(api(battle, "/remarks?html=1"), values, { keepalive: true });
  if (answer.vote && drafts.get(battle) === values) drafts.delete(battle);
  if (battle !== data.battle || data.state !== "voted") return;
  data.remarks = answer.vote ? "saved" : "unsaved";
  if (!answer.vote) return tell(`${words.remarksUnsaved} ${answer.detail || ""}`.trim());
  if (withheld()) return showNames(answer.vote.html);
  tell("");
  say(words.remarked);
}

function showNames(html) {
  const held = document.activeElement?.closest("[data-do=names], #why");
  place(html);
  if (held) focusPrompt();
  sendLeft(); // what was remarked meanwhile
}

function sendLeft() {
  if (drafts.has(data.battle)) remark();
}

when("start", () => {
  $("remarks").addEventListener("change", onChange);
  $("remarks").addEventListener("submit", onSubmit);
  const summary = $("why").firstElementChild;
  summary.addEventListener("click", () => hush()); // at once: it opens later
  $("why").addEventListener("toggle", () => {
    if (!$("why").open || !byKey() || document.activeElement !== summary) return;
    all("#remarks input").find((control) => control.offsetParent)?.focus({ preventScroll: true });
  });
  addEventListener("pagehide", sendLeft);
});

when("close-why", () => {
  $("why").open = false;
  $("why").firstElementChild.focus({ preventScroll: true });
});

when("leaving", () => {
  sendLeft();
  $("why").open = false;
});

when("placed", () => {
  if (data.asks === "reasons") $("why").open = true;
});

when("loaded", (saved) => {
  const draft = drafts.get(data.battle);
  data.remarks = draft ? "unsaved" : "saved";
  write(draft || saved || {});
});
