// The members of the class that is open: typical and doubtful ones, to be picked and corrected.

import { ask, put } from "./api.js";
import { drawCard, fieldsOf } from "./cards.js";
import { counted, find, made, nameOf, pressed, state } from "./page.js";

const STEP = 12; // members shown at first, and more with each request
let of = null; // the class that is open
let kind = "typical";
let n = STEP;
let all = false;
let picked = new Set();
let again = () => {}; // draws the class once more

// The parts of the page that show the members of a class.
export async function membersOf(one, classes) {
  if (of?.face.row !== one.face.row) [kind, n, all, picked] = ["typical", STEP, false, new Set()];
  of = one;
  const { cards } = await (await ask(`/api/members?label=${one.label}&kind=${kind}&n=${n}`)).json();
  const shown = new Set(cards.map((card) => card.row));
  picked = new Set([...picked].filter((row) => shown.has(row)));
  drawMembers(one, classes);
  const names = fieldsOf(cards, all);
  const bar = made("div", undefined, { class: "row", role: "group", "aria-label": "Which members" });
  for (const [name, text] of [["typical", "Typical"], ["doubtful", "Doubtful"]]) {
    bar.append(pressed(text, () => { [kind, n] = [name, STEP]; again(); }, { "aria-pressed": String(kind === name), "data-key": name }));
  }
  if (cards.some((card) => card.fields.length > fieldsOf(cards).length)) {
    bar.append(pressed(all ? "Fewer fields" : "Show all fields", () => { all = !all; again(); }, { "data-key": "fields" }));
  }
  const grid = made("div", undefined, { class: "grid", role: "group", "aria-label": `${kind} members of ${nameOf(one.label)}` });
  for (const card of cards) {
    const note = typeof card.confidence === "number" ? `${Math.round(100 * card.confidence)} % sure` : undefined;
    grid.append(drawCard(card, { names, all, note, picked: picked.has(card.row), pick }));
  }
  const parts = [bar, grid];
  if (!cards.length) parts.push(made("p", "There are none.", { class: "quiet" }));
  if (cards.length === n && n < one.size) parts.push(pressed("Show more", () => { n += 2 * STEP; again(); }, { class: "small more", "data-key": "more" }));
  return parts;
}

export function onChange(draw) {
  again = draw;
}

function pick(row, is) {
  picked[is ? "add" : "delete"](row);
  drawMembers(of, state.classes);
}

// The buttons for the members that are picked.
export function drawMembers(one, classes = []) {
  if (!one) of = null;
  find("picked").hidden = !one || !picked.size;
  if (!one) return;
  find("picked-text").textContent = `${counted(picked.size, "member")} picked`;
  find("picked-nowhere").hidden = !state.start.noise;
  const others = classes.filter((other) => other.face && other.face.row !== one.face.row);
  find("picked-move").parentElement.hidden = !others.length;
  const before = find("picked-to").value;
  find("picked-to").replaceChildren(...others.map((other) => made("option", `Move to ${nameOf(other.label)}`, { value: other.face.row })));
  if (others.some((other) => String(other.face.row) === before)) find("picked-to").value = before;
}

function correct(entry) {
  const rows = [...picked];
  picked = new Set();
  drawMembers(of, state.classes);
  find("classes-title").focus(); // the button is gone
  return put({ rows, ...entry });
}

export const notHere = () => correct({ entry: "not", of: [of.face.row] });
export const splitOff = () => correct({ entry: "split", of: [of.face.row] });
export const noClass = () => correct({ entry: "nowhere" });
export const moveOn = () => correct({ entry: "belongs", to: [Number(find("picked-to").value)] });
