// The voters while they are examined: the result comes in by itself, around what somebody writes.
"use strict";

const PAUSE_MS = 3000;

function isInUse(part) {
  const written = [...part.querySelectorAll("input")].some(
    (one) => one.value !== one.defaultValue || one.checked !== one.defaultChecked,
  );
  return written || part.contains(document.activeElement);
}

async function look() {
  const part = document.getElementById("examined");
  if (!("waits" in part.dataset)) return;
  try {
    const answer = await fetch("/admin/voters");
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const made = page.getElementById("examined");
    if (made && !isInUse(part)) part.replaceWith(made);
  } catch {
    // The arena is away, and is asked again.
  }
  setTimeout(look, PAUSE_MS);
}

setTimeout(look, PAUSE_MS);
