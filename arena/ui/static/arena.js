// The battle page's script: sends prompts, votes, stops and reveals, and mends lost updates.
//
// The server writes the state of the battle as JSON into #news; everything else here follows
// from it. The stylesheet shows and hides by the data attributes of <html>, set in paint().
(() => {
  "use strict";

  // Gradio fills its blocks one by one: the script starts when all that it touches is there.
  const IDS = ["hint", "live", "prompt", "send", "tab-a", "tab-b", "name-a", "name-b", "scroll-a",
    "scroll-b", "note", "help", "news", "refresh", "turn-a", "turn-b", "battle", "intent"];
  const SIDES = ["a", "b"];
  const RUNNING = ["created", "streaming"];
  const ENDED = ["voted", "skipped", "failed", "stopped", "interrupted", "missing"];
  const STANDING = "Which answer is better? You see two anonymous models. Vote, and we tell you who.";
  const UNSAVED = "Your vote is not saved yet. We are trying again.";
  const NOT_COUNTED = "Not counted: you know who they are.";
  const AWAY = "We cannot reach the arena. What is written is kept, and we are trying again.";
  const UNSENT = "We cannot reach the arena. Your prompt is kept: send it again when you are back online.";
  const SILENCE_MS = 2000;
  const LEAD_MS = 1000;
  const VOTES = "arena.votes"; // in localStorage: votes not yet acknowledged, by battle
  const DRAFT = "arena.draft"; // in sessionStorage: Gradio reloads a page that lost its server

  const page = { battle: null, turn: 0, attempt: 0, counted: true, state: "empty", message: null,
    vote: null, choice: null, models: null, goingOn: false, a: {}, b: {} };
  let words = null; // said beside the vote bar until the state changes
  let sentAt = 0; // when something was asked for that has not come yet; 0 for nothing
  let sent = "none"; // what was: an intent(), "regenerate", "retry", or "unsure" if one of these got lost
  let heardAt = 0; // when the server last said anything about the battle
  let lastNews = "";
  let following = { a: true, b: true };
  let leadUntil = 0; // until when the latest prompt is kept on top of its pane

  const $ = (id) => document.getElementById(id);
  const all = (selector) => Array.from(document.querySelectorAll(selector));
  const running = () => RUNNING.includes(page.state);
  const narrow = matchMedia("(max-width: 799px)");
  const quietly = matchMedia("(prefers-reduced-motion: reduce)");

  // --- what the page shows -------------------------------------------------------------

  function paint() {
    if (!$("note")) return; // Gradio is taking the page down
    const data = document.documentElement.dataset;
    data.state = sentAt || page.state === "created" ? "waiting" : page.state;
    data.sent = sentAt ? sent : "none";
    data.counted = String(counted());
    data.first = String(page.turn < 2);
    for (const side of SIDES) {
      data[side] = sentAt && !kept(side) ? "waiting" : progress(page[side]);
      paintName(side);
    }
    box().placeholder = invitation();
    write("intent", intent());
    write("battle", page.battle || "");
    $("hint").textContent = hint();
    $("hint").classList.toggle("told", hint() !== STANDING);
    $("note").textContent = words || "";
    for (const button of all("[data-vote]")) {
      button.setAttribute("aria-disabled", String(data.state !== "ready"));
      button.setAttribute("aria-pressed", String(page.choice === button.dataset.vote));
    }
    document.querySelector("[data-do=go-on]").setAttribute("aria-pressed", String(page.goingOn));
    $("send").setAttribute("aria-disabled", String(!canSend()));
  }

  // Whether a vote on the battle would count; not where two go on after it.
  function counted() {
    return page.counted && !(sentAt && sent === "continue");
  }

  // What a prompt would be, sent now. The server decides whether it may.
  function intent() {
    if (page.goingOn) return "continue";
    return page.state === "ready" ? "turn" : "new";
  }

  function invitation() {
    if (page.goingOn || !page.counted) {
      if (!page.models || narrow.matches) return "Ask these two more…";
      return `Ask ${page.models.a.name} and ${page.models.b.name}…`;
    }
    if (!page.battle || ENDED.includes(page.state)) return ask;
    return recorded() ? "Vote, or start a new battle…" : "Ask these two more, or vote…";
  }

  // A complete answer stays when only the other side is asked again.
  function kept(side) {
    return sent === "retry" && page[side].status === "complete";
  }

  function progress(side) {
    if (!page.battle) return "none";
    if (side.status !== "streaming") return "done";
    return side.length ? "writing" : "waiting";
  }

  function paintName(side) {
    const model = page.models && !(sentAt && sent === "new") ? page.models[side] : null;
    const facts = model && !sentAt && !running();
    const tab = $(`tab-${side}`);
    $(`name-${side}`).textContent = model ? model.name : "";
    $(`facts-${side}`).textContent = facts ? factsOf(model, " to first token", "tokens") : "";
    tab.querySelector(".label").textContent =
      model ? `${side.toUpperCase()} · ${model.name}` : `Response ${side.toUpperCase()}`;
    tab.querySelector(".facts").textContent = facts ? factsOf(model, "", "tok") : "";
  }

  function factsOf(model, after, unit) {
    const known = [];
    if (model.latency_s !== null) known.push(`${model.latency_s.toFixed(1)} s${after}`);
    if (model.tokens !== null) known.push(`${model.tokens.toLocaleString("en")} ${unit}`);
    if (model.cost !== null) known.push(dollars(model.cost));
    return known.join(" · ");
  }

  function dollars(cost) {
    if (cost === 0) return "$0";
    return cost >= 0.1 ? `$${cost.toFixed(2)}` : `$${Number(cost.toPrecision(2)).toFixed(6).replace(/0+$/, "")}`;
  }

  function hint() {
    if (sentAt) return counted() ? STANDING : NOT_COUNTED;
    if (page.message) return page.message;
    if (page.state === "voted" && !page.vote) return STANDING; // the API is being asked
    if (page.state === "voted") return `Saved. Your vote: ${voteInWords()}.`;
    if (page.state === "skipped") return "Skipped. Nothing was counted, and the names stay hidden.";
    if (page.battle && !page.counted) return NOT_COUNTED;
    if (page.state !== "ready") return STANDING;
    const stopped = SIDES.some((side) => page[side].status === "stopped");
    return stopped ? "Stopped. You can vote on what you see." : "Both finished. You can vote.";
  }

  function voteInWords() {
    const name = (side) => (page.models ? page.models[side].name : side.toUpperCase());
    return { model_a: `${name("a")} was better`, model_b: `${name("b")} was better`,
      tie: "a tie", both_bad: "both were bad" }[page.choice];
  }

  function say(text) {
    $("live").textContent = text;
  }

  function tell(text) {
    words = text;
    paint();
    say(text);
  }

  // --- the battle, as the server tells it ----------------------------------------------

  function onNews() {
    const code = document.querySelector("#news code");
    heardAt = Date.now();
    if (!code || !code.textContent || code.textContent === lastNews) return;
    lastNews = code.textContent;
    const news = JSON.parse(lastNews);
    if (news.notice) {
      sentAt = 0;
      SIDES.forEach(letShrink);
      tell(news.notice);
    } else if (news.battle || !page.battle || news.state === "missing") {
      take(news);
    } // else: the empty page, asked for before the battle came
  }

  function take(news) {
    const before = { state: page.state, a: page.a, b: page.b };
    if (news.battle === page.battle && older(news)) return;
    if (news.battle !== page.battle || news.turn !== page.turn) begin(news);
    sentAt = 0;
    page.attempt = news.attempt || 0;
    page.a = news.a || {};
    page.b = news.b || {};
    if (!settled(news.state)) {
      page.state = news.state;
      page.message = news.message;
    }
    if (page.state !== before.state) words = null;
    paint();
    announce(before);
    const nameless = !page.counted && !page.models;
    if (page.battle && (nameless || !running())) window.setTimeout(check, page.state === "ready" ? 300 : 0);
    if (page.state === "ready") resumeVote();
  }

  // News of an earlier turn or attempt; while something is on its way, also of the present one.
  function older(news) {
    const ahead = (news.turn || 0) - page.turn || (news.attempt || 0) - page.attempt;
    return ahead < 0 || (ahead === 0 && sentAt && sent !== "unsure");
  }

  // A vote that is on its way, or that we have seen committed, stands over older news.
  function settled(state) {
    return state === "ready" && (page.state === "saving" || page.vote);
  }

  function begin(news) {
    const known = news.counted === false && page.models && { a: nameOf("a"), b: nameOf("b") };
    Object.assign(page, { battle: news.battle, turn: news.turn || 0, counted: news.counted !== false,
      state: "empty", vote: null, choice: null, models: known || null, goingOn: false });
    const live = RUNNING.includes(news.state);
    following = { a: live, b: live };
    if (page.turn > 1) leadUntil = Date.now() + LEAD_MS;
    else for (const side of SIDES) $(`scroll-${side}`).scrollTop = 0;
    if (news.battle) address(`?b=${encodeURIComponent(news.battle)}`);
    if (news.battle && sentAt) write("prompt", "");
  }

  function nameOf(side) {
    return { name: page.models[side].name, latency_s: null, tokens: null, cost: null };
  }

  function address(query) {
    history.replaceState(null, "", location.pathname + query);
  }

  function announce(before) {
    const ended = (side) => page[side].status && page[side].status !== "streaming";
    const was = (side) => before[side].status && before[side].status !== "streaming";
    if (running() && !RUNNING.includes(before.state)) say("Both models are answering.");
    if (page.state === before.state && !SIDES.some((side) => ended(side) && !was(side))) return;
    if (page.state === "ready") {
      if (!page.counted) say(`Both finished. ${NOT_COUNTED}`);
      else say(hint() === "Both finished. You can vote." ? "Both finished, you can vote." : hint());
    } else if (ENDED.includes(page.state)) {
      say(hint());
    } else if (running()) {
      // Both may end a moment apart: only a real difference is worth a word.
      window.setTimeout(() => {
        const alone = SIDES.filter(ended);
        if (running() && alone.length === 1) say(`Response ${alone[0].toUpperCase()} finished`);
      }, 800);
    }
  }

  // --- asking the API, for what an update may have lost ---------------------------------

  async function check(note = null) {
    const battle = page.battle;
    if (!battle) return;
    heardAt = Date.now();
    let seen;
    try {
      const response = await fetch(`/api/v1/battles/${encodeURIComponent(battle)}`);
      if (response.status === 404) return;
      if (!response.ok) throw new Error(String(response.status));
      seen = await response.json();
    } catch {
      if (running()) tell(AWAY);
      return;
    }
    if (battle !== page.battle) return;
    if (words === AWAY) {
      words = null;
      paint();
    }
    if (seen.vote) {
      reveal(seen.vote, note);
      return;
    }
    if (seen.models) {
      page.models = seen.models;
      paint();
    }
    if (behind(seen)) $("refresh").click();
  }

  function behind(seen) {
    const turn = seen.turns[seen.turns.length - 1];
    const shorter = SIDES.some((side) => [...turn[side].text].length > page[side].length);
    return shorter || seen.turn !== page.turn || (running() && seen.state !== page.state);
  }

  function watchOver() {
    if (Date.now() - heardAt < SILENCE_MS) return;
    if (running()) check();
    else if (sentAt) findSent();
  }

  // Gradio may miss that its stream has closed when an event begins at that moment; the next
  // event opens a new one, which brings what was missed.
  async function findSent() {
    heardAt = Date.now();
    try {
      await fetch("/look/tokens.css", { method: "HEAD", cache: "no-store" });
      if (sentAt) $("refresh").click();
    } catch {
      if (!sentAt || sent === "unsure") return;
      sentAt = 0;
      SIDES.forEach(letShrink);
      tell(UNSENT);
    }
  }

  // --- prompts ---------------------------------------------------------------------------

  const field = (id) => $(id).querySelector("textarea, input");
  const box = () => field("prompt");
  const recorded = () => Boolean($("prompts"));
  let ask = ""; // the invitation of an empty page

  function canSend() {
    return !sentAt && !running() && page.state !== "saving";
  }

  function write(id, text) {
    if (field(id).value === text) return;
    field(id).value = text;
    field(id).dispatchEvent(new Event("input", { bubbles: true }));
  }

  function send() {
    if (!canSend()) return;
    if (!box().value.trim()) {
      box().focus();
      return;
    }
    $("send").click();
  }

  // Runs on each click on Send, also on those made by send(): what it stops never reaches Gradio.
  function onSendClick(event) {
    if (!canSend() || !box().value.trim()) {
      event.preventDefault();
      event.stopImmediatePropagation();
      box().focus();
      return;
    }
    for (const echo of all(".echo")) echo.textContent = box().value;
    depart(intent());
    if (sent !== "new") {
      leadUntil = Date.now() + LEAD_MS;
      SIDES.forEach(holdHeight);
      SIDES.forEach(showTurn);
    }
    $("panes").focus({ preventScroll: true });
  }

  function depart(what) {
    sent = what;
    sentAt = heardAt = Date.now();
    words = null;
    paint();
  }

  function askFor(prompt) {
    write("prompt", prompt);
    window.setTimeout(send, 0);
  }

  // A later turn is tried again where it stands; a first one in a battle of its own.
  async function again() {
    if (page.turn > 1) return askAnew("retry");
    const response = await fetch(`/api/v1/battles/${encodeURIComponent(page.battle)}`).catch(() => null);
    if (!response || !response.ok) return tell(UNSENT);
    const seen = await response.json();
    askFor(seen.turns[seen.turns.length - 1].prompt);
  }

  function regenerate() {
    if (page.state === "ready" && !sentAt) askAnew("regenerate");
  }

  async function askAnew(deed) {
    const battle = page.battle;
    depart(deed);
    $("panes").focus({ preventScroll: true });
    let response = null;
    try {
      response = await fetch(`/api/v1/battles/${encodeURIComponent(battle)}/${deed}`, { method: "POST" });
    } catch {
      sent = "unsure"; // the next news tells
      tell(AWAY);
    }
    if (!response || battle !== page.battle) return;
    if (!response.ok) {
      const body = await response.json().catch(() => ({}));
      sent = "unsure";
      tell(body.detail || body.title || "The models were not asked again.");
    }
    $("refresh").click();
  }

  function goOn() {
    if (page.state !== "voted" || !page.models || sentAt || recorded()) return;
    page.goingOn = !page.goingOn;
    paint();
    if (page.goingOn) box().focus();
  }

  function startOver() {
    if (sentAt || !(ENDED.includes(page.state) || page.state === "ready")) return;
    address("");
    take({ battle: null, state: "empty" });
    say("");
    box().focus();
  }

  // --- votes -------------------------------------------------------------------------------

  function storedVotes() {
    return recall(localStorage, VOTES) || {};
  }

  function storeVote(battle, vote) {
    const votes = storedVotes();
    if (vote) votes[battle] = vote;
    else delete votes[battle];
    keep(localStorage, VOTES, votes);
  }

  function recall(storage, key) {
    try {
      return JSON.parse(storage.getItem(key));
    } catch {
      return null;
    }
  }

  function keep(storage, key, value) {
    try {
      storage.setItem(key, JSON.stringify(value));
    } catch {
      // Storage is full or forbidden: what it was to keep lives as long as this page.
    }
  }

  function vote(outcome) {
    if (page.state !== "ready" || sentAt || !page.counted) return;
    const cast = { outcome, key: newKey() };
    storeVote(page.battle, cast);
    save(cast);
    deliver(page.battle, cast, 0);
  }

  function save(cast) {
    page.state = "saving";
    page.choice = cast.outcome;
    words = null;
    paint();
  }

  function resumeVote() {
    const cast = storedVotes()[page.battle];
    if (cast) save(cast);
  }

  function newKey() {
    if (crypto.randomUUID) return crypto.randomUUID();
    // Only pages over plain HTTP on another host lack randomUUID.
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    bytes[6] = (bytes[6] & 15) | 64;
    bytes[8] = (bytes[8] & 63) | 128;
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  }

  async function deliver(battle, cast, tries) {
    let response = null;
    try {
      response = await fetch(`/api/v1/battles/${encodeURIComponent(battle)}/vote`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(cast),
      });
    } catch {
      // No answer: the vote may or may not be saved, and the key makes it safe to repeat.
    }
    if (!response || response.status >= 500 || response.status === 429) {
      if (battle === page.battle && page.state === "saving" && words !== UNSAVED) tell(UNSAVED);
      retry(battle, cast, tries + 1);
      return;
    }
    storeVote(battle, null);
    const body = await response.json().catch(() => ({}));
    if (battle !== page.battle) return;
    if (response.ok) {
      reveal(body);
      return;
    }
    page.state = "ready";
    page.choice = null;
    tell(body.detail || body.title || "This vote was not taken.");
    check(words);
  }

  const waiting = new Map(); // battle -> stops the wait for the next try

  function retry(battle, cast, tries) {
    const timer = window.setTimeout(() => {
      waiting.delete(battle);
      deliver(battle, cast, tries);
    }, Math.min(1000 * 2 ** (tries - 1), 30000));
    waiting.set(battle, () => window.clearTimeout(timer));
  }

  function deliverAll() {
    for (const [battle, cast] of Object.entries(storedVotes())) {
      const stop = waiting.get(battle);
      if (stop) stop();
      waiting.delete(battle);
      deliver(battle, cast, 0);
    }
  }

  function reveal(seen, note = null) {
    const state = seen.outcome === "skip" ? "skipped" : "voted";
    if (page.state === state && page.vote) {
      if (note) tell(note); // another look was quicker, and knew of no refusal
      return;
    }
    const held = document.activeElement && document.activeElement.closest("[data-vote]");
    page.vote = seen;
    page.models = seen.models;
    page.choice = seen.outcome;
    page.state = state;
    page.message = null;
    words = note;
    paint();
    say(note || hint());
    if (held) document.querySelector(".next [data-do=new]").focus();
  }

  async function stop() {
    if (!running() || !page.battle) return;
    heardAt = Date.now();
    try {
      await fetch(`/api/v1/battles/${encodeURIComponent(page.battle)}/stop`, { method: "POST" });
    } catch {
      tell(AWAY);
    }
  }

  // --- keys, clicks, scrolling -------------------------------------------------------------

  const DO = { again, regenerate, "go-on": goOn, new: startOver, stop, help: () => $("help").showModal(),
    prompts: () => $("prompts").showModal() };
  const KEYS = { 1: "model_a", 2: "model_b", 3: "tie", 4: "both_bad" };

  function onKey(event) {
    if (event.target === box()) return onPromptKey(event);
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    if (document.querySelector("dialog[open]")) return;
    const act = {
      n: startOver, r: regenerate, g: goOn, "/": () => box().focus(), escape: stop, "?": DO.help,
    }[event.key.toLowerCase()];
    if (KEYS[event.key]) vote(KEYS[event.key]);
    else if (act) act();
    else return;
    event.preventDefault();
  }

  function onPromptKey(event) {
    if (event.key !== "Enter" || event.isComposing) return;
    event.stopPropagation(); // Shift+Enter stays a new line
    if (event.shiftKey) return;
    event.preventDefault();
    send();
  }

  function onClick(event) {
    const button = event.target.closest("button, a");
    if (!button) return;
    const { vote: outcome, do: deed } = button.dataset;
    if (outcome) vote(outcome);
    else if (deed) DO[deed]();
    else if ("ask" in button.dataset) onPromptChosen(button);
    else if (button.id.startsWith("tab-")) showPane(button.id.slice(-1));
    else if (button.matches('#panes a[href^="#"]')) event.preventDefault();
  }

  function onPromptChosen(button) {
    const sheet = button.closest("dialog");
    if (sheet) sheet.close();
    askFor(button.textContent);
  }

  function onSearch(event) {
    const wanted = event.target.value.toLowerCase().split(/\s+/);
    const items = all("#prompts li");
    for (const item of items) {
      const text = item.textContent.toLowerCase();
      item.hidden = !wanted.every((word) => text.includes(word));
    }
    $("prompts-none").hidden = items.some((item) => !item.hidden);
  }

  function showPane(side) {
    const strip = $("panes");
    const left = $(`pane-${side}`).offsetLeft - strip.offsetLeft;
    strip.scrollTo({ left, behavior: quietly.matches ? "auto" : "smooth" });
  }

  function onSwipe() {
    const strip = $("panes");
    const atB = strip.scrollLeft > strip.clientWidth / 2;
    $("tab-a").setAttribute("aria-selected", String(!atB));
    $("tab-b").setAttribute("aria-selected", String(atB));
  }

  // Brings the latest prompt to the top of its pane, also while the turns before it are being
  // written: a later turn is as high as its pane, so there is always room.
  function showTurn(side) {
    const pane = $(`scroll-${side}`);
    const head = sentAt ? $(`turn-${side}`).querySelector(".skeleton") : $(`turn-${side}`);
    const below = head.getBoundingClientRect().top - pane.getBoundingClientRect().top;
    const top = pane.scrollTop + below - parseFloat(getComputedStyle(pane).paddingTop);
    pane.scrollTo({ top, behavior: quietly.matches || !sentAt && !running() ? "auto" : "smooth" });
  }

  // The page may clear an answer a moment before it stands among the finished turns: the height
  // is held until then, or the pane would jump.
  function holdHeight(side) {
    $(`turn-${side}`).style.minHeight = `${$(`turn-${side}`).offsetHeight}px`;
  }

  function letShrink(side) {
    $(`turn-${side}`).style.minHeight = "";
  }

  const leading = () => Date.now() < leadUntil;

  function followEnd(side) {
    const pane = $(`scroll-${side}`);
    for (const move of ["wheel", "touchmove", "keydown"]) {
      pane.addEventListener(move, () => { leadUntil = 0; }, { passive: true });
    }
    pane.addEventListener("scroll", () => {
      if (leading()) return;
      following[side] = pane.scrollHeight - pane.scrollTop - pane.clientHeight < 40;
    });
    const sizes = new ResizeObserver((changes) => {
      if (changes.some((change) => change.target.id === `history-${side}`)) letShrink(side);
      if (leading()) showTurn(side);
      else if (following[side] && running()) pane.scrollTop = pane.scrollHeight;
    });
    for (const part of pane.children) sizes.observe(part);
  }

  function makeReachable() {
    for (const side of SIDES) {
      const pane = $(`scroll-${side}`);
      pane.tabIndex = 0;
      pane.setAttribute("role", "region");
      pane.setAttribute("aria-label", `Response ${side.toUpperCase()}`);
    }
    // After sending, the focus rests here: on neither response, and the keys are live.
    $("panes").tabIndex = -1;
    $("panes").setAttribute("role", "group");
    $("panes").setAttribute("aria-label", "The two responses");
    box().setAttribute("aria-label", "Prompt");
  }

  function start() {
    makeReachable();
    SIDES.forEach(followEnd);
    new MutationObserver(onNews).observe($("news"), { childList: true, characterData: true, subtree: true });
    $("send").addEventListener("click", onSendClick, true);
    $("panes").addEventListener("scroll", onSwipe, { passive: true });
    document.addEventListener("keydown", onKey, true);
    document.addEventListener("click", onClick);
    box().addEventListener("input", () => keep(sessionStorage, DRAFT, box().value));
    if ($("prompts")) $("prompts-search").addEventListener("input", onSearch);
    window.addEventListener("online", () => { deliverAll(); check(); });
    window.setInterval(watchOver, 500);
    ask = box().placeholder;
    document.documentElement.dataset.recorded = String(recorded());
    write("prompt", recall(sessionStorage, DRAFT) || "");
    onNews();
    paint();
    deliverAll();
  }

  const arrivals = new MutationObserver(() => {
    if (!IDS.every($) || !box() || !document.querySelector("#news code")) return;
    arrivals.disconnect();
    start();
  });
  arrivals.observe(document.documentElement, { childList: true, subtree: true });
})();
