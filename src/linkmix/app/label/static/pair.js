// Two points side by side: a table of their fields, with what differs marked.

import { picture } from "./cards.js";
import { chip, made, pressed, redraw } from "./page.js";
import { isText, marked } from "./words.js";

const FIELDS = 14; // fields shown until all are asked for

// Draws a pair into an element. Options: labels says whether the classes are shown, all whether all fields are.
export function drawPair(into, pair, { labels = false, all = false } = {}) {
  const fields = all ? pair.fields : fewer(pair);
  const table = made("table", undefined, { class: fields.length ? "pair" : "pair bare" });
  table.append(made("caption", `Point ${pair.a.id} and point ${pair.b.id}`, { class: "hidden" }));
  const head = made("tr");
  if (fields.length) head.append(made("td", "", { class: "corner" }));
  for (const end of ["a", "b"]) {
    const card = pair[end];
    const cell = made("th", undefined, { scope: "col" });
    const name = made("span", undefined, { class: "name" });
    name.append(made("span", end.toUpperCase(), { class: "letter", "aria-hidden": "true" }), made("span", card.id));
    cell.append(name);
    if (labels && card.label !== null && card.label !== undefined) cell.append(chip(card.label));
    if (card.picture) cell.append(picture(card));
    head.append(cell);
  }
  if (fields.length) head.append(made("th", "apart", { scope: "col", class: "apart", title: "standard deviations between the two" }));
  const top = made("thead"), body = made("tbody");
  top.append(head);
  for (const field of fields) body.append(fieldRow(field));
  table.append(top, body);
  const parts = [table];
  if (fields.length < pair.fields.length || all) {
    const text = all ? "Show fewer fields" : `Show all ${pair.fields.length} fields`;
    if (!all || fewer(pair).length < pair.fields.length) {
      parts.push(pressed(text, () => drawPair(into, pair, { labels, all: !all }), { class: "small more", "data-key": "fields" }));
    }
  }
  redraw(into, parts);
}

// Numbers say little beside pictures; of many fields, those most apart are shown.
function fewer(pair) {
  const fields = pair.a.picture || pair.b.picture ? pair.fields.filter((field) => field.apart === null) : pair.fields;
  if (fields.length <= FIELDS) return fields;
  const weight = (field) => field.apart ?? (field.differs ? 100 : 99);
  const least = fields.map(weight).sort((a, b) => b - a)[FIELDS - 1];
  return fields.filter((field) => weight(field) >= least).slice(0, FIELDS);
}

function fieldRow(field) {
  const words = field.apart === null && field.differs && (isText(field.a) || isText(field.b));
  const level = !field.differs || words ? 0 : field.apart === null || field.apart >= 1 ? 2 : field.apart >= 0.3 ? 1 : 0;
  const row = made("tr", undefined, { class: `level${level}` });
  const name = made("th", undefined, { scope: "row" });
  for (const part of field.name.split(/(?<=[_./-])/)) name.append(part, made("wbr"));
  row.append(name);
  for (const [end, other] of [["a", "b"], ["b", "a"]]) {
    const cell = made("td");
    cell.append(words ? marked(field[end], field[other]) : field[end] || "—");
    row.append(cell);
  }
  const apart = made("td", undefined, { class: "apart" });
  if (field.apart !== null) {
    const bar = made("span", undefined, { class: "far", "aria-hidden": "true" });
    const fill = made("i");
    fill.style.width = `${Math.min(100, (100 * field.apart) / 3)}%`;
    bar.append(fill);
    apart.append(bar, made("span", field.apart.toFixed(1), { class: "number" }));
  } else apart.append(made("span", field.differs ? "≠" : "=", { class: "number" }));
  row.append(apart);
  return row;
}
