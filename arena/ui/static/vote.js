// Votes: kept until the arena has confirmed them, sent again until it has, and the names after them.
import { OUTCOMES, address, counting, filled, focusPrompt, hint, keep, page, paint, recall, running, say, tell, settings,
  votable, when, words } from "./page.js";
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

async function deliver(battle, cast, tries) {
  clearTimeout(waiting.get(battle));
  // Without an answer the vote may or may not be saved, and the key makes it safe to repeat.
  const response = await send(api(battle, "/vote"), cast);
  if (!response || response.status >= 500 || response.status === 429) {
    if (battle === page.battle && page.state === "saving") tell(words.unsaved);
    waiting.set(battle, setTimeout(() => deliver(battle, cast, tries + 1), Math.min(1000 * 2 ** tries, 30000)));
    return;
  }
  store(battle, null);
  const body = await response.json().catch(() => ({}));
  if (battle !== page.battle) return;
  if (response.ok) return page.state === "saving" ? reveal(body) : load(battle);
  await load(battle);
  if (page.state === "saving") page.state = "ready";
  tell(body.detail || body.title || words.voteNotTaken);
}

export function deliverAll() {
  for (const [battle, cast] of Object.entries(stored())) deliver(battle, cast, 0);
}

function reveal({ outcome, models, gold }) {
  Object.assign(page, { choice: outcome, state: outcome === "skip" ? "skipped" : "voted", message: null, note: "" });
  if (page.state === "voted") countVote();
  showNames(models, gold);
}

export function showNames(models, gold) {
  Object.assign(page, { models, gold });
  paint();
  say(models ? `${hint()} ${filled(words.names, { a: models.a.name, b: models.b.name })}` : hint());
  if (!models || page.state !== "voted") return;
  address(page.battle, true);
  check(page.battle);
  if (!gold) stand(page.battle);
}

// The votes in the head, by one more.
function countVote() {
  const cast = document.querySelector(".cast");
  cast.dataset.votes = Number(cast.dataset.votes) + 1;
  cast.textContent = counting("votes", Number(cast.dataset.votes));
  cast.hidden = false;
}

// Which instructions of the prompt the answers follow, where that can be checked.
async function check(battle) {
  if (settings().instructed !== "true" || page.gold) return;
  const body = await got(api(battle, "/instructions"));
  if (battle !== page.battle || page.state !== "voted") return;
  if (!body) return tell(words.notChecked);
  page.followed = body.instructions;
  paint();
}

// How the model that was chosen stands; nothing where no rank is ruled out.
async function stand(battle) {
  const chosen = { model_a: "a", model_b: "b" }[page.choice];
  const board = chosen && await got("/api/v1/leaderboard");
  if (!board || battle !== page.battle || page.state !== "voted") return;
  const row = board.ratings.find(({ model }) => model === page.models[chosen].id);
  if (!row || row.rank_low === null) return;
  const { rank_low: low, rank_high: high } = row;
  page.standing = counting(low === high ? "rank" : "ranks", row.votes, { rank: low, low, high, of: board.ratings.length });
  paint();
}

async function got(url) {
  const response = await fetch(url).catch(() => null);
  return response?.ok ? response.json() : null;
}

when("settled", () => {
  if (page.state === "voted" && page.models) {
    address(page.battle, true);
    check(page.battle);
  }
  const cast = page.state === "ready" && stored()[page.battle];
  if (cast) save(cast);
});
