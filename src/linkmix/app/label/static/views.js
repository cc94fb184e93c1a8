// Which view is open. On a wide screen the question stays beside it; on a narrow one it is a view of its own.

import { find } from "./page.js";

const VIEWS = ["ask", "map", "classes", "review", "progress"];
const narrow = matchMedia("(max-width: 900px)");
let view = "ask"; // what was last asked for
let beside = "map"; // what was last asked for beside the question
const opened = {}; // called when a view opens

export const shown = (name) => !find(name).hidden;

export function onOpen(name, act) {
  opened[name] = act;
}

export function go(name) {
  view = name;
  if (name !== "ask") beside = name;
  arrange();
}

export function arrange() {
  const now = narrow.matches ? view : beside;
  for (const name of VIEWS) {
    const hide = name !== now && !(name === "ask" && !narrow.matches);
    const opens = find(name).hidden && !hide;
    find(name).hidden = hide;
    if (opens) opened[name]?.();
    const button = document.querySelector(`[data-view=${name}]`);
    if (name === now) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
}

narrow.addEventListener("change", arrange);
