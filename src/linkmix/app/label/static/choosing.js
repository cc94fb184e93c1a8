// Points and links chosen on the map, by a click or with the lasso, and the card of the point under the pointer.

import { ask, put, remove, turn } from "./api.js";
import { drawCard, fieldsOf } from "./cards.js";
import { drawChosen, labels, view, x, y } from "./map.js";
import { chip, counted, find, made, state, written } from "./page.js";

const NEAR = 9; // a click within this many pixels hits a point or a link
const CARDS = 6; // cards shown of many points
const kept = new Map(); // cards that were shown, by row

async function cardOf(row) {
  if (!kept.has(row)) kept.set(row, await (await ask(`/api/card?row=${row}`)).json());
  return kept.get(row);
}

export function choose(rows) {
  state.link = null;
  return showChosen(rows);
}

function chooseLink(link) {
  state.link = link;
  return showChosen(link.rows);
}

async function showChosen(rows) {
  state.chosen = rows;
  drawChosen();
  const { link, start } = state;
  const most = start.most_together;
  find("chosen").hidden = !rows.length;
  find("hint").hidden = Boolean(rows.length);
  find("link-same").hidden = find("link-different").hidden = rows.length !== 2 || Boolean(link);
  find("link-all").hidden = rows.length < 3 || rows.length > most;
  find("link-nowhere").hidden = !start.noise || rows.length > most || Boolean(link);
  find("link-turn").hidden = find("link-remove").hidden = !link;
  find("chosen-classes").hidden = rows.length < 3;
  if (!rows.length) return;
  if (rows.length > 2) {
    const counts = new Map();
    for (const row of rows) counts.set(labels[row], (counts.get(labels[row]) ?? 0) + 1);
    find("chosen-classes").replaceChildren(...[...counts].sort((a, b) => b[1] - a[1]).map(([label, n]) => {
      const item = made("li");
      item.append(chip(label), made("span", ` ${written(n)}`, { class: "quiet" }));
      return item;
    }));
    let text = `${written(rows.length)} points are chosen, of ${counts.size === 1 ? "one class" : `${counts.size} classes`}.`;
    if (rows.length > most) text += ` That is too many at once: choose at most ${written(most)}.`;
    find("chosen-text").textContent = text;
  }
  const cards = await Promise.all(sample(rows).map(cardOf));
  if (state.chosen !== rows) return;
  const names = fieldsOf(cards, false, 3);
  find("chosen-cards").replaceChildren(...cards.map((card) => drawCard(card, { names, label: labels[card.row] })));
  if (rows.length > cards.length) find("chosen-cards").append(made("p", `and ${counted(rows.length - cards.length, "other")}`, { class: "quiet" }));
  const [a, b] = cards;
  if (link) find("chosen-text").textContent = `${a.id} and ${b.id} were said to be ${link.said}${link.annotator ? ` by ${link.annotator}` : ""}.`;
  else if (rows.length === 1) find("chosen-text").textContent = `${a.id} is chosen. Click another point to link the two.`;
  else if (rows.length === 2) find("chosen-text").textContent = `Are ${a.id} and ${b.id} the same?`;
}

// A few rows, evenly spread, those of rare classes too.
function sample(rows) {
  if (rows.length <= CARDS) return rows;
  const sorted = [...rows].sort((a, b) => labels[a] - labels[b] || a - b);
  const first = sorted.filter((row, i) => !i || labels[row] !== labels[sorted[i - 1]]).slice(0, CARDS);
  for (let i = 0; first.length < CARDS; i++) {
    const row = sorted[Math.floor(((i + 0.5) * sorted.length) / CARDS) % sorted.length];
    first.push(first.includes(row) ? sorted.find((other) => !first.includes(other)) : row);
  }
  return first;
}

export function linkChosen(entry) {
  const rows = state.chosen;
  choose([]);
  return put({ ...entry, rows });
}

export function changeLink(how) {
  const { link } = state;
  choose([]);
  return link && (how === "turn" ? turn : remove)(link);
}

export function clicked(event) {
  if (!view) return;
  hovered(null);
  const at = pixels(event);
  const [link, toLink] = nearestLink(at);
  const [row, toPoint] = nearestPoint(at);
  if (link && toLink <= toPoint) return chooseLink(link);
  if (row < 0 || state.link || state.chosen.length > 1) return choose(row < 0 ? [] : [row]);
  choose(state.chosen[0] === row ? [] : [...state.chosen, row]);
}

let under = -1; // the row under the pointer
export async function hovered(event) {
  const tooltip = find("tooltip");
  const row = event && view && !event.buttons && event.pointerType !== "touch" ? nearestPoint(pixels(event))[0] : -1;
  if (row === under) return;
  under = row;
  tooltip.hidden = true;
  if (row < 0) return;
  const box = find("plot").getBoundingClientRect();
  const card = await cardOf(row);
  if (under !== row) return;
  tooltip.replaceChildren(drawCard(card, { label: labels[row] }));
  tooltip.hidden = false;
  const left = event.clientX - box.left, top = event.clientY - box.top;
  tooltip.style.left = `${left > box.width / 2 ? left - tooltip.offsetWidth - 14 : left + 14}px`;
  tooltip.style.top = `${Math.max(0, Math.min(top - tooltip.offsetHeight / 2, box.height - tooltip.offsetHeight))}px`;
}

export function lassoed(event) {
  if (!event?.lassoPoints) return;
  const { x: across, y: up } = event.lassoPoints;
  const rows = [];
  for (let row = 0; row < state.start.n_points; row++) if (isInside(x(row), y(row), across, up)) rows.push(row);
  choose(rows);
}

// Functions from coordinates on the map to their distance from an event in pixels.
function pixels(event) {
  const box = find("cloud").getBoundingClientRect();
  const toX = box.width / (view.x[1] - view.x[0]), toY = box.height / (view.y[1] - view.y[0]);
  return {
    dx: (value) => (value - view.x[0]) * toX - (event.clientX - box.left),
    dy: (value) => (view.y[1] - value) * toY - (event.clientY - box.top),
  };
}

function nearestPoint({ dx, dy }) {
  let best = NEAR * NEAR, found = -1;
  for (let row = 0; row < state.start.n_points; row++) {
    const one = dx(x(row)), other = dy(y(row));
    const distance = one * one + other * other;
    if (distance < best) [best, found] = [distance, row];
  }
  return [found, Math.sqrt(best)];
}

function nearestLink({ dx, dy }) {
  let best = NEAR, found = null;
  for (const link of state.status?.links ?? []) {
    const [ax, bx] = link.rows.map((row) => dx(x(row)));
    const [ay, by] = link.rows.map((row) => dy(y(row)));
    const length = Math.hypot(bx - ax, by - ay);
    const along = -(ax * (bx - ax) + ay * (by - ay)) / length;
    if (!(along > NEAR && along < length - NEAR)) continue; // a click near an end means the point
    const distance = Math.abs(ax * by - ay * bx) / length;
    if (distance < best) [best, found] = [distance, link];
  }
  return [found, best];
}

function isInside(left, top, across, up) {
  let inside = false;
  for (let i = 0, j = across.length - 1; i < across.length; j = i++) {
    if (up[i] > top !== up[j] > top && left < ((across[j] - across[i]) * (top - up[i])) / (up[j] - up[i]) + across[i]) inside = !inside;
  }
  return inside;
}
