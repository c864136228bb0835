// Votes: kept until the arena has confirmed them, sent again until it has, and the names after them.
import { OUTCOMES, address, focusPrompt, keep, page, paint, place, recall, running, say, tell, votable, when,
  words } from "./page.js";
import { api, load, send } from "./stream.js";

const VOTES = "arena.votes"; // in localStorage: votes not yet confirmed, by battle
const waiting = new Map(); // battle -> the timer of the next try

const stored = () => recall(localStorage, VOTES) || {};

function store(battle, cast) {
  const { [battle]: _, ...others } = stored();
  keep(localStorage, VOTES, cast ? { ...others, [battle]: cast } : others);
}

export function vote(outcome) {
  if (running() && OUTCOMES.includes(outcome)) return tell(words.stopFirst);
  if (!votable()) return;
  const cast = { outcome, key: newKey() };
  store(page.battle, cast);
  save(cast);
  focusPrompt();
}

function save(cast) {
  Object.assign(page, { state: "saving", choice: cast.outcome, note: "" });
  paint();
  deliver(page.battle, cast, 0);
}

// 32 hexadecimal digits; pages over plain HTTP on another host have no randomUUID.
function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const final = (status) => status < 500 && ![401, 408, 429].includes(status);

async function deliver(battle, cast, tries) {
  clearTimeout(waiting.get(battle));
  // Without an answer of the arena's the vote may or may not be saved, and the key makes it safe to
  // repeat. A proxy may answer with its own page, such as one to sign in at.
  const response = await send(api(battle, "/vote?html=1"), cast);
  const body = response && final(response.status) ? await response.json().catch(() => null) : null;
  if (!body) {
    if (battle === page.battle && page.state === "saving") tell(words.unsaved);
    waiting.set(battle, setTimeout(() => deliver(battle, cast, tries + 1), Math.min(1000 * 2 ** tries, 30000)));
    return;
  }
  store(battle, null);
  if (battle !== page.battle) return;
  if (response.ok) return page.state === "saving" ? reveal(body.html) : load(battle);
  await load(battle);
  if (page.state === "saving") page.state = "ready";
  tell(body.detail || body.title || words.notTaken);
}

export function deliverAll() {
  for (const [battle, cast] of Object.entries(stored())) deliver(battle, cast, 0);
}

// What follows a vote: the names, unless reasons are asked for before them.
export function reveal(html) {
  place(html);
  say(page.live);
  settle();
}

function settle() {
  if (page.state === "voted" && page.known === "true") address(page.battle, true);
  const cast = page.state === "ready" && stored()[page.battle];
  if (cast) save(cast);
}

when("settled", settle);
