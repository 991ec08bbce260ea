"use strict";
// The chat: messages come by Server-Sent Events, and go by POST with an id, so that a repeat sends nothing twice.

const list = document.querySelector("#talk");
const form = document.querySelector("#say");
const state = document.querySelector("#talk-state");
const feed = list.dataset.feed;
const token = form.elements.csrfmiddlewaretoken.value;

function post(content) {
  return fetch(feed, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRFToken": token },
    body: JSON.stringify(content),
  });
}

function show(message) {
  const id = `message-${message.number}`;
  const line = document.getElementById(id) || list.appendChild(document.createElement("li"));
  line.id = id;
  line.classList.toggle("own", message.sender === list.dataset.reader);
  const name = document.createElement("strong");
  name.textContent = message.sender;
  const body = document.createElement("span");
  body.textContent = message.deleted ? "deleted" : message.body; // never innerHTML: anybody may have written it
  line.replaceChildren(name, " ", body);
  list.scrollTop = list.scrollHeight; // scrollIntoView() would move the page, too
}

function acknowledge(id) {
  if (document.visibilityState === "visible") {
    post({ ack: id }).catch(() => {});
  }
}

async function start() {
  const answer = await fetch(`${feed}?after=0&limit=100`);
  const { messages } = await answer.json();
  messages.forEach(show);
  const last = messages.at(-1);
  if (last) {
    acknowledge(last.id);
  }
  const source = new EventSource(`${feed}?after=${last ? last.id : 0}`);
  source.onopen = () => (state.textContent = "");
  source.onerror = () => (state.textContent = "The connection is lost. It comes back by itself.");
  source.onmessage = (event) => {
    const message = JSON.parse(event.data);
    show(message);
    acknowledge(message.id);
  };
  list.dataset.live = "yes";
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = form.elements.body.value.trim();
  if (!body) {
    return;
  }
  const content = { body, client_id: `${Date.now()}-${Math.random()}` };
  for (let attempt = 0; attempt < 5; attempt += 1) {
    try {
      const answer = await post(content);
      if (answer.ok) {
        form.reset();
        state.textContent = "";
        return;
      }
      state.textContent = (await answer.json()).error;
      if (answer.status !== 503) {
        return;
      }
    } catch {
      state.textContent = "The message is sent again in a moment.";
    }
    await new Promise((resolve) => setTimeout(resolve, 500 * 2 ** attempt));
  }
});

start();
