"use strict";
// The bell: the number of notifications that no device has acknowledged, and their list.

const bell = document.querySelector("#bell");
const count = bell.querySelector("data");
const items = bell.querySelector("ul");
const notes = new Map(); // by number

function draw() {
  count.value = notes.size;
  count.textContent = notes.size;
  bell.classList.toggle("rings", notes.size > 0);
  items.replaceChildren(
    ...[...notes.values()].reverse().map((note) => {
      const line = document.createElement("li");
      line.textContent = note.body;
      return line;
    }),
  );
}

const source = new EventSource(bell.dataset.feed);
source.onmessage = (event) => {
  const note = JSON.parse(event.data);
  notes.set(note.number, note);
  draw();
};
source.addEventListener("ack", (event) => {
  JSON.parse(event.data).numbers.forEach((number) => notes.delete(number));
  draw();
});

bell.querySelector("button").addEventListener("click", () => {
  const token = document.querySelector("[name=csrfmiddlewaretoken]").value;
  const ids = [...notes.values()].map((note) => note.id);
  fetch(bell.dataset.feed, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRFToken": token },
    body: JSON.stringify({ ack: ids }),
  });
});
draw();
