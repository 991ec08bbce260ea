"use strict";
// The bell: the number of notifications that no device has acknowledged, and their list.

const bell = document.querySelector("#bell");
const count = bell.querySelector("data");
const items = bell.querySelector("ul");
const button = bell.querySelector("button");
const notes = new Map(); // by number

function draw() {
  count.value = notes.size;
  count.textContent = notes.size;
  bell.classList.toggle("rings", notes.size > 0);
  bell.querySelector("p").hidden = notes.size > 0;
  items.hidden = button.hidden = notes.size === 0;
  items.replaceChildren(
    ...[...notes.values()].reverse().map((note) => {
      const line = document.createElement("li");
      line.textContent = note.body;
      return line;
    }),
  );
}

function listen() {
  const source = new EventSource(bell.dataset.feed);
  let lost = false;
  notes.clear();
  draw();
  source.onmessage = (event) => {
    const note = JSON.parse(event.data);
    notes.set(note.number, note);
    draw();
  };
  source.addEventListener("ack", (event) => {
    JSON.parse(event.data).numbers.forEach((number) => notes.delete(number));
    draw();
  });
  source.onerror = () => (lost = true);
  source.onopen = () => {
    if (lost) {
      source.close();
      listen(); // from the beginning: other devices may have read some in between
    }
  };
}

button.addEventListener("click", () => {
  const token = document.querySelector("[name=csrfmiddlewaretoken]").value;
  const ids = [...notes.values()].slice(0, 1000).map((note) => note.id); // as many as one call takes
  fetch(bell.dataset.feed, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRFToken": token },
    body: JSON.stringify({ ack: ids }),
  });
});
listen();
