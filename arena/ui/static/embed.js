// <arena-pair pair="..." key="..." lang="de">: two answers of an application, shown blind in its own
// page, and one vote on them.
//
// The arena decides which answer stands where, and names the versions once the vote is committed.
// Nothing is shown where the page's origin is not registered. No cookie is sent. A vote is kept until
// the arena has confirmed it, and sent again with the same key, so it counts once.
(() => {
  "use strict";

  const ARENA = new URL(".", document.currentScript.src).href;
  const OUTCOMES = ["model_a", "tie", "both_bad", "model_b"];
  const VOTES = "arena.pairs"; // in localStorage: votes not yet confirmed and their keys, by pair
  const MOST_WAIT_MS = 30000;
  const QUIET_MS = 600; // in which a second tap belongs to the first

  const STYLE = `
    :host {
      --page: #f7f8f4; --card: #fff; --quiet: #f4f3f0; --line: #e2e2dc; --edge: #8a8a83; --ink: #1c1c1a;
      --soft: #5f5f59; --accent: #33506e; --on-accent: #fff;
      --sans: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
      --mono: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
      display: block; container-type: inline-size; color-scheme: light dark; font: 16px/1.5 var(--sans); color: var(--ink);
    }
    @media (prefers-color-scheme: dark) {
      :host {
        --page: #141412; --card: #1d1d1b; --quiet: #262523; --line: #33332f; --edge: #77776f; --ink: #e9e9e4;
        --soft: #a3a39b; --accent: #a9c1de; --on-accent: #16202b;
      }
    }
    :host([hidden]), [hidden] { display: none !important; }
    * { box-sizing: border-box; }
    .pair { padding: 16px; border: 1px solid var(--line); border-radius: 10px; background: var(--page); }
    .question { margin: 0 0 12px; font-size: 17px; line-height: 1.4; font-weight: 700; }
    .answers { display: grid; gap: 12px; grid-template-columns: repeat(2, minmax(0, 1fr)); }
    .answer { min-width: 0; border: 1px solid var(--line); border-radius: 8px; background: var(--card); }
    .answer[data-chosen] { border-color: var(--accent); box-shadow: inset 0 0 0 1px var(--accent); }
    .name { margin: 0; padding: 8px 14px 0; font-size: 14px; line-height: 20px; font-weight: 700; color: var(--soft); overflow-wrap: anywhere; }
    .text { max-height: 24em; padding: 8px 14px 14px; overflow: auto; }
    .votes { display: flex; flex-wrap: wrap; gap: 8px; margin-top: 12px; }
    button {
      flex: 1 1 0; min-width: 8em; min-height: 44px; padding: 8px 12px; border: 1px solid var(--edge); border-radius: 8px;
      background: var(--card); font: inherit; color: inherit; cursor: pointer;
    }
    button:not([aria-disabled="true"]):hover { border-color: var(--accent); }
    button[aria-pressed="true"] { border-color: var(--accent); background: var(--accent); color: var(--on-accent); }
    button[aria-disabled="true"] { cursor: default; }
    .skip { flex: 0 1 auto; min-width: 0; border-color: transparent; background: none; color: var(--soft); text-decoration: underline; text-underline-offset: 2px; }
    :focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
    .note { margin: 12px 0 0; }
    .note:empty { display: none; }
    @container (max-width: 560px) {
      .pair { padding: 12px; }
      .answers { grid-template-columns: minmax(0, 1fr); }
      .votes { display: grid; grid-template-columns: 1fr 1fr; }
      button { min-width: 0; }
      .skip { grid-column: 1 / -1; }
    }`;

  const filled = (template, values) => template.replace(/%\((\w+)\)s/g, (_, name) => values[name]);

  function unsent() {
    try {
      return JSON.parse(localStorage.getItem(VOTES)) || {};
    } catch {
      return {};
    }
  }

  // Where storage is full or forbidden, a vote is kept as long as the page.
  function remember(pair, vote) {
    const votes = unsent();
    if (vote) votes[pair] = vote;
    else delete votes[pair];
    try {
      localStorage.setItem(VOTES, JSON.stringify(votes));
    } catch {}
  }

  function ask(pair, key, path = "", options = {}) {
    return fetch(`${ARENA}embed/pairs/${encodeURIComponent(pair)}${path}`, {
      ...options,
      credentials: "omit",
      cache: "no-store",
      headers: { Authorization: `Bearer ${key}`, ...options.headers },
    });
  }

  // Whether a vote was saved or refused, or neither: it may or may not be saved, and the key makes it
  // safe to send again.
  async function cast(pair, { key, outcome }, headers = {}) {
    try {
      const answer = await ask(pair, key, "/vote", {
        method: "POST",
        headers: { "Content-Type": "application/json", ...headers },
        body: JSON.stringify({ outcome }),
      });
      const body = await answer.json();
      if (!answer.ok && (answer.status >= 500 || [408, 429].includes(answer.status))) return {};
      remember(pair, null);
      return answer.ok ? { saved: body } : { refused: body };
    } catch {
      return {};
    }
  }

  function made(name, properties = {}, ...children) {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  }

  class ArenaPair extends HTMLElement {
    connectedCallback() {
      window.addEventListener("online", this.resend);
      if (this.shadowRoot) return;
      this.attachShadow({ mode: "open" });
      this.hidden = true;
      this.load();
    }

    disconnectedCallback() {
      window.removeEventListener("online", this.resend);
    }

    tapped = -QUIET_MS;
    tries = 0;
    sendNow = null; // while a vote waits to be sent again
    resend = () => this.sendNow && this.sendNow();

    get pair() {
      return this.getAttribute("pair");
    }

    get language() {
      const named = this.closest("[lang]");
      return named && named.lang ? { "Accept-Language": named.lang } : {};
    }

    // What cannot be shown leaves no trace in the page but an event.
    async load() {
      let body = null;
      const waiting = unsent()[this.pair]; // it may be saved and forgotten before the answer is here
      try {
        const answer = await ask(this.pair, this.getAttribute("key"), "", { headers: this.language });
        body = answer.ok ? await answer.json() : null;
      } catch {}
      if (!body) return this.tell("arena-unavailable", {});
      this.words = body.words;
      this.paint(body);
      if (body.vote) this.reveal(body.vote);
      else if (waiting) this.vote(waiting.outcome);
      this.tell("arena-shown", {});
    }

    paint(body) {
      const { words } = this;
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(STYLE);
      this.shadowRoot.adoptedStyleSheets = [sheet];
      this.panes = { a: this.pane("a", body.a), b: this.pane("b", body.b) };
      this.buttons = [...OUTCOMES, "skip"].map((outcome) => {
        const button = made("button", { type: "button", textContent: words[outcome] });
        button.dataset.outcome = outcome;
        if (outcome === "skip") button.className = "skip";
        button.addEventListener("click", () => this.vote(outcome));
        return button;
      });
      this.note = made("p", { className: "note" });
      this.note.setAttribute("role", "status");
      this.bar = made("div", { className: "votes" }, ...this.buttons);
      const question = made("p", { className: "question", id: "question", textContent: words.question });
      const pair = made("div", { className: "pair", lang: body.language }, question,
        made("div", { className: "answers" }, this.panes.a.answer, this.panes.b.answer), this.bar, this.note);
      pair.setAttribute("role", "group");
      pair.setAttribute("aria-labelledby", "question");
      const styles = made("link", { rel: "stylesheet", href: `${ARENA}look/rendered.css` });
      this.shadowRoot.replaceChildren(styles, pair);
      this.hidden = false;
    }

    pane(side, html) {
      const name = made("p", { className: "name", id: `name-${side}`, textContent: this.words[side] });
      const text = made("div", { className: "text rendered", innerHTML: html, tabIndex: 0 });
      text.setAttribute("role", "region");
      text.setAttribute("aria-labelledby", name.id);
      const answer = made("div", { className: "answer" }, name, text);
      return { name, answer };
    }

    vote(outcome) {
      this.tapped = performance.now();
      if (this.outcome) return;
      this.outcome = outcome;
      this.mark();
      const vote = { outcome, key: this.getAttribute("key") };
      remember(this.pair, vote);
      this.send(vote);
    }

    async send(vote) {
      this.sendNow = null;
      const { saved, refused } = await cast(this.pair, vote, this.language);
      if (saved) return this.reveal(saved);
      if (refused) return this.refuse(refused);
      this.note.textContent = this.words.unsaved;
      const timer = window.setTimeout(() => this.sendNow(), Math.min(1000 * 2 ** this.tries, MOST_WAIT_MS));
      this.tries += 1;
      this.sendNow = () => {
        window.clearTimeout(timer);
        this.send(vote);
      };
    }

    refuse(problem) {
      this.outcome = null;
      this.mark();
      this.note.textContent = problem.detail || this.words.refused;
    }

    reveal(vote) {
      const { words } = this;
      this.outcome = vote.outcome;
      remember(this.pair, null);
      const held = this.shadowRoot.activeElement;
      this.mark();
      const names = vote.versions;
      if (names) {
        for (const side of ["a", "b"]) this.panes[side].name.textContent = `${words[side]}: ${names[side]}`;
        const chosen = { model_a: "a", model_b: "b" }[vote.outcome];
        if (chosen) this.panes[chosen].answer.dataset.chosen = "";
        const inWords = chosen ? filled(words.wasBetter, { name: names[chosen] })
          : vote.outcome === "tie" ? words.even : words.neither;
        this.note.textContent = filled(words.saved, { vote: inWords });
      } else {
        this.note.textContent = words.skipped;
      }
      if (held && held.closest(".votes")) {
        this.note.tabIndex = -1;
        this.note.focus();
      }
      this.leaveBar();
      this.tell("arena-voted", { outcome: vote.outcome, versions: names });
    }

    // Not at once: what follows in the page would come under the finger that has just voted.
    leaveBar() {
      const wait_ms = this.tapped + QUIET_MS - performance.now();
      if (wait_ms > 0) window.setTimeout(() => this.leaveBar(), wait_ms);
      else this.bar.hidden = true;
    }

    mark() {
      for (const button of this.buttons) {
        button.setAttribute("aria-disabled", String(Boolean(this.outcome))); // so that it keeps the focus
        button.setAttribute("aria-pressed", String(button.dataset.outcome === this.outcome));
      }
    }

    tell(name, detail) {
      detail = { pair: this.pair, ...detail };
      this.dispatchEvent(new CustomEvent(name, { bubbles: true, composed: true, detail }));
    }
  }

  if (customElements.get("arena-pair")) return;
  for (const [pair, vote] of Object.entries(unsent())) cast(pair, vote); // of pages that were left
  customElements.define("arena-pair", ArenaPair);
})();
