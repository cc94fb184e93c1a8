// The page of linkmix label: buttons, keys and forms, and the start.

import { ask, on, pause, send, undo, waiting } from "./api.js";
import { changeLink, choose, clicked, hovered, lassoed, linkChosen } from "./choosing.js";
import { drawClasses, open } from "./classes.js";
import { certify, openFinish, toggleCheck, write } from "./finish.js";
import { dragBy, drawMap, openMap, project, resized, showWhole, view } from "./map.js";
import { moveOn, noClass, notHere, onChange, splitOff } from "./members.js";
import { alarm, find, say, state } from "./page.js";
import { drawHistory } from "./progress.js";
import { answer, confirm, drawCards, nextQuestion, none, nowhere, toggle } from "./question.js";
import { refused, taken } from "./saved.js";
import { drawView, look } from "./status.js";
import { ofBrowser } from "./store.js";
import { Refused, Trouble } from "./trouble.js";
import { arrange, go, onOpen, shown } from "./views.js";

const POLL = 1000; // milliseconds between requests for news
const all = (selector) => document.querySelectorAll(selector);
const onClick = (id, act) => find(id).addEventListener("click", () => act());

Object.assign(on, { taken, refused, sent: look, emptied: () => (state.question ? null : nextQuestion()) });

for (const button of all("[data-said]")) button.addEventListener("click", () => answer(button.dataset.said));
for (const button of all("[data-nowhere]")) button.addEventListener("click", () => nowhere(button.dataset.nowhere));
for (const button of all("[data-view]")) {
  button.addEventListener("click", (event) => {
    go(button.dataset.view);
    if (event.detail) button.blur(); // after a click of the mouse, Enter is for the question again
  });
}
for (const button of all("[data-close]")) button.addEventListener("click", () => button.closest("dialog").close());
onClick("confirm", confirm);
onClick("none", none);
onClick("undo", undo);
onClick("audit", toggleCheck);
onClick("give-up", toggleCheck);
onClick("open-settings", () => find("settings").showModal());
onClick("open-finish", openFinish);
onClick("write", write);
onClick("certify", certify);

onClick("link-same", () => linkChosen({ entry: "answer", said: "same" }));
onClick("link-different", () => linkChosen({ entry: "answer", said: "different" }));
onClick("link-all", () => linkChosen({ entry: "together" }));
onClick("link-nowhere", () => linkChosen({ entry: "nowhere" }));
onClick("link-turn", () => changeLink("turn"));
onClick("link-remove", () => changeLink("remove"));
onClick("link-none", () => choose([]));
onClick("whole", showWhole);
onClick("projection", () => {
  const classes = find("projection").getAttribute("aria-pressed") === "false";
  find("projection").setAttribute("aria-pressed", String(classes));
  find("hint").textContent = hint(classes);
  return project(classes);
});
function hint(classes) {
  const { axes } = state.start;
  const what = classes ? "Axes: the directions in which the classes differ most." : `Horizontal axis: ${axes[0]}; vertical axis: ${axes[1]}.`;
  return `${what} Solid lines are must-links, dashed lines cannot-links. Click two points to link them, or a link to change it; lasso points that all belong together.`;
}

find("plot").addEventListener("click", clicked);
find("plot").addEventListener("pointermove", hovered);
find("plot").addEventListener("pointerleave", () => hovered(null));
new ResizeObserver(resized).observe(find("plot"));
for (const button of all("[data-drag]")) {
  button.addEventListener("click", () => {
    for (const other of all("[data-drag]")) other.setAttribute("aria-pressed", String(other === button));
    dragBy(button.dataset.drag);
  });
}

onClick("all-classes", () => open(null));
onClick("picked-not", notHere);
onClick("picked-split", splitOff);
onClick("picked-nowhere", noClass);
onClick("picked-move", moveOn);
onChange(drawClasses);
onOpen("map", () => openMap(lassoed));
onOpen("classes", drawView);
onOpen("review", drawView);
onOpen("progress", () => state.status && drawHistory());

find("by-id").addEventListener("submit", async (event) => {
  event.preventDefault();
  const values = new FormData(event.target);
  try {
    const rows = [];
    for (const end of ["a", "b"]) rows.push((await (await ask(`/api/find?id=${encodeURIComponent(values.get(end))}`)).json()).row);
    if (rows[0] === rows[1]) return say("Both ids name the same point: give two different ones.");
    go("map");
    await choose(rows);
    find("link-same").focus();
  } catch (error) {
    say(`${error.message.replace(/\.$/, "")}.`);
  }
});

const KEYS = { s: () => answer("same"), d: () => answer("different"), u: () => answer("unsure"), k: () => answer("skip"), n: none, z: undo };
document.addEventListener("keydown", (event) => {
  if (!find("use-keys").checked || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.matches("input:not([type=checkbox]), textarea, select") || document.querySelector("dialog[open]")) return;
  const key = event.key.toLowerCase();
  if (key !== "z" && !shown("ask")) return; // the question cannot be seen
  const beside = event.target.closest(".view, button, summary, a"); // Enter is for what has the focus
  const act = key === "enter" && !beside ? confirm : /^[1-8]$/.test(key) ? () => toggle(Number(key)) : KEYS[key];
  if (act) {
    event.preventDefault();
    act();
  }
});

const remembered = { annotator: "value", "use-keys": "checked", kinds: "value", "show-guess": "checked" };
for (const [id, property] of Object.entries(remembered)) {
  const stored = ofBrowser.getItem(id);
  if (stored !== null) find(id)[property] = JSON.parse(stored);
  find(id).addEventListener("change", () => ofBrowser.setItem(id, JSON.stringify(find(id)[property])));
}
find("kinds").addEventListener("change", nextQuestion);
find("show-guess").addEventListener("change", drawCards);

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  if (view) drawMap(lassoed); // in the other colours
});

// The question comes first; the map follows, since it needs a large script.

async function begin() {
  for (;;) {
    try {
      state.start = await (await ask("/api/start")).json();
      return alarm("news", "");
    } catch (error) {
      alarm("news", error.message);
      await pause(POLL);
    }
  }
}

window.addEventListener("unhandledrejection", (event) => { // of what a click asked for
  if (!(event.reason instanceof Refused || event.reason instanceof Trouble)) return;
  event.preventDefault();
  say(event.reason.message);
});
await begin();
const { links, title } = state.start;
document.title = `${title} | linkmix`;
find("title").textContent = title;
find("links-file").textContent = links;
find("hint").textContent = hint(false);
if (waiting.length) send();
else await nextQuestion();
await look();
find("map").hidden = true; // until it is arranged, which opens it
arrange();
document.body.dataset.ready = "";
for (;;) {
  await pause(POLL);
  if (!document.hidden) await look();
}
