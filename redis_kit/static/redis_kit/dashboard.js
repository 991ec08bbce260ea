// The menu: an open list closes by Escape; one that lies over the page also when the viewer goes elsewhere.
(() => {
  "use strict";
  const closeOthers = (event) => {
    for (const each of document.querySelectorAll(".rk-groups details[open]")) each.open = each.contains(event.target);
  };
  document.addEventListener("click", closeOthers);
  document.addEventListener("focusin", closeOthers);
  document.addEventListener("keydown", (event) => {
    const open = event.key === "Escape" && document.querySelector(".rk-menu details[open]");
    if (!open) return;
    open.open = false;
    open.querySelector("summary").focus();
  });
})();

// Live refresh: loads the fragment while the tab is visible and changes what differs from the old one.
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

  // A row or a button never becomes another one: the viewer may be about to press it.
  const OWN = ["TR", "LI", "BUTTON", "INPUT"];
  const KEPT = ["open", "tabindex"]; // set here or by the viewer, not by the server

  // Sections are known by their headings, whose numbers may change.
  function keyOf(node) {
    if (node.nodeType !== Node.ELEMENT_NODE) return node.nodeName;
    const name = node.getAttribute("formaction") ?? node.getAttribute("value")
      ?? node.querySelector(":scope > th > input")?.value
      ?? node.querySelector(":scope > :is(th, h2, h3, dt, a)")?.textContent ?? "";
    return `${node.nodeName} ${OWN.includes(node.nodeName) ? name : name.replace(/\d+/g, "")}`;
  }

  // Returns for each new node the old one to patch, if there is one: of the same key, else of the same kind. And the rest.
  function pairs(old, next) {
    const left = new Map(old.map((node) => [node, keyOf(node)]));
    const take = (fits) => {
      for (const [node, key] of left) if (fits(node, key)) return left.delete(node) && node;
    };
    const found = new Map();
    for (const node of next) {
      const key = keyOf(node);
      found.set(node, take((_old, each) => each === key));
    }
    for (const [node, match] of found) {
      if (!match && !OWN.includes(node.nodeName)) found.set(node, take((each) => each.nodeName === node.nodeName));
    }
    return [found, left.keys()];
  }

  // Changes what differs, so that focus, scroll positions, opened details and selected rows stay.
  function patch(old, next) {
    if (old.isEqualNode(next)) return;
    if (old.nodeType !== Node.ELEMENT_NODE) {
      old.data = next.data;
      return;
    }
    for (const { name } of [...old.attributes]) {
      if (!next.hasAttribute(name) && !KEPT.includes(name)) old.removeAttribute(name);
    }
    for (const { name, value } of next.attributes) {
      if (name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    patchChildren(old, next);
  }

  function patchChildren(old, next) {
    const [found, left] = pairs([...old.childNodes], [...next.childNodes]);
    for (const node of left) node.remove();
    let at = old.firstChild;
    for (const [node, match] of found) {
      if (!match) {
        old.insertBefore(node, at);
        continue;
      }
      // What is moved loses its focus and its scroll position, so text makes way, and all make way for the focus.
      while (at !== match && (at.nodeType === Node.TEXT_NODE || match.contains(document.activeElement))) {
        const after = at.nextSibling;
        old.append(at);
        at = after;
      }
      if (at === match) at = at.nextSibling;
      else old.insertBefore(match, at);
      patch(match, node);
    }
  }

  function show(html) {
    const next = live.cloneNode(false);
    next.innerHTML = html;
    const around = [];
    for (let each = document.activeElement; live.contains(each); each = each.parentElement) around.push(each);
    patchChildren(live, next);
    if (around.length && !live.contains(document.activeElement)) {
      const nearest = around.find((each) => each.isConnected);
      nearest.tabIndex = -1;
      nearest.focus({ preventScroll: true });
    }
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
