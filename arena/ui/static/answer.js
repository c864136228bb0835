// One answer as it comes: the blocks that the server has rendered, and the plain text that follows
// them. Owns what is inside a pane, its place while the text grows, and copying.
import { SIDES, parsed, say, words, $ } from "./page.js";

const FENCE = /^ {0,3}(`{3,}|~{3,})([^\n]*)\n/;

class Pane {
  constructor(side) {
    this.answer = $(`answer-${side}`);
    this.history = $(`history-${side}`);
    this.scroll = $(`scroll-${side}`);
    this.following = true; // whether the end of the text stays in sight
    this.clear();
    for (const move of ["wheel", "touchmove", "keydown", "pointerdown"]) {
      this.scroll.addEventListener(move, () => requestAnimationFrame(() => {
        const { scrollHeight, scrollTop, clientHeight } = this.scroll;
        this.following = scrollHeight - scrollTop - clientHeight < 40;
      }), { passive: true });
    }
  }

  get empty() {
    return !this.answer.firstChild;
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
    const fragment = parsed(html);
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
    if (this.open && Boolean(fence) === before) return this.open.appendData(text);
    if (this.tailElement) this.tailElement.remove();
    this.tailElement = fence ? codeTail(fence[2]) : document.createElement("p");
    this.tailElement.classList.add("tail");
    this.open = document.createTextNode(fence ? this.tail.slice(fence[0].length) : this.tail);
    (this.tailElement.querySelector("code") || this.tailElement).append(this.open);
    if (!fence) this.tailElement.dir = "auto";
    this.answer.append(this.tailElement);
  }

  // An earlier turn, above the answer.
  remember(prompt, nodes) {
    const asked = document.createElement("p");
    const answer = document.createElement("div");
    Object.assign(asked, { className: "asked", dir: "auto", textContent: prompt });
    answer.className = "rendered";
    answer.append(...nodes);
    this.history.append(asked, answer);
  }

  // A later answer begins at the top of its pane; the turns before it are above.
  toTop(later) {
    this.following = true;
    this.scroll.scrollTop = later ? this.scroll.scrollHeight : 0;
  }
}

export const panes = {};

export function addPanes() {
  for (const side of SIDES) panes[side] = new Pane(side);
}

let due = false;

export function keepUp() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    for (const { following, scroll } of Object.values(panes)) if (following) scroll.scrollTop = scroll.scrollHeight;
  });
}

function codeTail(info) {
  const figure = parsed("<figure data-copy=no><figcaption></figcaption><pre dir=ltr><code></code></pre></figure>").firstChild;
  figure.querySelector("figcaption").textContent = (info.trim().split(/\s+/)[0] || "").slice(0, 40);
  return figure;
}

function addCopy(figure) {
  figure.dataset.copy = "yes";
  const button = document.createElement("button");
  Object.assign(button, { type: "button", textContent: words.copy });
  button.addEventListener("click", () => copy(figure.querySelector("code").textContent, button));
  figure.querySelector("figcaption").append(button);
}

// Copies a text, which may still be on its way, and says so on the button for a moment.
export async function copy(text, button) {
  try {
    const blob = Promise.resolve(text).then((known) => new Blob([known], { type: "text/plain" }));
    await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]); // waits in what the click allows
  } catch {
    // Pages over plain HTTP on another host have no clipboard; elsewhere it may be forbidden.
    const area = document.createElement("textarea");
    area.value = await text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  const before = button.textContent;
  if (before === words.copied) return;
  say(button.textContent = words.copied);
  setTimeout(() => { button.textContent = before; }, 1500);
}
