// Remarks beside a vote: reasons, how sure, a comment. They go on their own, once the vote is safe;
// before the names are shown, all of them go with the request for the names.
import { all, byKey, focusPrompt, page, paint, root, say, settings, when, withheld, words, $ } from "./page.js";
import { api, send } from "./stream.js";
import { showNames } from "./vote.js";

const remarked = new Map(); // battle -> what is remarked beside its vote

function on(battle) {
  if (!remarked.has(battle)) remarked.set(battle, { values: valuesOf({}), unsent: false, unsaved: false, sending: false });
  return remarked.get(battle);
}

function valuesOf({ reasons_a = [], reasons_b = [], comment = "", confidence = null, intent = null }) {
  return { reasons_a, reasons_b, comment, confidence, intent };
}

// After a click the focus goes back: what is typed then is no reason.
export function onRemarkButton({ dataset: { reason, side, remark, value } }, event) {
  const { values } = on(page.battle);
  if (reason) {
    const given = values[`reasons_${side}`];
    values[`reasons_${side}`] = given.includes(reason) ? given.filter((other) => other !== reason) : [...given, reason];
  } else {
    const chosen = remark === "confidence" ? Number(value) : value;
    values[remark] = values[remark] === chosen ? null : chosen;
  }
  changed();
  if (event.detail) focusPrompt();
}

export function toggleWhy() {
  page.why = !page.why;
  paint();
  const first = page.why && byKey() && all(".reasons button, .why button").find((control) => control.offsetParent);
  (first || document.querySelector("[data-do=why]")).focus({ preventScroll: true });
}

export function onComment() {
  const { values } = on(page.battle);
  if (values.comment === $("comment").value) return;
  values.comment = $("comment").value;
  changed();
}

export function onCommentKey(event) {
  if (!["Enter", "Escape"].includes(event.key) || event.isComposing) return;
  event.stopPropagation();
  event.preventDefault();
  if (event.repeat) return;
  onComment();
  if (event.key === "Escape") toggleWhy();
  else if (withheld()) askForNames();
  else focusPrompt();
}

function changed() {
  on(page.battle).unsent = true;
  paint();
  if (!withheld()) sendRemarks();
}

export function askForNames() {
  if (withheld()) sendRemarks();
}

// One at a time, so that the last word is the last to arrive.
export async function sendRemarks(battle = page.battle) {
  const mine = on(battle);
  if (mine.sending) return;
  Object.assign(mine, { sending: true, unsent: false });
  const response = await send(api(battle, "/remarks"), mine.values, { keepalive: true });
  const body = response ? await response.json().catch(() => ({})) : {};
  mine.sending = false;
  mine.unsaved = !response?.ok || !body.vote; // it may be saved or not: it can be sent again
  if (mine.unsaved) mine.unsent = true;
  else if (mine.unsent) return sendRemarks(battle);
  if (battle !== page.battle || page.state !== "voted") return;
  page.note = mine.unsaved ? `${words.remarksUnsaved} ${body.detail || ""}`.trim() : "";
  if (!mine.unsaved && withheld()) return reveal(body.vote);
  paint();
  if (!mine.unsaved) say(words.remarked);
}

function reveal({ models, gold }) {
  const held = document.activeElement?.closest("[data-do=names], .reasons, .why");
  showNames(models, gold);
  if (held) focusPrompt();
}

export function sendLeft() {
  if (page.battle && on(page.battle).unsent) sendRemarks();
}

// Reasons are asked for before the names, whether the answer was known after them.
function asked() {
  if (page.sending || page.state !== "voted" || !page.counted) return "none";
  if (withheld()) return "reasons";
  return { after: "all", before: "intent", off: "none" }[settings().reasons];
}

when("leaving", sendLeft);
when("taken", (saved) => {
  const mine = on(page.battle);
  if (saved && !mine.unsent && !mine.sending) mine.values = valuesOf(saved);
});
when("paint", () => {
  const { values, unsaved } = on(page.battle);
  const data = root.dataset;
  data.asks = asked();
  data.why = page.why ? data.asks : "none";
  data.remarks = unsaved ? "unsaved" : "saved";
  document.querySelector("[data-do=why]").setAttribute("aria-expanded", String(data.why !== "none"));
  for (const button of all("[data-reason], [data-remark]")) {
    const { reason, side, remark, value } = button.dataset;
    const given = reason ? values[`reasons_${side}`].includes(reason) : String(values[remark]) === value;
    button.setAttribute("aria-pressed", String(given));
  }
  if (document.activeElement !== $("comment")) $("comment").value = values.comment;
});
