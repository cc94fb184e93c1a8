// A card shows one point: its picture, its id and its fields.

import { chip, made } from "./page.js";
import { token } from "./token.js";

const SHOWN = 5; // fields on a card until all are asked for
let made_ = 0;

const isNumber = (value) => value.trim() !== "" && !Number.isNaN(Number(value));

export function picture(card) {
  return made("img", undefined, { src: `/picture/${card.row}?token=${token()}`, alt: `Picture of ${card.id}`, loading: "lazy" });
}

// Names of the fields to show on all of these cards: numbers say little beside a picture, and what is equal on all
// cards says little too.
export function fieldsOf(cards, all = false, most = SHOWN) {
  const values = new Map();
  for (const card of cards) {
    for (const field of card.fields) {
      if (!values.has(field.name)) values.set(field.name, []);
      values.get(field.name).push(field.value);
    }
  }
  const names = [...values.keys()];
  if (all) return names;
  const hasPicture = cards.some((card) => card.picture);
  const shown = names.filter((name) => !hasPicture || !values.get(name).every(isNumber));
  const weight = (name) => (values.get(name).every(isNumber) ? 0 : 2) + (new Set(values.get(name)).size > 1 ? 1 : 0);
  const kept = new Set([...shown].sort((a, b) => weight(b) - weight(a)).slice(0, hasPicture ? 3 : most));
  return shown.filter((name) => kept.has(name));
}

// One card. With pick, a function, it can be picked: it is a checkbox with a label. With number, its key is shown.
export function drawCard(card, { names, all = false, pick, picked = false, number, label = null, note, large = false } = {}) {
  const id = `card-${made_++}`;
  const element = made(pick ? "label" : "div", undefined, { class: `card${large ? " large" : ""}${all ? " all" : ""}`, "data-row": card.row });
  const title = made("span", undefined, { class: "card-id" });
  title.append(made("span", card.id, { id: `${id}-id` }));
  if (pick) {
    const box = made("input", undefined, { type: "checkbox", "aria-labelledby": `${id}-id`, "aria-describedby": `${id}-fields`, "data-key": `card ${card.row}` });
    box.checked = picked;
    box.addEventListener("change", () => pick(card.row, box.checked));
    title.prepend(box);
    if (number) title.append(made("kbd", number, { "aria-hidden": "true" }));
  }
  element.append(title);
  if (card.picture) element.append(picture(card));
  if (label !== null && label !== undefined) element.append(chip(label));
  if (note) element.append(made("span", note, { class: "quiet note" }));
  const fields = made("span", undefined, { class: "fields", id: `${id}-fields` });
  for (const { name, value } of card.fields.filter((field) => (names ?? fieldsOf([card], all)).includes(field.name))) {
    const field = made("span", undefined, { class: "one" });
    field.append(made("span", name, { class: "field-name" }), " ", made("span", value || "—", { class: "value" }));
    fields.append(field);
  }
  element.append(fields);
  return element;
}
