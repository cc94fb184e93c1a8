// The map. Points are drawn on a canvas, so that 100,000 of them are fast and no code is generated from text. Plotly,
// on top of it, draws links and rings and handles moving, zooming and the lasso.

import { ask } from "./api.js";
import { colour, colourOf, find, state } from "./page.js";

const TRACES = { same: 0, different: 1, link: 2, question: 3, chosen: 4 };
const LINE = 1.5;
export let labels = new Int16Array(); // the class of each point
let places; // all horizontal coordinates, then all vertical ones
let whole; // ranges of the whole map
let byColour = []; // rows of each colour
let asked = []; // cards of the question
let byClasses = false; // whether the map is the projection that shows the classes
let loading = null; // the map, once someone looks at it
let drawn = Promise.resolve(); // changes to the chart, one after another
export let view; // the visible ranges; undefined until there is a map

export const x = (row) => places[row];
export const y = (row) => places[state.start.n_points + row];

// Draws the map when it is first looked at, since it needs a large script.
export function openMap(lassoed) {
  loading ??= loadMap().then(() => drawMap(lassoed));
  return loading.then(resized);
}

// The map has another size: what is chosen needs room below it, or the view was closed.
export function resized() {
  drawCloud();
  if (find("plot").clientWidth) return change((chart) => Plotly.Plots.resize(chart));
}

async function loadMap() {
  const [found] = await Promise.all([fetchPlaces(), plotlyLoaded()]);
  place(found);
  await recolour();
}

async function fetchPlaces() {
  const reply = await ask(`/api/places${byClasses ? "?projection=classes" : ""}`);
  return new Float32Array(await reply.arrayBuffer());
}

function place(found) {
  places = found;
  const n = state.start.n_points;
  whole = { x: range(places.subarray(0, n)), y: range(places.subarray(n)) };
  view ??= whole;
}

// Another projection: the one that shows the classes, or the one of the points alone.
export async function project(classes) {
  byClasses = classes;
  await loading;
  place(await fetchPlaces());
  view = whole;
  showWhole();
  redrawMap();
}

function plotlyLoaded() {
  return new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = "/plotly.js";
    script.onload = done;
    script.onerror = () => failed(new Error("the script of the map could not be loaded"));
    document.head.append(script);
  });
}

function range(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const room = (high - low || 1) * 0.06;
  return [low - room, high + room];
}

export async function drawMap(lassoed) {
  const line = (dash) => ({ type: "scatter", mode: "lines", x: [], y: [], line: { color: colour("--ink"), width: LINE, dash } });
  const rings = (symbol, width, name) => ({
    type: "scatter", mode: "markers+text", x: [], y: [], textposition: "top center",
    textfont: { color: colour("--ink"), size: 16, weight: 700 },
    marker: { size: 17, symbol, color: colour(name), line: { color: colour(name), width } },
  });
  const layout = {
    xaxis: { range: [...view.x], visible: false }, yaxis: { range: [...view.y], visible: false }, margin: { l: 0, r: 0, t: 0, b: 0 },
    showlegend: false, dragmode: document.querySelector("[data-drag][aria-pressed=true]").dataset.drag, hovermode: false,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", newselection: { line: { color: colour("--accent"), width: 2, dash: "solid" } },
  };
  const chart = find("chart");
  const traces = [line("solid"), line("6px,4px"), { ...line("solid"), line: { color: colour("--accent"), width: 5 } }, rings("circle-open", 3, "--ink"), rings("square-open", 2.5, "--accent")];
  await Plotly.newPlot(chart, traces, layout, { displayModeBar: false, responsive: true, scrollZoom: true, doubleClick: false });
  chart.on("plotly_relayouting", moved);
  chart.on("plotly_relayout", moved);
  chart.on("plotly_selected", lassoed);
  redrawMap();
  find("plot").dataset.drawn = "";
  performance.mark("map");
}

function redrawMap() {
  drawCloud();
  drawLinks();
  drawQuestion(asked);
  drawChosen();
}

function moved(event) {
  const at = (name, i, old) => event[`${name}.range`]?.[i] ?? event[`${name}.range[${i}]`] ?? old;
  view = { x: view.x.map((old, i) => at("xaxis", i, old)), y: view.y.map((old, i) => at("yaxis", i, old)) };
  requestAnimationFrame(drawCloud);
}

export function drawCloud() {
  if (!view) return;
  const canvas = find("cloud");
  const { clientWidth: width, clientHeight: height } = canvas;
  const dots = devicePixelRatio;
  if (canvas.width !== Math.round(width * dots) || canvas.height !== Math.round(height * dots)) {
    canvas.width = Math.round(width * dots);
    canvas.height = Math.round(height * dots);
  }
  const paint = canvas.getContext("2d");
  paint.setTransform(dots, 0, 0, dots, 0, 0);
  paint.clearRect(0, 0, width, height);
  const n = state.start.n_points;
  const many = n > 5000;
  const radius = many ? (n > 20000 ? 1.25 : 1.75) : 3.5;
  const toX = width / (view.x[1] - view.x[0]), toY = height / (view.y[1] - view.y[0]);
  const isChosen = state.chosen.length > 2 ? new Set(state.chosen) : null;
  for (const dim of isChosen ? [true, false] : [false]) {
    paint.globalAlpha = dim ? 0.15 : many ? 0.6 : 0.85;
    byColour.forEach((rows, number) => {
      paint.fillStyle = colour(number < state.start.n_colours ? `--c${number}` : "--quiet"); // the last are of no class
      for (const row of rows) {
        if (isChosen && isChosen.has(row) === dim) continue;
        const left = (places[row] - view.x[0]) * toX, top = (view.y[1] - places[n + row]) * toY;
        if (!(left > -9 && top > -9 && left < width + 9 && top < height + 9)) continue;
        if (many) paint.fillRect(left - radius, top - radius, 2 * radius, 2 * radius);
        else {
          paint.beginPath();
          paint.arc(left, top, radius, 0, 7);
          paint.fill();
        }
      }
    });
  }
}

export async function recolour() {
  if (!view) return;
  labels = new Int16Array(await (await ask("/api/labels")).arrayBuffer());
  const n = state.start.n_colours;
  byColour = Array.from({ length: n + 1 }, () => []);
  labels.forEach((label, row) => byColour[label < 0 ? n : colourOf(label)].push(row));
  drawCloud();
}

// Changes the chart, after all earlier changes.
function change(make) {
  if (!find("chart").data) return drawn;
  drawn = drawn.then(() => make(find("chart"))).catch((error) => console.error(error));
  return drawn;
}

const relayout = (changes) => change((chart) => Plotly.relayout(chart, changes));
export const showWhole = () => relayout({ "xaxis.range": [...whole.x], "yaxis.range": [...whole.y] });
export const dragBy = (dragmode) => relayout({ dragmode });

export function drawLinks() {
  if (!view || !state.status) return;
  const lines = { same: { x: [], y: [] }, different: { x: [], y: [] } };
  for (const { rows: [a, b], said } of state.status.links) {
    lines[said].x.push(x(a), x(b), null);
    lines[said].y.push(y(a), y(b), null);
  }
  const { same, different } = lines;
  change((chart) => Plotly.restyle(chart, { x: [same.x, different.x], y: [same.y, different.y] }, [TRACES.same, TRACES.different]));
}

export function drawQuestion(cards) {
  asked = cards;
  if (!view) return;
  const rows = cards.map((card) => card.row);
  const text = rows.length === 2 && state.question?.kind === "pair" ? ["A", "B"] : ["?", ...rows.slice(1).map((_, i) => String(i + 1))];
  change((chart) => Plotly.restyle(chart, { x: [rows.map(x)], y: [rows.map(y)], text: [text.slice(0, rows.length)] }, [TRACES.question]));
}

export function drawChosen() {
  if (!view) return;
  const rows = state.chosen.length > 2 ? [] : state.chosen;
  const ends = state.link?.rows ?? [];
  change((chart) => Plotly.restyle(chart, { x: [ends.map(x), rows.map(x)], y: [ends.map(y), rows.map(y)] }, [TRACES.link, TRACES.chosen]));
  if (find("chart").layout?.selections?.length) relayout({ selections: [] });
  drawCloud();
}
