// Votes: kept in this browser until the arena has confirmed them, and sent again until it has.
import { OUTCOMES, address, data, focusPrompt, keep, pause, place, recall, running, tell, votable,
  when, words } from "./page.js";
import { api, follow, refusal, send } from "./stream.js";

const VOTES = "arena.votes"; // in localStorage: votes not yet confirmed, by battle
const underway = new Set(); // battles whose votes are being sent

const stored = () => recall(localStorage, VOTES) || {};

function store(battle, cast) {
  const { [battle]: _, ...others } = stored();
  keep(localStorage, VOTES, cast ? { ...others, [battle]: cast } : others);
}

function vote(outcome) {
  if (running() && OUTCOMES.includes(outcome)) return tell(words.stopFirst);
  if (!votable()) return;
  const cast = { outcome, key: newKey() };
  store(data.battle, cast);
  save(cast);
  focusPrompt();
}

// 32 hexadecimal digits; pages over plain HTTP on another host have no randomUUID.
function newKey() {
  const bytes = Array.from(crypto.getRandomValues(new Uint8Array(16)));
  return bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function save(cast) {
  Object.assign(data, { state: "saving", choice: cast.outcome });
  tell("");
  deliver(data.battle, cast);
}

// Until the arena has answered, not a proxy, it may be saved or not: its key lets us repeat it.
async function deliver(battle, cast) {
  if (underway.has(battle)) return;
  underway.add(battle);
  const isSaving = () => battle === data.battle && data.state === "saving";
  for (let tries = 0; underway.has(battle); tries += 1) {
    const answer = await send(api(battle, "/vote?html=1"), cast);
    const refused = answer.title && answer.status < 500 && ![401, 408, 429].includes(answer.status);
    if (answer.html || refused) {
      underway.delete(battle);
      store(battle, null);
      if (answer.html && isSaving()) place(answer.html);
      else if (battle === data.battle) follow(battle, answer.ok ? "" : refusal(answer));
    } else {
      if (isSaving()) tell(words.unsaved);
      await pause(Math.min(1000 * 2 ** tries, 30000));
    }
  }
}

when("vote", vote);
when("skip", () => vote("skip"));
when("start", () => {
  for (const [battle, cast] of Object.entries(stored())) deliver(battle, cast);
});

when("placed", () => {
  if (data.state === "voted" && data.names === "open") address(data.battle, true);
  const cast = data.state === "ready" && stored()[data.battle];
  if (cast) save(cast);
});
