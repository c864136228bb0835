// The battle: one element that asks, shows both answers as they come, votes and reveals.
//
// It talks to the HTTP API and reads a battle's events. What is shown and hidden is decided by
// the stylesheet, from the data attributes of <html> that paint() sets. The prompt and the buttons
// around the element are Gradio's; they are looked up when they are needed, for Gradio may put
// them into the page later than the element.
(() => {
  "use strict";

  const SIDES = ["a", "b"];
  const RUNNING = ["created", "streaming"];
  const ENDED = ["voted", "skipped", "failed", "stopped", "interrupted", "expired", "missing"];
  const OUTCOMES = ["model_a", "tie", "both_bad", "model_b"]; // as they stand: keys 1 to 4
  const SILENCE_MS = 5000; // after which a running battle is asked about
  const QUIET_MS = 600; // in which a second tap, or a second key, belongs to the first
  const VOTES = "arena.votes"; // in localStorage: votes not yet acknowledged, by battle
  const DRAFT = "arena.draft"; // in sessionStorage: a prompt that was not sent yet
  const IN_WHY = ".reasons, .why, [data-do=why][aria-expanded=true]";
  const FENCE = /^ {0,3}(`{3,}|~{3,})([^\n]*)\n/;

  const EMPTY = { battle: null, turn: 0, attempt: 0, state: "empty", message: null, prompt: "",
    counted: true, choice: null, models: null, gold: false, standing: "", followed: [], stopped: false, rest: false, done: { a: false, b: false } };
  let page = structuredClone(EMPTY);
  let goingOn = false; // whether the next prompt goes to the two revealed models
  let sending = null; // what was asked for and has not begun yet: "new", "turn", "continue", ...
  let note = ""; // a refusal, beside the vote bar until the state changes
  let source = null; // the events of the battle
  let heardAt = 0; // when they last came
  let loads = 0;
  let refusals = 0; // how often in a row the events were refused
  let invitation = ""; // what the empty prompt says before any battle
  let why = false; // whether "Why?" is open
  let face = ""; // which controls are shown
  let quiet = 0; // the timer that ends data-quiet
  let hand = ""; // what was used last: "key", "mouse", "touch" or "pen"
  let pressed = ""; // the key that was a shortcut or pressed a button last
  const following = { a: true, b: true };
  const panes = {};
  const remarked = new Map(); // battle -> what is remarked beside its vote

  const $ = (id) => document.getElementById(id);
  const { words, counted, ends, kinds, cuts } = JSON.parse($("words").textContent); // of the catalogue
  const language = document.documentElement.lang;
  const plurals = new Intl.PluralRules(language);
  const number = (value, options) => value.toLocaleString(language, options);
  const filled = (template, values) => template.replace(/%\((\w+)\)s/g, (_, name) => values[name]);
  const counting = (name, n, values) => filled(counted[name][plurals.select(n)], { ...values, n: number(n) });
  const all = (selector) => Array.from(document.querySelectorAll(selector));
  const api = (battle, path = "") => `/api/v1/battles/${encodeURIComponent(battle)}${path}`;
  const running = () => RUNNING.includes(page.state);
  const ready = () => page.state === "ready" && !sending;
  const box = () => document.querySelector("#prompt textarea");
  const element = () => document.querySelector("arena-battle");
  const root = document.documentElement;
  const votable = () => ready() && page.counted;
  const withheld = () => page.state === "voted" && page.counted && !page.models;
  const recorded = () => element().dataset.recorded === "true";
  const quietly = matchMedia("(prefers-reduced-motion: reduce)");

  // --- an answer -------------------------------------------------------------------------

  // The blocks that the server has rendered, and what follows them as plain text.
  class Pane {
    constructor(side) {
      this.answer = $(`answer-${side}`);
      this.scroll = $(`scroll-${side}`);
      this.clear();
    }

    clear() {
      this.answer.replaceChildren();
      this.blocks = [];
      this.tail = ""; // the text after the blocks, in an element and a node of its own
      this.tailElement = null;
      this.open = null;
    }

    whole(html) {
      this.clear();
      this.set(0, html);
    }

    set(index, html) {
      const fragment = document.createRange().createContextualFragment(html);
      const nodes = Array.from(fragment.childNodes);
      const after = this.blocks.slice(index + 1).flat()[0] || this.tailElement || null;
      for (const node of this.blocks[index] || []) node.remove();
      this.answer.insertBefore(fragment, after);
      this.blocks[index] = nodes;
      for (const code of this.answer.querySelectorAll("figure:not([data-copy])")) addCopy(code);
    }

    setTail(text) {
      if (this.tailElement) this.tailElement.remove();
      this.tailElement = this.open = null;
      this.tail = "";
      this.grow(text);
    }

    // A fence that is open looks like the block that it will be.
    grow(text) {
      if (!text) return;
      const before = FENCE.test(this.tail);
      this.tail += text;
      const fence = FENCE.exec(this.tail);
      if (!this.open || Boolean(fence) !== before) {
        if (this.tailElement) this.tailElement.remove();
        this.tailElement = fence ? codeTail(fence[2]) : document.createElement("p");
        this.tailElement.classList.add("tail");
        this.open = document.createTextNode(fence ? this.tail.slice(fence[0].length) : this.tail);
        (this.tailElement.querySelector("code") || this.tailElement).append(this.open);
        if (!fence) this.tailElement.dir = "auto";
        this.answer.append(this.tailElement);
      } else {
        this.open.appendData(text);
      }
    }

    get empty() {
      return !this.answer.firstChild;
    }
  }

  function codeTail(info) {
    const figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    caption.textContent = (info.trim().split(/\s+/)[0] || "").slice(0, 40);
    const pre = document.createElement("pre");
    pre.dir = "ltr";
    pre.append(document.createElement("code"));
    figure.dataset.copy = "no";
    figure.append(caption, pre);
    return figure;
  }

  function addCopy(figure) {
    figure.dataset.copy = "yes";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = words.copy;
    button.addEventListener("click", async () => {
      await copy(figure.querySelector("code").textContent);
      button.textContent = words.copied;
      window.setTimeout(() => { button.textContent = words.copy; }, 1500);
    });
    figure.querySelector("figcaption").append(button);
  }

  async function copy(text) {
    try {
      return await navigator.clipboard.writeText(text);
    } catch {
      // Pages over plain HTTP on another host have no clipboard; elsewhere it may be forbidden.
    }
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }

  // --- what the page shows ----------------------------------------------------------------

  function paint() {
    const data = root.dataset;
    data.state = sending || page.state === "created" ? "waiting" : page.state;
    data.sending = sending || "no";
    data.counted = String(page.counted && sending !== "continue");
    data.later = String(page.turn > 1);
    data.rest = String(page.rest);
    for (const side of SIDES) {
      data[side] = progress(side);
      paintName(side);
      paintFollowed(side);
    }
    paintRemarks(data);
    for (const outcome of OUTCOMES) {
      const button = $(`vote-${outcome}`);
      if (!button) continue;
      button.setAttribute("aria-disabled", String(data.state !== "ready"));
      button.setAttribute("aria-pressed", String(page.choice === outcome));
    }
    data.choice = ["voted", "saving"].includes(page.state) && page.choice ? page.choice : "none";
    data.gold = String(page.gold);
    document.querySelector("[data-do=go-on]").setAttribute("aria-pressed", String(goingOn));
    if ($("send")) $("send").setAttribute("aria-disabled", String(!canSend()));
    if (box()) box().placeholder = invited();
    $("asked").textContent = page.prompt;
    $("hint").textContent = hint();
    $("note").textContent = note;
    count();
    hushIfChanged();
  }

  // A double tap is one tap: where the controls have changed, none reacts for a moment. What ends by
  // itself changes the actions alone, and leaves the vote buttons in their place.
  function hushIfChanged() {
    const before = face;
    face = [sending || running() ? "running" : page.state, page.rest, withheld(), root.dataset.why].join();
    if (before === face || !before || before.startsWith("opening")) return;
    const ran = before.startsWith("running") && /^(running|ready)/.test(face);
    hush(ran && root.dataset.quiet !== "all" ? "actions" : "all");
  }

  // The stylesheet takes the controls from the pointer.
  function hush(what = "all") {
    root.dataset.quiet = what;
    window.clearTimeout(quiet);
    quiet = window.setTimeout(() => { delete root.dataset.quiet; }, QUIET_MS);
  }

  const rests = (control) => getComputedStyle(control).pointerEvents === "none";

  // Which remarks are asked for: reasons before the names, whether the answer was known after them.
  function asksWhy() {
    if (sending || page.state !== "voted" || !page.counted) return "none";
    if (withheld()) return "reasons";
    return { after: "all", before: "intent", off: "none" }[element().dataset.reasons];
  }

  const asksFirst = () => element().dataset.reasons === "before";

  function paintRemarks(data) {
    const { values, unsaved } = remarksOn(page.battle);
    data.asks = asksWhy();
    data.why = why ? data.asks : "none";
    document.querySelector("[data-do=why]").setAttribute("aria-expanded", String(data.why !== "none"));
    data.names = withheld() ? "withheld" : "open";
    data.remarks = unsaved ? "unsaved" : "saved";
    for (const button of all("[data-reason]")) {
      button.setAttribute("aria-pressed", String(values[`reasons_${button.dataset.side}`].includes(button.dataset.reason)));
    }
    for (const button of all("[data-remark]")) {
      button.setAttribute("aria-pressed", String(String(values[button.dataset.remark]) === button.dataset.value));
    }
    if (document.activeElement !== $("comment")) $("comment").value = values.comment;
  }

  function progress(side) {
    if (!page.battle && !sending) return "none";
    if (page.done[side]) return "done";
    return panes[side].empty ? "waiting" : "writing";
  }

  function paintName(side) {
    const model = page.models && page.models[side];
    const told = model && !sending && !running();
    const facts = told ? factsOf(model) : "";
    $(`name-${side}`).textContent = $(`name-${side}`).title = model ? model.name : "";
    $(`facts-${side}`).textContent = facts;
    $(`cut-${side}`).textContent = (told && cuts[model.cut]) || "";
    const tab = $(`tab-${side}`);
    tab.querySelector(".label").textContent = side.toUpperCase() + (model ? ` · ${model.name}` : "");
    tab.querySelector(".facts").textContent = facts;
  }

  function paintFollowed(side) {
    const chips = page.models && !sending && !running() ? page.followed.map((one) => {
      const [mark, word] = { true: ["✓", words.followed], false: ["✗", words.notFollowed], null: ["?", words.notKnown] }[one[side]];
      const chip = document.createElement("li");
      chip.dataset.mark = mark;
      chip.textContent = `${mark} ${filled(word, { what: kinds[one.id] })}`;
      return chip;
    }) : [];
    $(`followed-${side}`).replaceChildren(...chips);
  }

  function factsOf(model) {
    const known = [];
    if (model.latency_s !== null) known.push(filled(words.firstToken, { seconds: digits(model.latency_s, 1) }));
    if (model.tokens !== null) known.push(counting("tokens", model.tokens));
    if (model.cost !== null) known.push(dollars(model.cost));
    return known.join(" · ");
  }

  function digits(value, count) {
    return number(value, { minimumFractionDigits: count, maximumFractionDigits: count });
  }

  function dollars(cost) {
    const small = { maximumSignificantDigits: 2, maximumFractionDigits: 6, roundingPriority: "lessPrecision" };
    const amount = cost >= 0.1 ? digits(cost, 2) : number(cost, small);
    return filled(words.dollars, { amount });
  }

  function invited() {
    if (goingOn || !page.counted) {
      return page.models ? filled(words.askBoth, { a: page.models.a.name, b: page.models.b.name }) : words.askTheseTwo;
    }
    if (!page.battle || ENDED.includes(page.state)) return invitation;
    return recorded() ? words.voteOrNew : words.askOrVote;
  }

  function hint() {
    if (page.message) return ends[page.message] || page.message; // the log has it in English
    if (withheld()) return filled(words.sayWhy, { vote: voteInWords() });
    if (page.state === "voted") return `${filled(words.saved, { vote: voteInWords() })} ${page.gold ? words.gold : page.standing}`.trim();
    if (page.state === "skipped") return words.skipped;
    if (page.battle && !page.counted) return words.notCounted;
    if (page.state !== "ready") return "";
    return page.stopped ? words.stopped : words.finished;
  }

  function voteInWords() {
    const better = (side) => filled(words.wasBetter, { name: page.models ? page.models[side].name : side.toUpperCase() });
    return { model_a: better("a"), model_b: better("b"), tie: words.tie, both_bad: words.bothBad }[page.choice];
  }

  function say(text) {
    $("live").textContent = text;
  }

  function tell(text) {
    note = text;
    paint();
  }

  function count() {
    const longest = Number(element().dataset.longest);
    const length = box() ? [...box().value].length : 0;
    const near = length > 0.8 * longest;
    $("count").textContent = near ? filled(words.characters, { n: number(length), longest: number(longest) }) : "";
    $("count").classList.toggle("over", length > longest);
  }

  // --- a battle and its events --------------------------------------------------------------

  // A battle as the API tells it: after a load, and where events may have been lost.
  function take(body) {
    const latest = body.turns[body.turns.length - 1];
    const same = body.battle_id === page.battle && body.turn === page.turn;
    const vote = body.vote;
    if (body.battle_id !== page.battle) goingOn = false;
    if (!same) why = asksFirst();
    const mine = remarksOn(body.battle_id);
    if (body.remarks && !mine.unsent && !mine.sending) mine.values = valuesOf(body.remarks);
    page = { ...page, battle: body.battle_id, turn: body.turn, state: body.state, message: body.message,
      prompt: latest.prompt, counted: !body.models || Boolean(vote), models: body.models,
      choice: vote ? vote.outcome : null, gold: Boolean(vote && vote.gold), attempt: same ? page.attempt : 0, followed: same ? page.followed : [],
      stopped: SIDES.some((side) => latest[side].status === "stopped") };
    for (const side of SIDES) {
      history(side, body.turns.slice(0, -1).map((turn) => [turn.prompt, turn[side].html]));
      if (RUNNING.includes(body.state)) {
        if (!same) panes[side].clear();
      } else {
        panes[side].whole(latest[side].html);
      }
      page.done[side] = latest[side].status !== "streaming";
      if (!same) toTop(side, body.turn > 1);
    }
    sending = null;
    if (!running()) note = "";
    paint();
    if (page.state === "voted" && page.models) check(page.battle);
  }

  function history(side, turns) {
    $(`history-${side}`).replaceChildren(...turns.flatMap(([prompt, html]) => {
      const asked = document.createElement("p");
      asked.className = "asked";
      asked.dir = "auto";
      asked.textContent = prompt;
      const answer = document.createElement("div");
      answer.className = "rendered";
      answer.append(document.createRange().createContextualFragment(html));
      return [asked, answer];
    }));
  }

  // What stands in the panes becomes history, and the next answers begin.
  function begin(battle, turn, prompt, further) {
    for (const side of SIDES) {
      const pane = panes[side];
      if (further && turn > page.turn) {
        const answer = document.createElement("div");
        const asked = document.createElement("p");
        asked.className = "asked";
        asked.dir = "auto";
        asked.textContent = page.prompt;
        answer.className = "rendered";
        answer.append(...pane.answer.childNodes);
        $(`history-${side}`).append(asked, answer);
      } else if (!further) {
        $(`history-${side}`).replaceChildren();
      }
      pane.clear();
    }
    sendLeft();
    const models = further ? page.models : null;
    page = { ...structuredClone(EMPTY), battle, turn, prompt, state: "created",
      models: models && { a: nameOf(models.a), b: nameOf(models.b) }, counted: !models };
    goingOn = false;
    why = asksFirst();
    sending = null;
    note = "";
    paint();
    for (const side of SIDES) toTop(side, turn > 1);
    say(words.answering);
    follow();
  }

  function nameOf(model) {
    return { name: model.name, latency_s: null, tokens: null, cost: null };
  }

  async function read(battle) {
    const response = await fetch(`${api(battle)}?html=1`);
    if (response.ok) return response.json();
    const problem = await response.json().catch(() => ({}));
    throw Object.assign(new Error(problem.detail || words.notShown), { status: response.status });
  }

  async function load(battle) {
    heardAt = Date.now();
    const number = ++loads;
    let body;
    try {
      body = await read(battle);
    } catch (failure) {
      if (failure.status === 404) missing(page.state === "created" ? words.noCookie : failure.message);
      else if (page.battle === battle) {
        tell(words.away);
        if (page.state === "opening") window.setTimeout(() => page.battle === battle && load(battle), 2000);
      }
      return;
    }
    if (page.battle !== battle || number !== loads) return; // a later one knows more
    take(body);
    if (running()) follow();
    else if (page.state === "ready") resumeVote();
    else if (page.state === "voted" && page.models) address(battle, true);
  }

  function missing(why) {
    clear();
    page.state = "missing";
    page.message = why;
    paint();
    say(why);
  }

  function follow() {
    leave();
    heardAt = Date.now();
    const battle = page.battle;
    source = new EventSource(`${api(battle)}/events?html=1`);
    const on = (name, act) => source.addEventListener(name, (event) => {
      if (battle !== page.battle) return;
      heardAt = Date.now();
      refusals = 0;
      if (note === words.away || note === words.busy) tell("");
      renew(event.lastEventId);
      act(JSON.parse(event.data));
    });
    on("delta", ({ side, text }) => write(side, (pane) => pane.grow(text)));
    on("blocks", ({ side, blocks, tail }) => write(side, (pane) => {
      for (const [index, html] of blocks) pane.set(index, html);
      pane.setTail(tail);
    }));
    on("rest", () => { page.rest = true; paint(); });
    on("done", ({ side, status }) => {
      page.done[side] = true;
      page.stopped ||= status === "stopped";
      paint();
    });
    on("ready", () => {
      leave();
      page.state = "ready";
      page.done = { a: true, b: true };
      note = "";
      paint();
      say(page.counted ? hint() : `${words.bothFinished} ${words.notCounted}`);
      if (!page.counted) load(battle); // what they cost
      else resumeVote();
    });
    on("failed", () => { leave(); settle(battle); });
    source.onerror = () => {
      if (source && source.readyState === EventSource.CLOSED) {
        leave();
        refusals += 1;
        if (refusals > 1) tell(words.busy);
        window.setTimeout(() => {
          if (battle === page.battle && running()) load(battle);
        }, Math.min(500 * 2 ** refusals, 15000));
      }
    };
  }

  async function settle(battle) {
    await load(battle);
    if (battle === page.battle) say(hint());
  }

  // Another attempt, asked for elsewhere, begins anew.
  function renew(id) {
    const attempt = Number(id.split(".")[1] || 0);
    if (page.attempt && attempt !== page.attempt) for (const side of SIDES) panes[side].clear();
    page.attempt = attempt;
  }

  function leave() {
    if (source) source.close();
    source = null;
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
  async function watchOver() {
    if (!page.battle || !running() || Date.now() - heardAt < SILENCE_MS) return;
    heardAt = Date.now();
    const battle = page.battle;
    try {
      const body = await read(battle);
      if (battle !== page.battle || !running()) return;
      if (RUNNING.includes(body.state)) {
        if (!source && !refusals) follow();
        if (note === words.away) tell("");
      } else {
        leave();
        load(battle);
      }
    } catch {
      if (battle === page.battle && running()) tell(words.away);
    }
  }

  // --- the address ------------------------------------------------------------------------------

  function address(battle, voted = false) {
    const readable = voted && element().dataset.readable === "true";
    const path = !battle ? "/" : readable ? `/battles/${battle}` : `/?b=${encodeURIComponent(battle)}`;
    if (location.pathname + location.search === path) return;
    if (voted) window.history.replaceState(null, "", path);
    else window.history.pushState(null, "", path);
  }

  function addressed() {
    return new URLSearchParams(location.search).get("b") || (/^\/battles\/(\w+)$/.exec(location.pathname) || [])[1];
  }

  function onAddress() {
    const battle = addressed();
    if (battle === page.battle) return;
    clear();
    if (battle) open(battle);
    else paint();
  }

  function open(battle) {
    page.battle = battle;
    page.state = "opening";
    paint();
    load(battle);
  }

  function clear() {
    leave();
    sendLeft();
    for (const side of SIDES) {
      panes[side].clear();
      $(`history-${side}`).replaceChildren();
    }
    page = structuredClone(EMPTY);
    goingOn = false;
    sending = null;
    note = "";
  }

  // --- prompts ------------------------------------------------------------------------------------

  function canSend() {
    return !sending && !running() && page.state !== "saving";
  }

  // What a prompt would be, sent now. The server decides whether it may.
  function intent() {
    if (goingOn) return "continue";
    return page.state === "ready" ? "turn" : "new";
  }

  function fill(text) {
    if (!box() || box().value === text) return;
    box().value = text;
    box().dispatchEvent(new Event("input", { bubbles: true }));
  }

  function send() {
    if (!canSend() || !box().value.trim()) {
      box().focus();
      return;
    }
    ask(box().value, intent());
  }

  async function ask(prompt, what) {
    const before = { battle: page.battle, turn: page.turn };
    const path = { new: "", turn: "/turns", continue: "/continue" }[what];
    const url = what === "new" ? "/api/v1/battles" : api(before.battle, path);
    depart(what);
    const opened = await post(url, { prompt });
    if (!opened) return;
    if (box().value === prompt) fill("");
    begin(opened.battle_id, opened.turn, prompt, what !== "new");
    address(opened.battle_id);
  }

  // Sends and says in words why it was refused; null if it was.
  async function post(url, body) {
    let response = null;
    try {
      response = await fetch(url, { method: "POST", headers: { "Content-Type": "application/json" },
        body: body === undefined ? undefined : JSON.stringify(body) });
    } catch {
      // It never arrived, or its answer got lost.
    }
    const answer = response ? await response.json().catch(() => ({})) : {};
    if (response && response.ok) return answer;
    sending = null;
    tell(response ? answer.detail || answer.title || words.notTaken : words.unsent);
    return null;
  }

  function depart(what) {
    sending = what;
    note = "";
    paint();
    $("panes").focus({ preventScroll: true });
  }

  // A later turn is tried again where it stands; a first one in a battle of its own.
  function again() {
    if (sending || !["failed", "stopped", "interrupted"].includes(page.state)) return;
    if (page.turn > 1) askAnew("retry");
    else ask(page.prompt, "new");
  }

  function regenerate() {
    if (ready()) askAnew("regenerate");
  }

  async function askAnew(deed) {
    const { battle, prompt } = page;
    depart(deed);
    const opened = await post(api(battle, `/${deed}`));
    if (!opened) return load(battle);
    begin(battle, opened.turn, prompt, true);
  }

  function goOn() {
    if (page.state !== "voted" || !page.models || sending || recorded()) return;
    goingOn = !goingOn;
    paint();
    hush();
    if (goingOn) box().focus();
  }

  function startOver() {
    if (sending || running()) return;
    clear();
    paint();
    address("");
    say("");
    box().focus();
  }

  async function stop() {
    if (!running() || !page.battle) return;
    const battle = page.battle;
    const body = await post(api(battle, "/stop"));
    if (!body || battle !== page.battle) return;
    leave();
    settle(battle);
  }

  // Both models have ended: what is still to be shown may come at once.
  async function showRest() {
    if (!running() || !page.rest) return;
    page.rest = false;
    paint();
    await post(api(page.battle, "/rest"));
  }

  // --- votes ----------------------------------------------------------------------------------------

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
    if (running() && OUTCOMES.includes(outcome)) return tell(words.stopFirst);
    if (!votable()) return;
    const cast = { outcome, key: newKey() };
    storeVote(page.battle, cast);
    save(cast);
    focusPrompt();
    deliver(page.battle, cast, 0);
  }

  // The focus waits in the prompt, but not where that opens a keyboard over the names.
  function focusPrompt() {
    const types = hand === "key" || (hand === "mouse" && matchMedia("(pointer: fine)").matches);
    (types ? box() : $("panes")).focus({ preventScroll: true });
  }

  function save(cast) {
    page.state = "saving";
    page.choice = cast.outcome;
    note = "";
    paint();
  }

  function resumeVote() {
    const cast = storedVotes()[page.battle];
    if (!cast) return;
    save(cast);
    deliver(page.battle, cast, 0);
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
      response = await fetch(api(battle, "/vote"), {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(cast),
      });
    } catch {
      // No answer: the vote may or may not be saved, and the key makes it safe to repeat.
    }
    if (!response || response.status >= 500 || response.status === 429) {
      if (battle === page.battle && page.state === "saving") tell(words.unsaved);
      retry(battle, cast, tries + 1);
      return;
    }
    storeVote(battle, null);
    const body = await response.json().catch(() => ({}));
    if (battle !== page.battle) return;
    if (response.ok) return page.state === "saving" ? reveal(body) : load(battle);
    await load(battle);
    if (page.state === "saving") page.state = "ready";
    tell(body.detail || body.title || words.voteNotTaken);
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
      const stopWaiting = waiting.get(battle);
      if (stopWaiting) stopWaiting();
      waiting.delete(battle);
      deliver(battle, cast, 0);
    }
  }

  function reveal(receipt) {
    page.models = receipt.models;
    page.choice = receipt.outcome;
    page.gold = receipt.gold;
    page.state = receipt.outcome === "skip" ? "skipped" : "voted";
    page.message = null;
    note = "";
    paint();
    sayNames();
    if (page.state === "voted") {
      countVote();
      if (page.models) showStanding();
    }
  }

  function sayNames() {
    const { models } = page;
    say(models ? `${hint()} ${filled(words.names, { a: models.a.name, b: models.b.name })}` : hint());
  }

  function showStanding() {
    address(page.battle, true);
    check(page.battle);
    if (!page.gold) stand(page.battle);
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
    if (element().dataset.instructed !== "true" || page.gold) return;
    const response = await fetch(api(battle, "/instructions")).catch(() => null);
    const body = response && response.ok ? await response.json() : null;
    if (battle !== page.battle || page.state !== "voted") return;
    if (!body) return tell(words.notChecked);
    page.followed = body.instructions;
    paint();
  }

  // How the model that was chosen stands; nothing where no rank is ruled out.
  async function stand(battle) {
    const chosen = { model_a: "a", model_b: "b" }[page.choice];
    if (!chosen) return;
    const response = await fetch("/api/v1/leaderboard").catch(() => null);
    if (!response || !response.ok) return;
    const board = await response.json();
    const row = board.ratings.find((rated) => rated.model === page.models[chosen].id);
    if (!row || row.rank_low === null || battle !== page.battle || page.state !== "voted") return;
    const { rank_low: low, rank_high: high } = row;
    page.standing = counting(low === high ? "rank" : "ranks", row.votes, { rank: low, low, high, of: board.ratings.length });
    paint();
  }

  // --- remarks beside a vote: they go on their own, when the vote is safe -----------------------------

  function remarksOn(battle) {
    if (!remarked.has(battle)) remarked.set(battle, { values: valuesOf({}), unsent: false, unsaved: false, sending: false });
    return remarked.get(battle);
  }

  function valuesOf({ reasons_a = [], reasons_b = [], comment = "", confidence = null, intent = null }) {
    return { reasons_a, reasons_b, comment, confidence, intent };
  }

  function giveReason({ side, reason }) {
    const { values } = remarksOn(page.battle);
    const name = `reasons_${side}`;
    const given = values[name].includes(reason);
    values[name] = given ? values[name].filter((other) => other !== reason) : [...values[name], reason];
    onRemark();
  }

  function answer({ remark: name, value }) {
    const { values } = remarksOn(page.battle);
    const chosen = name === "confidence" ? Number(value) : value;
    values[name] = values[name] === chosen ? null : chosen;
    onRemark();
  }

  // After a click the focus goes back: what is typed then is no reason.
  function onRemarkButton(button, event) {
    if (button.dataset.reason) giveReason(button.dataset);
    else answer(button.dataset);
    if (event.detail) focusPrompt();
  }

  function toggleWhy() {
    why = !why;
    paint();
    const first = why && hand === "key" && all(".reasons button, .why button").find((control) => control.offsetParent);
    (first || document.querySelector("[data-do=why]")).focus({ preventScroll: true });
  }

  function onComment() {
    const { values } = remarksOn(page.battle);
    if (values.comment === $("comment").value) return;
    values.comment = $("comment").value;
    onRemark();
  }

  function onCommentKey(event) {
    if (!["Enter", "Escape"].includes(event.key) || event.isComposing) return;
    event.stopPropagation();
    event.preventDefault();
    if (event.repeat) return;
    onComment();
    if (event.key === "Escape") toggleWhy();
    else if (withheld()) showNames();
    else focusPrompt();
  }

  // Before the names, all of it goes with them.
  function onRemark() {
    remarksOn(page.battle).unsent = true;
    paint();
    if (!withheld()) sendRemarks(page.battle);
  }

  function showNames() {
    if (withheld()) sendRemarks(page.battle);
  }

  function sendLeft() {
    if (page.battle && remarksOn(page.battle).unsent) sendRemarks(page.battle);
  }

  // One at a time, so that the last word is the last to arrive.
  async function sendRemarks(battle) {
    const mine = remarksOn(battle);
    if (mine.sending) return;
    mine.sending = true;
    mine.unsent = false;
    let response = null;
    let body = {};
    try {
      response = await fetch(api(battle, "/remarks"), { method: "POST", keepalive: true,
        headers: { "Content-Type": "application/json" }, body: JSON.stringify(mine.values) });
      body = await response.json();
    } catch {
      // It may be saved or not: it can be sent again.
    }
    mine.sending = false;
    mine.unsaved = !response || !response.ok || !body.vote;
    if (mine.unsaved) mine.unsent = true;
    else if (mine.unsent) return sendRemarks(battle);
    if (battle !== page.battle || page.state !== "voted") return;
    note = mine.unsaved ? `${words.remarksUnsaved} ${body.detail || ""}`.trim() : "";
    if (!mine.unsaved && withheld()) return name(body.vote);
    paint();
    if (!mine.unsaved) say(words.remarked);
  }

  function name(vote) {
    const held = document.activeElement && document.activeElement.closest("[data-do=names], .reasons, .why");
    page.models = vote.models;
    page.gold = vote.gold;
    paint();
    sayNames();
    showStanding();
    if (held) focusPrompt();
  }

  async function copyLink() {
    await copy(location.href);
    say(words.linkCopied);
    const button = document.querySelector("[data-do=copy]");
    button.textContent = words.copied;
    window.setTimeout(() => { button.textContent = words.copyLink; }, 1500);
  }

  // --- keys, clicks, scrolling ------------------------------------------------------------------------

  const sheet = (id) => () => {
    $(id).showModal();
    hush();
  };
  const DO = { names: showNames, remark: () => sendRemarks(page.battle), why: toggleWhy, again, regenerate, stop, rest: showRest,
    "go-on": goOn, new: startOver, copy: copyLink, skip: () => vote("skip"), help: sheet("help"), prompts: sheet("prompts") };

  function onKey(event) {
    hand = "key";
    if (event.target === box()) return onPromptKey(event);
    if (event.target === $("comment")) return onCommentKey(event);
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    const button = ["Enter", " "].includes(event.key) && event.target.closest("a, button");
    if (button) return onButtonKey(event, button);
    if (document.querySelector("dialog[open]")) return;
    const deed = deedOf(event);
    if (deed) {
      event.preventDefault();
      pressed = event.code;
      deed();
    } else if (event.key.length === 1 && event.key !== " " && !event.repeat) {
      fieldFor(event.target).focus({ preventScroll: true });
    }
  }

  // A character that is typed beside the fields is text: the field that gets the focus takes it.
  function fieldFor(target) {
    const comments = target.closest(IN_WHY) && $("comment").offsetParent;
    return comments ? $("comment") : document.querySelector("#first textarea, #prompt textarea");
  }

  // A key that is held, or pressed twice, presses a button once.
  function onButtonKey(event, button) {
    if (event.repeat || rests(button)) event.preventDefault();
    else pressed = event.code;
  }

  // A character is a key on the vote buttons alone, where only keys put the focus.
  function deedOf(event) {
    const { target, key } = event;
    const group = target.closest("#votes, .reasons, .why > div");
    if (group && ["ArrowLeft", "ArrowRight"].includes(key)) return () => besides(event, group);
    if (event.repeat) return null;
    if (key === "Escape") return running() ? stop : target.closest(IN_WHY) ? toggleWhy : votable() && !root.dataset.quiet && toVotes;
    if (key === "Enter") return withheld() && showNames;
    const outcome = target.closest("#votes") && OUTCOMES[Number(key) - 1];
    return outcome && (() => vote(outcome));
  }

  function toVotes() {
    $("votes").focus({ preventScroll: true });
  }

  function besides({ target, key }, group) {
    const buttons = Array.from(group.querySelectorAll("button"));
    const next = buttons[buttons.indexOf(target.closest("button")) + (key === "ArrowRight" ? 1 : -1)];
    if (next) next.focus();
  }

  // The key that has just voted is not typed, nor does it send.
  function onPromptKey(event) {
    if (event.isComposing) return;
    const echo = event.code === pressed && (event.repeat || root.dataset.quiet);
    if (event.key === "Enter") event.stopPropagation(); // Shift+Enter stays a new line
    else if (!echo) return;
    if (event.shiftKey && !echo) return;
    event.preventDefault();
    if (echo || event.repeat) return;
    if (withheld() && !box().value.trim()) showNames();
    else send();
  }

  function onPointer(event) {
    hand = event.pointerType;
    pressed = "";
    if (root.dataset.quiet) hush(root.dataset.quiet); // tap, tap, tap
  }

  function onClick(event) {
    const button = event.target.closest("button, a");
    if (!button) return;
    const [, kind, name] = /^(vote|do)-(.+)$/.exec(button.id) || [];
    if (button.id === "send") send();
    else if (kind === "vote") vote(name);
    else if (kind === "do") DO[name]();
    else if (button.dataset.do) DO[button.dataset.do]();
    else if (button.dataset.reason || button.dataset.remark) onRemarkButton(button, event);
    else if ("ask" in button.dataset) onPromptChosen(button);
    else if (button.id.startsWith("tab-")) showPane(button.id.slice(-1));
    else if (button.matches('#panes a[href^="#"]')) event.preventDefault();
  }

  function onPromptChosen(button) {
    const dialog = button.closest("dialog");
    if (dialog) dialog.close();
    if (canSend()) ask(button.textContent, "new");
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

  // A later answer begins at the top of its pane; the turns before it are above.
  function toTop(side, later) {
    following[side] = true;
    const { scroll } = panes[side];
    scroll.scrollTop = later ? scroll.scrollHeight : 0;
  }

  let due = false;

  function keepUp() {
    if (due) return;
    due = true;
    window.requestAnimationFrame(() => {
      due = false;
      for (const side of SIDES) {
        if (following[side]) panes[side].scroll.scrollTop = panes[side].scroll.scrollHeight;
      }
    });
  }

  function followEnd(side) {
    const { scroll } = panes[side];
    for (const move of ["wheel", "touchmove", "keydown", "pointerdown"]) {
      scroll.addEventListener(move, () => {
        window.requestAnimationFrame(() => {
          following[side] = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 40;
        });
      }, { passive: true });
    }
  }

  function start() {
    // Gradio's own look for Markdown would outweigh that of answers.
    for (const around of all("#battle :has(arena-battle)")) around.className = "";
    for (const side of SIDES) {
      panes[side] = new Pane(side);
      followEnd(side);
    }
    root.dataset.recorded = String(recorded());
    root.dataset.readable = element().dataset.readable;
    $("panes").addEventListener("scroll", onSwipe, { passive: true });
    document.addEventListener("keydown", onKey, true);
    document.addEventListener("pointerdown", onPointer, true);
    document.addEventListener("mousedown", (event) => { if (event.target.closest("#votes")) event.preventDefault(); });
    for (const dialog of all("dialog")) dialog.addEventListener("close", () => hush());
    document.addEventListener("click", onClick);
    $("comment").addEventListener("change", onComment);
    window.addEventListener("popstate", onAddress);
    window.addEventListener("pagehide", sendLeft);
    window.addEventListener("online", () => {
      deliverAll();
      heardAt = 0;
      watchOver();
    });
    window.setInterval(watchOver, 1000);
    if ($("prompts")) $("prompts-search").addEventListener("input", onSearch);
    const battle = addressed();
    if (battle) open(battle);
    else paint();
    deliverAll();
    whenPrompt();
  }

  // Gradio puts the prompt into the page when it is ready.
  function whenPrompt() {
    if (!box() || OUTCOMES.some((outcome) => !$(`vote-${outcome}`))) return window.requestAnimationFrame(whenPrompt);
    const early = document.querySelector("#first textarea");
    invitation = early.placeholder;
    box().setAttribute("aria-label", words.prompt);
    Object.assign($("votes"), { tabIndex: -1, role: "group", ariaLabel: words.choice });
    box().addEventListener("input", () => {
      pressed = "";
      keep(sessionStorage, DRAFT, box().value);
      count();
    });
    fill(early.value || recall(sessionStorage, DRAFT) || "");
    if (document.activeElement === early || matchMedia("(pointer: fine)").matches) box().focus();
    $("first").remove();
    paint();
  }

  customElements.define("arena-battle", class extends HTMLElement {
    connectedCallback() {
      // Its parts come with it, but after it when the page's own HTML brings it.
      window.queueMicrotask(start);
    }
  });
})();
