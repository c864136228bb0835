// The sliders of a mix: the board follows them, and the address keeps the mix.
"use strict";

const SHARES = new Intl.NumberFormat(document.documentElement.lang, { style: "percent" });

const PAUSE_MS = 120;
const form = document.getElementById("sliders");
const own = document.getElementById("own");
let request = null;
let timer = 0;

function address() {
  return "/mix?" + new URLSearchParams(new FormData(form));
}

function showShares() {
  const sliders = [...form.querySelectorAll("input[type=range]")];
  const total = sliders.reduce((sum, slider) => sum + Number(slider.value), 0);
  for (const slider of sliders) {
    const share = total ? (100 * Number(slider.value)) / total : 0;
    form.querySelector(`output[for="${slider.id}"]`).textContent = SHARES.format(share / 100);
  }
  return total;
}

async function follow() {
  request?.abort();
  request = new AbortController();
  const result = document.getElementById("result");
  result.setAttribute("aria-busy", "true");
  const asked = address();
  try {
    const answer = await fetch(asked, { signal: request.signal });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const made = page.getElementById("result");
    if (!answer.ok || !made) throw new Error(`The mix was answered by ${answer.status}.`);
    result.replaceWith(made);
    history.replaceState(null, "", asked);
  } catch (error) {
    if (error.name !== "AbortError") form.submit();
  }
}

if (form) {
  form.addEventListener("input", () => {
    clearTimeout(timer);
    if (showShares() > 0) timer = setTimeout(follow, PAUSE_MS);
  });
  document.documentElement.classList.add("follows");
}

if (own) {
  const label = own.querySelector(".file");
  label.hidden = false;
  label.querySelector("input").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    if (file) own.querySelector("textarea").value = await file.text();
  });
}
