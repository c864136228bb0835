// One answer as it comes: the blocks that the server has rendered, and the plain text that follows
// them. Owns what is inside a pane, its place while the text grows, and copying.
import { SIDES, all, parsed, say, when, words, $ } from "./page.js";

const FENCE = /^ {0,3}(?:`{3,}|~{3,})([^\n]*)\n/;
const TEXT = "<p class=tail dir=auto></p>";
const CODE =
  "<figure class=tail><figcaption></figcaption><pre dir=ltr><code></code></pre></figure>";

class Pane {
  constructor(side) {
    this.answer = $(`answer-${side}`);
    this.scroll = $(`scroll-${side}`);
    this.clear();
  }

  get empty() {
    return !this.answer.firstChild;
  }

  clear() {
    this.answer.replaceChildren();
    this.blocks = []; // the nodes of each
    this.setTail("");
  }

  set(index, html) {
    const fragment = parsed(html);
    addCopies(fragment);
    const nodes = Array.from(fragment.childNodes);
    const after = this.blocks.slice(index + 1).flat()[0] || this.tail;
    for (const node of this.blocks[index] || []) node.remove();
    this.answer.insertBefore(fragment, after);
    this.blocks[index] = nodes;
  }

  setTail(text) {
    this.tail?.remove();
    this.tail = null; // the element of the text after the blocks
    this.text = "";
    this.grow(text);
  }

  // A fence that is open looks like the block that it will be.
  grow(text) {
    if (!text) return;
    this.text += text;
    const [opening = "", info = ""] = FENCE.exec(this.text) || [];
    if (this.tail && opening === this.opening) return this.end.appendData(text);
    this.tail?.remove();
    this.tail = parsed(opening ? CODE : TEXT).firstChild;
    this.opening = opening;
    this.end = document.createTextNode(this.text.slice(opening.length));
    (this.tail.querySelector("code") || this.tail).append(this.end);
    this.tail.querySelector("figcaption")?.append(info.trim().split(/\s+/)[0].slice(0, 40));
    this.answer.append(this.tail);
  }

  // The end stays in sight where it was.
  change(act, follows) {
    const { scrollHeight, scrollTop, clientHeight } = this.scroll;
    act();
    if (follows && scrollHeight - scrollTop - clientHeight < 8) this.toEnd();
  }

  toEnd() {
    this.scroll.scrollTop = this.scroll.scrollHeight;
  }
}

export const panes = {};

when("start", () => {
  for (const side of SIDES) panes[side] = new Pane(side);
});

when("placed", () => {
  for (const history of all("#panes .history")) addCopies(history);
});

function addCopies(within) {
  for (const caption of within.querySelectorAll("figcaption:not(:has(button))")) {
    caption.append(parsed("<button type=button data-do=code></button>"));
    caption.lastChild.textContent = words.copy;
  }
}

when("code", (button) => copy(button.closest("figure").querySelector("code").textContent, button));
when("copy", (button) => copy(location.href, button));

// Copies a text, which may still be on its way, and says so on the button for a moment.
export async function copy(text, button) {
  try {
    const blob = Promise.resolve(text).then((known) => new Blob([known], { type: "text/plain" }));
    // It waits for the text within what the click allows.
    await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
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
  button.textContent = words.copied;
  say(words.copied);
  setTimeout(() => {
    button.textContent = before;
  }, 1500);
}
