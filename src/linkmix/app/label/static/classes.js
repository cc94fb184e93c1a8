// The classes as things: their names, colours and faces, and what sets them apart.

import { ask, put } from "./api.js";
import { drawCard, fieldsOf } from "./cards.js";
import { drawMembers, membersOf } from "./members.js";
import { recolour } from "./map.js";
import { chip, colourOf, counted, find, made, nameOf, pressed, redraw, state } from "./page.js";

const COLOURS = ["blue", "orange red", "green", "pink", "orange", "sky blue", "purple", "brown", "red", "grey"];
let editing = false; // whether name, colour and merge are unfolded
let face = null; // row of the face of the class that is open

const opened = () => face !== null && state.classes.find((one) => one.face?.row === face) || null;
const isTyping = () => find("classes-body").contains(document.activeElement) && document.activeElement.matches("input[type=text], select");

// Asks for the classes, and shows them if that view is open.
export async function loadClasses() {
  const before = JSON.stringify(state.classes.map(({ label, colour }) => [label, colour]));
  const found = await (await ask("/api/classes")).json();
  state.classes = found.classes;
  find("another").textContent = found.another ?? "";
  find("another").hidden = !found.another;
  if (JSON.stringify(state.classes.map(({ label, colour }) => [label, colour])) !== before) await recolour();
}

export async function drawClasses() {
  await loadClasses();
  if (!isTyping()) await draw(); // what is being written stays
}

async function draw() {
  const one = opened();
  find("all-classes").hidden = !one;
  find("classes-title").textContent = one ? "" : `Classes (${state.classes.length})`;
  find("classes-body").classList.toggle("open", Boolean(one));
  if (one) {
    find("classes-title").append(chip(one.label));
    const cards = await membersOf(one, state.classes);
    if (opened() === one) redraw(find("classes-body"), [details(one), ...cards]);
    return;
  }
  drawMembers(null);
  redraw(find("classes-body"), state.classes.map(summary));
}

export async function open(row) {
  face = row;
  find("classes-body").scrollTop = 0;
  await draw();
  find("classes-title").focus();
}

function summary(one) {
  const item = made("article", undefined, { class: "class", "data-label": one.label, "aria-label": nameOf(one.label) });
  const head = made("div", undefined, { class: "class-head" });
  head.append(swatch(one), one.face ? nameInput(one) : made("span", nameOf(one.label)));
  const facts = [counted(one.size, "point"), one.answered ? `${one.answered} answered` : ""].filter(Boolean).join(", ");
  const text = made("div", undefined, { class: "class-text" });
  text.append(head, made("p", facts, { class: "quiet" }));
  if (one.description) text.append(made("p", one.description));
  text.append(apart(one));
  if (one.face) text.append(pressed("Look inside", () => open(one.face.row), { "data-key": `open ${one.face.row}`, "aria-label": `Look inside ${nameOf(one.label)}` }));
  item.append(one.face ? drawCard(one.face, { names: fieldsOf([one.face], false, 3) }) : made("p", "empty", { class: "quiet" }), text);
  return item;
}

const swatch = (one) => {
  const element = made("span", undefined, { class: "chip", "aria-hidden": "true" });
  element.className = chip(one.label).className;
  element.append(made("i"));
  return element;
};

function apart(one) {
  const list = made("ul", undefined, { class: "apart-list", "aria-label": "What sets it apart" });
  for (const sentence of one.apart) list.append(made("li", sentence));
  return list;
}

function rename(one, changes) {
  const { name, colour, description } = { ...one, ...changes };
  Object.assign(one, changes);
  put({ entry: "name", rows: [one.face.row], name: name || null, colour, description: description ?? "" });
}

function written_(one, attribute, label, placeholder, more) {
  const input = made("input", undefined, { type: "text", "aria-label": label, placeholder, "data-key": `${attribute} ${one.face.row}`, ...more });
  input.value = one[attribute] ?? "";
  input.addEventListener("change", () => rename(one, { [attribute]: input.value.trim() }));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") input.blur();
  });
  return input;
}

const nameInput = (one) => written_(one, "name", `Name of class ${one.label}`, `class ${one.label} (name it)`, { maxlength: 100, class: "class-name" });

// What the open class is, and its tools: name, description, colour, merge.
function details(one) {
  const element = made("div", undefined, { class: "details" });
  if (one.description) element.append(made("p", one.description));
  element.append(made("p", `${counted(one.size, "point")}, ${one.answered} answered`, { class: "quiet" }), apart(one));
  const tools = made("details");
  tools.open = editing;
  tools.addEventListener("toggle", () => { editing = tools.open; });
  tools.append(made("summary", "Name, colour, merge"));
  const names = made("div", undefined, { class: "row wide" });
  names.append(nameInput(one), written_(one, "description", `Description of ${nameOf(one.label)}`, "What is in it? (optional)", { maxlength: 1000, class: "wide" }));
  const row = made("div", undefined, { class: "row" });
  const colours = made("select", undefined, { "aria-label": `Colour of ${nameOf(one.label)}`, "data-key": `colour ${one.face.row}` });
  for (let number = 0; number < state.start.n_colours; number++) colours.append(made("option", COLOURS[number] ?? `colour ${number}`, { value: number }));
  colours.value = String(colourOf(one.label));
  colours.disabled = !one.name; // they belong to the name
  colours.addEventListener("change", () => rename(one, { colour: Number(colours.value) }));
  row.append(colours);
  const others = state.classes.filter((other) => other !== one && other.face);
  if (others.length) {
    const into = made("select", undefined, { "aria-label": "Class to merge it with", "data-key": "merge with" });
    for (const other of others) into.append(made("option", nameOf(other.label), { value: other.face.row }));
    row.append(into, pressed("Merge the two", () => merge(one, Number(into.value)), { "data-key": "merge" }));
  }
  names.lastElementChild.disabled = !one.name;
  tools.append(names, row);
  if (!one.name) tools.append(made("p", "Name it first; then it can have a description and a colour of its own.", { class: "quiet" }));
  element.append(tools);
  return element;
}

async function merge(one, other) {
  await put({ entry: "merge", rows: [one.face.row, other] });
  await open(null);
}
