// Rating by keys and taps. Without this script the forms work as they are.
"use strict";

const choose = document.getElementById("choose");
const said = document.getElementById("said");
const unsaved = document.querySelector(".unsaved");
const QUIET_MS = 600; // in which a second tap, or the same key again, belongs to the first
const PRESSED = "arena.pressed"; // in sessionStorage: the key that led to this page
const led = recall(PRESSED);
let pressed = "";
let quiet = 0; // the timer that ends data-quiet
let sending = false;

function recall(name) {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null; // storage is forbidden
  }
}

function keep(name, value) {
  try {
    sessionStorage.setItem(name, value);
  } catch {
    // Storage is full or forbidden.
  }
}

// A page that has come under a finger does not react at once. The stylesheet alone does that, too, but
// does not know of the taps that follow.
function hush() {
  document.documentElement.dataset.quiet = "";
  clearTimeout(quiet);
  quiet = setTimeout(() => { delete document.documentElement.dataset.quiet; }, QUIET_MS);
}

// Saved is saved: what did not arrive stays on the page, and can be sent again.
async function send(form, submitter) {
  if (sending) return;
  sending = true;
  keep(PRESSED, pressed);
  const body = new URLSearchParams(new FormData(form, submitter));
  try {
    const answer = await fetch(form.action, { method: "POST", body, headers: { Accept: "text/html" } });
    if (answer.redirected) {
      location.assign(answer.url);
      return;
    }
    if (answer.status === 503) throw new Error("not saved");
    refused(form, submitter);
  } catch {
    sending = false;
    unsaved.hidden = false;
    unsaved.scrollIntoView({ block: "center" });
    if (submitter) submitter.focus();
  }
}

// What was not taken is sent as without this script: the page that comes says why, from its top.
function refused(form, submitter) {
  if (submitter?.name) {
    const { name, value } = submitter;
    form.append(Object.assign(document.createElement("input"), { type: "hidden", name, value }));
  }
  form.submit();
}

for (const form of [choose, said]) {
  form?.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form, event.submitter);
  });
}

const typing = (target) => target.closest("textarea, select, input[type=text]");

document.addEventListener("pointerdown", () => {
  pressed = "";
  if ("quiet" in document.documentElement.dataset) hush();
}, true);

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || typing(event.target)) return;
  const echo = event.code === led && "quiet" in document.documentElement.dataset;
  if (event.repeat || echo) {
    if (echo || ["Enter", " "].includes(event.key)) event.preventDefault();
    return;
  }
  pressed = event.code;
  if (event.key === "Enter" && said && !event.target.closest("a, summary")) {
    event.preventDefault();
    said.requestSubmit(document.getElementById("next"));
    return;
  }
  // Where something can be written, a character is text: the comment takes it.
  if (said) {
    if (event.key.length === 1 && event.key !== " ") document.getElementById("comment")?.focus();
    return;
  }
  if (ranking?.takes(event)) {
    event.preventDefault();
    return;
  }
  const control = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (control && event.key !== "Enter") {
    event.preventDefault();
    control.click();
  }
});

// An order by taps: each tap gives the next place.
class Ranking {
  constructor(form) {
    this.selects = [...form.querySelectorAll("select")];
    this.cards = [...document.querySelectorAll("article[data-answer]")];
    this.order = []; // answers in the order of their taps, each with its place
    this.even = false;
    form.querySelector(".scripted").hidden = false;
    for (const card of this.cards) {
      card.addEventListener("click", (event) => {
        if (!event.target.closest("a") && !String(getSelection())) this.tap(Number(card.dataset.answer));
      });
    }
    for (const select of this.selects) select.addEventListener("change", () => { this.order = []; this.show(); });
  }

  tap(answer) {
    if (answer >= this.selects.length || this.order.some((one) => one.answer === answer)) return;
    const last = this.order.at(-1)?.place ?? 0;
    this.order.push({ answer, place: this.even && last ? last : last + 1 });
    this.even = false;
    this.write();
  }

  back() {
    this.order.pop();
    this.write();
  }

  write() {
    for (const select of this.selects) select.value = "";
    for (const { answer, place } of this.order) this.selects[answer].value = String(place);
    this.show();
  }

  show() {
    for (const card of this.cards) {
      const place = this.selects[Number(card.dataset.answer)].value;
      card.classList.toggle("better", place !== "");
      card.querySelector("h2").dataset.place = place;
    }
  }

  takes(event) {
    const letter = event.key.length === 1 ? event.key.toUpperCase().charCodeAt(0) - 65 : -1;
    if (event.key === "Enter") {
      if (event.target.closest("button, a")) return false;
      choose.requestSubmit(choose.querySelector("[data-key=Enter]"));
    } else if (event.key === "Backspace") this.back();
    else if (event.key === "=") this.even = true;
    else if (letter >= 0 && letter < this.selects.length) this.tap(letter);
    else return false;
    return true;
  }
}

// Steps of agents are read side by side: both open and close together.
const folds = [...document.querySelectorAll("details.steps")];
for (const fold of folds) {
  fold.addEventListener("toggle", () => {
    for (const other of folds) other.open = fold.open;
  });
}

// Figures follow the ratings while somebody looks, and nothing in them has the focus.
async function follow(live) {
  if (document.hidden || live.contains(document.activeElement)) return;
  const answer = await fetch(location.href).catch(() => null);
  if (!answer?.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  live.replaceChildren(...(page.getElementById("live")?.childNodes ?? live.childNodes));
}

const live = document.getElementById("live");
if (live) setInterval(follow, 20_000, live);

const ranking = choose?.querySelector("select") ? new Ranking(choose) : null;
hush();
document.getElementById("next")?.focus({ preventScroll: true });
said?.scrollIntoView({ block: "nearest" });
