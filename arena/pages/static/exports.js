// An export: how long the file has been in the making, and a link to it once it is there.
"use strict";

const form = document.querySelector(".exporting");
const button = form.querySelector("button");
const notes = document.querySelectorAll("[data-export]");
const [making, made, failed] = notes;
const SIZE = new Intl.NumberFormat(document.documentElement.lang, {
  style: "unit",
  unit: "megabyte",
  maximumFractionDigits: 2,
});

function show(one) {
  for (const note of notes) note.hidden = note !== one;
}

function tick(began) {
  const seconds = Math.floor((Date.now() - began) / 1000);
  const rest = String(seconds % 60).padStart(2, "0");
  making.querySelector("[role=timer]").textContent = `${Math.floor(seconds / 60)}:${rest}`;
}

async function make() {
  const body = new URLSearchParams(new FormData(form));
  const answer = await fetch(form.action, { method: "POST", body });
  const [, name] = answer.headers.get("content-disposition")?.match(/filename="(.+)"/) ?? [];
  if (!name) {
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    throw new Error(page.querySelector("[role=alert]:not([hidden])")?.textContent ?? "");
  }
  const file = await answer.blob();
  const link = made.querySelector("a");
  URL.revokeObjectURL(link.href);
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.textContent = `${name}, ${SIZE.format(file.size / 1e6)}`;
  show(made);
  link.click();
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const began = Date.now();
  const timer = setInterval(tick, 1000, began);
  tick(began);
  button.disabled = true;
  show(making);
  try {
    await make();
  } catch (error) {
    const isOurs = error.message && !(error instanceof TypeError);
    failed.textContent = isOurs ? error.message : failed.dataset.export;
    show(failed);
  } finally {
    clearInterval(timer);
    button.disabled = false;
  }
});
