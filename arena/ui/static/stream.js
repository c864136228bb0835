// The battle on the page: asks for it, loads it, follows its events, and goes on when they are lost.
import { SIDES, address, announce, box, canSend, fill, hush, page, paint, parsed, place, ready, recorded, reset,
  running, say, tell, wipe, words, $ } from "./page.js";
import { keepUp, panes } from "./answer.js";

const VERSION = import.meta.url.split("/").at(-2); // of this page's files
const SILENCE_MS = 5000; // after which a running battle is asked about
let source = null; // the events of the battle
let heardAt = 0; // when they last came
let loads = 0;
let refusals = 0; // how often in a row the events were refused

export const api = (battle, path = "") => `/api/v1/battles/${encodeURIComponent(battle)}${path}`;

// Sends and says in words why it was refused; null if it was.
async function post(url, body) {
  const response = await send(url, body);
  const answer = response ? await response.json().catch(() => ({})) : {};
  if (response?.ok) return answer;
  page.sending = null;
  tell(response ? answer.detail || answer.title || words.notTaken : words.unsent);
  return null;
}

// Gives null where nothing is known of it: it never arrived, or its answer got lost.
export function send(url, body, options) {
  const headers = { "Content-Type": "application/json" };
  return fetch(url, { method: "POST", headers, body: body && JSON.stringify(body), ...options }).then(compared).catch(() => null);
}

// The arena may be of another version than the page, which was loaded before an update.
function compared(response) {
  const theirs = response.headers.get("x-arena-page");
  if (theirs) $("updated").hidden = theirs === VERSION;
  return response;
}

// --- loading ----------------------------------------------------------------------------------

// A battle as the API tells it: after a load, and where it has ended without taking a vote.
function take(body) {
  const latest = body.turns.at(-1);
  const same = body.battle_id === page.battle && body.turn === page.turn;
  if (body.battle_id !== page.battle) page.goingOn = false;
  if (!same) page.attempt = 0;
  Object.assign(page, { battle: body.battle_id, turn: body.turn, state: body.state, prompt: latest.prompt, sending: null });
  for (const side of SIDES) {
    const pane = panes[side];
    pane.history.replaceChildren();
    for (const turn of body.turns.slice(0, -1)) pane.remember(turn.prompt, [parsed(turn[side].html)]);
    if (!running()) pane.whole(latest[side].html);
    else if (!same) pane.clear();
    page.done[side] = latest[side].status !== "streaming";
    if (!same) pane.toTop(body.turn > 1);
  }
  announce("taken", body.remarks);
  place(body.html);
}

async function read(battle) {
  const response = compared(await fetch(`${api(battle)}?html=1`));
  if (response.ok) return response.json();
  const problem = await response.json().catch(() => ({}));
  throw Object.assign(new Error(problem.detail || words.notShown), { status: response.status });
}

// An answer on the page as it was written.
export async function writtenBy(side) {
  return (await read(page.battle)).turns.at(-1)[side].text;
}

export async function load(battle) {
  heardAt = Date.now();
  const number = ++loads;
  let body;
  try {
    body = await read(battle);
  } catch (failure) {
    if (failure.status === 404) missing(page.state === "created" ? words.noCookie : failure.message);
    else if (page.battle === battle) {
      tell(words.away);
      if (page.state === "opening") setTimeout(() => page.battle === battle && load(battle), 2000);
    }
    return;
  }
  if (page.battle !== battle || number !== loads) return; // a later one knows more
  take(body);
  if (running()) follow();
  else announce("settled");
}

function missing(message) {
  clear({ state: "missing" });
  say($("hint").textContent = message);
}

export function open(battle) {
  clear({ battle, state: "opening" });
  load(battle);
}

export function clear(values) {
  leave();
  announce("leaving");
  for (const side of SIDES) {
    panes[side].clear();
    panes[side].history.replaceChildren();
  }
  wipe();
  reset(values);
  paint();
}

// --- events -----------------------------------------------------------------------------------

function leave() {
  source?.close();
  source = null;
}

function follow() {
  leave();
  heardAt = Date.now();
  const { battle } = page;
  source = new EventSource(`${api(battle)}/events?html=1`);
  const on = (name, act) => source.addEventListener(name, (event) => {
    if (battle !== page.battle) return;
    heardAt = Date.now();
    refusals = 0;
    if ([words.away, words.busy].includes(page.note)) tell("");
    renew(event.lastEventId);
    act(JSON.parse(event.data));
  });
  on("delta", ({ side, text }) => write(side, (pane) => pane.grow(text)));
  on("blocks", ({ side, blocks, tail }) => write(side, (pane) => {
    for (const [index, html] of blocks) pane.set(index, html);
    pane.setTail(tail);
  }));
  on("rest", () => { page.rest = true; paint(); });
  on("done", ({ side }) => {
    page.done[side] = true;
    paint();
  });
  on("state", (body) => {
    leave();
    page.done = { a: true, b: true };
    if (body.turns) take(body);
    else place(body.html);
    say(page.live);
    announce("settled");
  });
  source.onerror = () => {
    if (source?.readyState !== EventSource.CLOSED) return;
    leave();
    refusals += 1;
    if (refusals > 1) tell(words.busy);
    setTimeout(() => battle === page.battle && running() && load(battle), Math.min(500 * 2 ** refusals, 15000));
  };
}

// Another attempt, asked for elsewhere, begins again.
function renew(id) {
  const attempt = Number(id.split(".")[1] || 0);
  if (page.attempt && attempt !== page.attempt) for (const side of SIDES) panes[side].clear();
  page.attempt = attempt;
}

function write(side, act) {
  const first = panes[side].empty || page.state === "created";
  act(panes[side]);
  if (first) {
    page.state = "streaming";
    paint();
  }
  keepUp();
}

// A stream may be lost without a word; a page may have slept.
export async function watchOver(silence = SILENCE_MS) {
  const { battle } = page;
  if (!battle || !running() || Date.now() - heardAt < silence) return;
  heardAt = Date.now();
  try {
    const { state } = await read(battle);
    if (battle !== page.battle || !running()) return;
    if (!running(state)) {
      leave();
      load(battle);
    } else {
      if (!source && !refusals) follow();
      if (page.note === words.away) tell("");
    }
  } catch {
    if (battle === page.battle && running()) tell(words.away);
  }
}

// --- asking -----------------------------------------------------------------------------------

// What stands in the panes becomes history, and the next answers begin.
function begin(battle, turn, prompt, further) {
  for (const side of SIDES) {
    const pane = panes[side];
    if (further && turn > page.turn) pane.remember(page.prompt, pane.answer.childNodes);
    else if (!further) pane.history.replaceChildren();
    pane.clear();
  }
  announce("leaving");
  const { known, both } = further ? page : { known: "false", both: "" };
  if (known === "false") wipe();
  reset({ battle, turn, prompt, state: "created", known, both });
  paint();
  for (const side of SIDES) panes[side].toTop(turn > 1);
  say(words.answering);
  follow();
}

function depart(what) {
  Object.assign(page, { sending: what, note: "" });
  paint();
  $("panes").focus({ preventScroll: true });
}

// Sends what the prompt holds; the server decides whether it may.
export function sendPrompt() {
  if (!canSend() || !box().value.trim()) return box().focus();
  ask(box().value, page.goingOn ? "continue" : page.state === "ready" ? "turn" : "new");
}

export async function ask(prompt, what) {
  const path = { turn: "/turns", continue: "/continue" }[what];
  const url = path ? api(page.battle, path) : "/api/v1/battles";
  depart(what);
  const opened = await post(url, { prompt });
  if (!opened) return;
  if (box().value === prompt) fill("");
  begin(opened.battle_id, opened.turn, prompt, what !== "new");
  address(opened.battle_id);
}

async function askAgain(deed) {
  const { battle, prompt } = page;
  depart(deed);
  const opened = await post(api(battle, `/${deed}`));
  if (opened) begin(battle, opened.turn, prompt, true);
  else load(battle);
}

export function regenerate() {
  if (ready()) askAgain("regenerate");
}

// A later turn is tried again where it stands; a first one in a battle of its own.
export function again() {
  if (page.sending || !["failed", "stopped", "interrupted"].includes(page.state)) return;
  if (page.turn > 1) askAgain("retry");
  else ask(page.prompt, "new");
}

export function goOn() {
  if (page.state !== "voted" || page.known === "false" || page.sending || recorded()) return;
  page.goingOn = !page.goingOn;
  paint();
  hush();
  if (page.goingOn) box().focus();
}

export function startOver() {
  if (page.sending || running()) return;
  clear();
  address("");
  say("");
  box().focus();
}

export async function stop() {
  const { battle } = page;
  if (running() && battle && await post(api(battle, "/stop")) && battle === page.battle && !source) load(battle);
}

// Both models have ended: what is still to be shown may come at once.
export async function showRest() {
  if (!running() || !page.rest) return;
  page.rest = false;
  paint();
  await post(api(page.battle, "/rest"));
}
