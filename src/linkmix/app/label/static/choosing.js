// Points and links chosen on the map, by a click or with the lasso.

import { ask, put, remove } from "./api.js";
import { drawChosen, view, x, y } from "./map.js";
import { find, state } from "./page.js";

const NEAR = 9; // a click within this many pixels hits a point or a link

export async function choose(rows) {
  state.chosen = rows;
  drawChosen();
  const most = state.start.most_together;
  find("chosen").hidden = !rows.length;
  find("link-same").hidden = find("link-different").hidden = rows.length !== 2;
  find("link-all").hidden = rows.length < 3 || rows.length > most;
  find("link-nowhere").hidden = !state.start.noise || rows.length > most;
  let text = `${rows.length.toLocaleString("en")} points are chosen.`;
  if (rows.length > most) text += ` That is too many at once: choose at most ${most.toLocaleString("en")}.`;
  if (rows.length === 1 || rows.length === 2) {
    const { a, b } = await (await ask(`/api/pair?a=${rows[0]}&b=${rows.at(-1)}`)).json();
    if (state.chosen !== rows) return;
    text = rows.length === 1 ? `${a.id} is chosen. Click another point to link the two.` : `Are ${a.id} and ${b.id} the same?`;
  }
  find("chosen-text").textContent = text;
}

export function linkChosen(entry) {
  const rows = state.chosen;
  choose([]);
  return put({ ...entry, rows });
}

export function clicked(event) {
  if (!view) return;
  const at = pixels(event);
  const [link, toLink] = nearestLink(at);
  const [row, toPoint] = nearestPoint(at);
  if (link && toLink <= toPoint) return remove(link);
  if (row < 0 || state.chosen.length > 1) return choose(row < 0 ? [] : [row]);
  choose(state.chosen[0] === row ? [] : [...state.chosen, row]);
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
