// Live refresh: asks for the fragment while the tab is visible and puts it in place of the old one.
(() => {
  "use strict";
  const live = document.getElementById("rk-live");
  const bar = document.getElementById("rk-refresh");
  if (!live || !bar) return;
  const state = document.getElementById("rk-state");
  const pace = document.getElementById("rk-pace");
  const words = bar.dataset;
  const KEPT = "redis-kit.pace";
  let etag = live.dataset.etag;
  let updated = Date.now();
  let timer = 0;
  let asking = false;
  let trouble = "";
  let ended = false;

  const paused = () => ended || document.hidden || pace.value === "0";

  function say() {
    const ago = Math.max(0, Math.round((Date.now() - updated) / 1000));
    const parts = [words.updated.replace("{n}", ago)];
    if (trouble) parts.push(trouble);
    else if (paused()) parts.push(words.paused);
    const text = parts.join(" · ");
    if (state.textContent !== text) state.textContent = text;
  }

  // What its reader had opened stays open, and the focus stays on the same button of the same row.
  function show(html) {
    const open = [...live.querySelectorAll("details[open]")].map((one) => one.id);
    const focus = live.contains(document.activeElement) ? document.activeElement : null;
    const summary = focus && focus.parentElement.tagName === "DETAILS" ? focus.parentElement.id : "";
    live.innerHTML = html;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    const again = summary ? document.getElementById(summary)?.querySelector("summary")
      : focus && focus.id ? document.getElementById(focus.id) : null;
    again?.focus({ preventScroll: true });
  }

  async function ask() {
    const options = { headers: { "If-None-Match": etag }, redirect: "manual", signal: AbortSignal.timeout(10000) };
    const answer = await fetch(live.dataset.url, options);
    if (answer.status === 200) {
      const html = await answer.text();
      etag = answer.headers.get("ETag") || "";
      show(html);
    } else if (answer.type === "opaqueredirect" || [401, 403, 404].includes(answer.status)) {
      ended = true;
      trouble = words.ended;
      return;
    } else if (answer.status !== 304) {
      throw new Error(answer.status);
    }
    updated = Date.now();
    trouble = "";
  }

  async function refresh() {
    clearTimeout(timer);
    if (asking || paused()) return;
    asking = true;
    try {
      await ask();
    } catch {
      trouble = words.trouble;
    }
    asking = false;
    plan();
  }

  function plan() {
    clearTimeout(timer);
    if (!paused()) timer = setTimeout(refresh, Math.max(0, Number(pace.value) * 1000));
    say();
  }

  try {
    const kept = localStorage.getItem(KEPT);
    if ([...pace.options].some((one) => one.value === kept)) pace.value = kept;
  } catch { /* storage may be forbidden */ }
  pace.addEventListener("change", () => {
    try {
      localStorage.setItem(KEPT, pace.value);
    } catch { /* storage may be forbidden */ }
    plan();
  });
  document.addEventListener("visibilitychange", () => (document.hidden ? plan() : refresh().then(say)));
  setInterval(say, 1000);
  bar.hidden = false;
  plan();
})();
