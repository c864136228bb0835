// The battle on the page: asks for it, follows it until it has ended, and goes on when it is lost.
import { SIDES, address, addressed, announce, box, canSend, clear, data, fill, hush, pause, place,
  put, running, say, tell, when, words, $ } from "./page.js";
import { copy, panes } from "./answer.js";

const VERSION = import.meta.url.split("/").at(-2); // of this page's files
const SILENCE_MS = 9000; // the arena says more often that it is still there
let following = new AbortController(); // ends the connection, and what is tried after it

export const api = (battle, path = "") => `/api/v1/battles/${encodeURIComponent(battle)}${path}`;

// Gives the answer with its status: 0 where nothing is known of it, for it may have got lost.
export async function send(url, body, options) {
  const headers = { "Content-Type": "application/json" };
  const request = { method: "POST", headers, body: body && JSON.stringify(body), ...options };
  const response = await fetch(url, request).then(compared).catch(() => null);
  const answer = await response?.json().catch(() => null);
  return { ...answer, status: response?.status || 0, ok: Boolean(answer && response.ok) };
}

// The arena may be of another version than the page, which was loaded before an update.
function compared(response) {
  const theirs = response.headers.get("x-arena-page");
  if (theirs) $("updated").hidden = theirs === VERSION;
  return response;
}

export function refusal({ status, detail }) {
  return status ? detail || words.notTaken : words.unsent;
}

// --- following --------------------------------------------------------------------------------

// A note says why a battle is loaded again.
export async function follow(battle, note = "") {
  if (battle !== data.battle) announce("leaving");
  following.abort();
  following = new AbortController();
  const { signal } = following;
  Object.assign(data, { battle, further: "false" });
  for (let tries = 0; !signal.aborted; tries += 1) {
    const url = `${api(battle)}/events?html=1`;
    const response = await fetch(url, { signal }).then(compared).catch(() => null);
    if (response?.status === 404) return missing(await response.json().catch(() => ({})), signal);
    if (response?.ok) {
      if (await show(response.body, note)) return;
      tries = 0;
    }
    await pause(Math.min(500 * 2 ** tries, 15000));
    if (tries && !signal.aborted) tell(response ? words.busy : words.away);
  }
}

// Each connection begins with all there is. Gives whether the battle has ended.
async function show(stream, note) {
  const fresh = new Set(); // sides of which nothing has come yet
  for await (const [name, { side, ...body }] of events(stream)) {
    if (name === "battle") {
      begin(body, note);
      SIDES.forEach((one) => fresh.add(one));
    } else if (name === "blocks") {
      write(side, (pane) => {
        if (fresh.delete(side)) pane.clear();
        for (const [index, html] of body.blocks) pane.set(index, html);
        pane.setTail(body.tail);
      });
    } else if (name === "delta") {
      write(side, (pane) => pane.grow(body.text));
    } else if (name === "rest") {
      data.rest = "true";
    } else if (name === "state") {
      if (running()) place(body.html);
      return true;
    }
  }
  return false;
}

function begin({ html, remarks }, note) {
  const { round } = data;
  place(html);
  announce("loaded", remarks);
  tell(note);
  if (round === data.round) return;
  empty();
  for (const pane of Object.values(panes)) pane.toEnd(); // where a later answer begins at the top
}

function write(side, act) {
  const pane = panes[side];
  pane.change(() => act(pane), running() || data.later === "true");
  if (data[side] === "waiting" && !pane.empty) {
    Object.assign(data, { state: "streaming", [side]: "writing" });
  }
}

// A stream may be lost without a word, and a page may have slept: silence ends it.
async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  addEventListener("offline", () => reader.cancel(), { once: true });
  for (let begun = ""; ; ) {
    const silent = setTimeout(() => reader.cancel(), SILENCE_MS);
    const { done, value } = await reader.read().catch(() => ({ done: true }));
    clearTimeout(silent);
    if (done) return;
    const messages = (begun + value).split("\n\n");
    begun = messages.pop();
    for (const message of messages) {
      const [, name, body] = /^event: (.*)\ndata: (.*)$/m.exec(message) || []; // or a comment
      if (name) yield [name, JSON.parse(body)];
    }
  }
}

function missing({ detail }, signal) {
  if (signal.aborted) return;
  const message = data.sending === "no" ? detail || words.notShown : words.noCookie;
  leave({ state: "missing" });
  put("hint", message);
  say(message);
}

const empty = () => Object.values(panes).forEach((pane) => pane.clear());
function leave(values) {
  clear(values);
  empty();
}

function onAddress() {
  const battle = addressed();
  if (battle && battle === data.battle) return;
  leave(battle && { battle, state: "opening" });
  if (battle) follow(battle);
}

when("leaving", () => following.abort());
when("start", () => {
  onAddress();
  addEventListener("popstate", onAddress);
});

// An answer is copied as it was written.
when("answer", (button) => {
  const { side } = button.dataset;
  const battle = fetch(api(data.battle)).then((response) => response.json());
  copy(battle.then(({ turns }) => turns.at(-1)[side].text), button);
});

// --- asking -----------------------------------------------------------------------------------

// Asks for answers by the prompt, or again: "new", or the path of what this battle is asked for.
async function ask(what, prompt) {
  const { battle, state, counted } = data;
  Object.assign(data, { state: "waiting", sending: what });
  if (what === "continue") data.counted = "false";
  tell("");
  $("panes").focus({ preventScroll: true });
  const url = what === "new" ? "/api/v1/battles" : api(battle, `/${what}`);
  const answer = await send(url, prompt && { prompt });
  if (answer.ok) {
    if (box().value === prompt) fill("");
    follow(answer.battle_id);
    address(answer.battle_id);
  } else if (data.sending === what) {
    Object.assign(data, { state, counted, sending: "no" });
    if (answer.status && !prompt) follow(battle, refusal(answer));
    else tell(refusal(answer));
  }
}

// Sends what the prompt holds; the server decides whether it may.
when("send", () => {
  if (!canSend() || !box().value.trim()) return box().focus();
  const further = data.state === "ready" ? "turns" : "new";
  ask(data.further === "true" ? "continue" : further, box().value);
});

when("ask", (button) => {
  button.closest("dialog")?.close();
  if (canSend()) ask("new", button.textContent);
});

when("regenerate", () => ask("regenerate"));

// A later turn is tried again where it stands; a first one in a battle of its own.
when("again", () => {
  if (data.later === "true") ask("retry");
  else ask("new", $("asked").textContent);
});

when("go-on", () => {
  data.further = data.further !== "true";
  hush();
  if (data.further === "true") box().focus();
});

when("new", () => {
  leave();
  address("");
  box().focus();
});

async function order(what) {
  const answer = await send(api(data.battle, `/${what}`));
  if (!answer.ok) tell(refusal(answer));
}

when("stop", () => data.battle && order("stop"));

// Both models have ended: what is still to be shown may come at once.
when("rest", () => {
  data.rest = "false";
  order("rest");
});
