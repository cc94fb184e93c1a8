// The page of linkmix label: buttons, keys and forms, and the start.

import { ask, check, on, pause, send, undo, waiting } from "./api.js";
import { choose, clicked, lassoed, linkChosen } from "./choosing.js";
import { look } from "./links.js";
import { dragBy, drawCloud, drawMap, loadMap, showWhole, view } from "./map.js";
import { find, say, state } from "./page.js";
import { answer, nextQuestion, nowhere, refused, taken } from "./question.js";

const POLL = 1000; // milliseconds between requests for news

Object.assign(on, { taken, refused, sent: look, emptied: () => (state.question ? null : nextQuestion()) });

for (const button of document.querySelectorAll("[data-said]")) button.addEventListener("click", () => answer(button.dataset.said));
for (const button of document.querySelectorAll("[data-nowhere]")) button.addEventListener("click", () => nowhere(button.dataset.nowhere));
find("undo").addEventListener("click", undo);
find("audit").addEventListener("click", check);
find("link-same").addEventListener("click", () => linkChosen({ entry: "answer", said: "same" }));
find("link-different").addEventListener("click", () => linkChosen({ entry: "answer", said: "different" }));
find("link-all").addEventListener("click", () => linkChosen({ entry: "together" }));
find("link-nowhere").addEventListener("click", () => linkChosen({ entry: "nowhere" }));
find("link-none").addEventListener("click", () => choose([]));
find("whole").addEventListener("click", showWhole);
find("plot").addEventListener("click", clicked);
new ResizeObserver(drawCloud).observe(find("plot"));
for (const button of document.querySelectorAll("[data-drag]")) {
  button.addEventListener("click", () => {
    for (const other of document.querySelectorAll("[data-drag]")) other.setAttribute("aria-pressed", String(other === button));
    dragBy(button.dataset.drag);
  });
}

find("by-id").addEventListener("submit", async (event) => {
  event.preventDefault();
  const values = new FormData(event.target);
  try {
    const rows = [];
    for (const end of ["a", "b"]) rows.push((await (await ask(`/api/find?id=${encodeURIComponent(values.get(end))}`)).json()).row);
    if (rows[0] === rows[1]) return say("Both ids name the same point: give two different ones.");
    await choose(rows);
    find("link-same").focus();
  } catch (error) {
    say(`${error.message}.`);
  }
});

const KEYS = { s: () => answer("same"), d: () => answer("different"), u: () => answer("unsure"), k: () => answer("skip"), n: () => nowhere("a b"), z: undo };
document.addEventListener("keydown", (event) => {
  if (!find("use-keys").checked || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.matches("input:not([type=checkbox]), textarea, select")) return;
  const act = KEYS[event.key.toLowerCase()];
  if (act) {
    event.preventDefault();
    act();
  }
});

const remembered = { annotator: "value", "use-keys": "checked" };
for (const [id, property] of Object.entries(remembered)) {
  const stored = localStorage.getItem(id);
  if (stored !== null) find(id)[property] = JSON.parse(stored);
  find(id).addEventListener("change", () => localStorage.setItem(id, JSON.stringify(find(id)[property])));
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  if (view) drawMap(lassoed); // in the other colours
});

// The question comes first; the map follows, since it needs a large script.

state.start = await (await ask("/api/start")).json();
const { axes, links, title } = state.start;
document.title = `${title} | linkmix`;
find("title").textContent = title;
find("links-file").textContent = links;
find("hint").textContent = `Horizontal axis: ${axes[0]}; vertical axis: ${axes[1]}. Solid lines are must-links, dashed lines cannot-links. Click two points to link them, or a link to remove it; lasso points that all belong together.`;
if (waiting.length) send();
else await nextQuestion();
await look();
await loadMap();
await drawMap(lassoed);
for (;;) {
  await pause(POLL);
  if (!document.hidden) await look();
}
