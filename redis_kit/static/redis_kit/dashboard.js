// Live refresh: loads the fragment while the tab is visible and replaces the old one.
(() => {
  "use strict";
  const live = document.getElementById("rk-live");
  const bar = document.getElementById("rk-refresh");
  if (!live || !bar) return;
  const state = document.getElementById("rk-state");
  const interval = document.getElementById("rk-pace");
  const messages = bar.dataset;
  const STORAGE_KEY = "redis-kit.pace";
  let etag = live.dataset.etag;
  let updated = Date.now();
  let timer = 0;
  let loading = false;
  let problem = "";
  let ended = false;

  const paused = () => ended || document.hidden || interval.value === "0";

  // Text that is selected, such as to copy it, is not replaced.
  function selecting() {
    const selection = getSelection();
    return !selection.isCollapsed && live.contains(selection.anchorNode);
  }

  function showState() {
    const ago = Math.max(0, Math.round((Date.now() - updated) / 1000));
    const parts = [messages.updated.replace("{n}", ago)];
    if (problem) parts.push(problem);
    else if (paused() || selecting()) parts.push(messages.paused);
    bar.classList.toggle("rk-trouble", problem !== "");
    const text = parts.join(" · ");
    if (state.textContent !== text) state.textContent = text;
  }

  // Opened details stay open, rows stay selected, and the focus stays on the same button of the same row.
  function show(html) {
    const open = [...live.querySelectorAll("details[open]")].map((each) => each.id);
    const selected = [...live.querySelectorAll("input:checked")].map((each) => each.id);
    const focus = live.contains(document.activeElement) ? document.activeElement : null;
    const summary = focus && focus.parentElement.tagName === "DETAILS" ? focus.parentElement.id : "";
    live.innerHTML = html;
    for (const id of selected) {
      const box = document.getElementById(id);
      if (box) box.checked = true;
    }
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    const target = summary ? document.getElementById(summary)?.querySelector("summary")
      : focus && focus.id ? document.getElementById(focus.id) : null;
    target?.focus({ preventScroll: true });
  }

  async function load() {
    const options = { headers: { "If-None-Match": etag }, redirect: "manual", signal: AbortSignal.timeout(10000) };
    const response = await fetch(live.dataset.url, options);
    if (response.status === 200) {
      const html = await response.text();
      etag = response.headers.get("ETag") || "";
      show(html);
    } else if (response.type === "opaqueredirect" || [401, 403, 404].includes(response.status)) {
      ended = true;
      problem = messages.ended;
      return;
    } else if (response.status !== 304) {
      throw new Error(response.status);
    }
    updated = Date.now();
    problem = "";
  }

  async function refresh() {
    clearTimeout(timer);
    if (loading || paused()) return;
    if (selecting()) {
      schedule();
      return;
    }
    loading = true;
    try {
      await load();
    } catch {
      problem = messages.trouble;
    }
    loading = false;
    schedule();
  }

  function schedule() {
    clearTimeout(timer);
    if (!paused()) timer = setTimeout(refresh, Math.max(0, Number(interval.value) * 1000));
    showState();
  }

  try {
    const stored = localStorage.getItem(STORAGE_KEY);
    if ([...interval.options].some((each) => each.value === stored)) interval.value = stored;
  } catch { /* storage may be forbidden */ }
  interval.addEventListener("change", () => {
    try {
      localStorage.setItem(STORAGE_KEY, interval.value);
    } catch { /* storage may be forbidden */ }
    schedule();
  });
  document.addEventListener("visibilitychange", () => (document.hidden ? schedule() : refresh().then(showState)));
  setInterval(showState, 1000);
  bar.hidden = false;
  schedule();
})();
