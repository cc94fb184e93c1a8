// The page of linkmix label. Text of the user goes into the page through textContent alone, and never into Plotly.

const POLL = 1000; // milliseconds between looks at what others did
const FIELDS = 14; // fields that are shown before one asks for all
const NEAR = 9; // pixels from a point or a link that still hit it
const COLOURS = 10;

const find = (id) => document.getElementById(id);
const known = (name) => JSON.parse(sessionStorage.getItem(name) ?? "null");
const keep = (name, value) => sessionStorage.setItem(name, JSON.stringify(value));
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function made(tag, text, attributes = {}) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function key() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const page = known("page") ?? key();
keep("page", page);
const waiting = known("waiting") ?? []; // what was said and not acknowledged yet; a reload does not lose it
let start, status, question, places;
let busy = true; // no question is on the page, or its answer is on the way
let allFields = false;
let chosen = []; // rows of points that were clicked, or lassoed
let drawn = Promise.resolve(); // changes of the map, one after the other

// Talking to the server

class Refused extends Error {}

async function ask(path) {
  const reply = await fetch(path);
  if (!reply.ok) throw new (reply.status < 500 ? Refused : Error)((await reply.text()).trim());
  return reply;
}

async function post(entry) {
  const reply = await fetch("/api/entries", {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Linkmix": "1" },
    body: JSON.stringify(entry),
  });
  if (!reply.ok) throw new (reply.status < 500 ? Refused : Error)((await reply.text()).trim());
  return reply.json();
}

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

function alarm(text) {
  const element = find("alarm");
  if (element.textContent !== text) element.textContent = text;
  element.hidden = !text;
}

// Sends what waits, in its order, and again until the server says that it has it. A key makes repeating harmless.
let sending = false;
async function send() {
  if (sending) return;
  sending = true;
  while (waiting.length) {
    const entry = waiting[0];
    try {
      const reply = await post(entry);
      alarm("");
      took(entry, reply);
    } catch (error) {
      if (!(error instanceof Refused)) {
        const n = waiting.length === 1 ? "1 answer waits" : `${waiting.length} answers wait`;
        alarm(`The server can not be reached; ${n} and will be sent again.`);
        await pause(500);
        continue;
      }
      say(`Not saved: ${error.message}.`);
      if (question) busy = false;
    }
    waiting.shift();
    keep("waiting", waiting);
    if (!waiting.length && !question) await nextQuestion();
  }
  sending = false;
  look();
}

function put(entry) {
  waiting.push({ ...entry, key: key(), page, table: start.table, annotator: find("annotator").value.trim() || null });
  keep("waiting", waiting);
  return send();
}

function took(entry, reply) {
  const names = { same: "Same", different: "Different", unsure: "Unsure", skip: "Skipped" };
  if (entry.entry === "undo") {
    const { entry: what, ids = [], said } = reply.undone ?? { entry: "undo" };
    const two = what === "together" ? `${ids.length} points together` : ids.join(" and ");
    say(what === "undo" ? "Undone." : `Undone: ${what === "answer" ? names[said].toLowerCase() : what}, ${two}.`);
  } else if (entry.entry === "answer") say(`Saved: ${names[entry.said].toLowerCase()}.`);
  else if (entry.entry === "together") say(`Saved: ${entry.rows.length} points belong together.`);
  else say("Removed the link. Undo brings it back.");
  if ("question" in reply) show(reply.question);
}

function say(text) {
  const element = find("message");
  element.textContent = "";
  element.textContent = text;
}

// The question

async function nextQuestion() {
  try {
    show((await (await ask(`/api/question?page=${page}`)).json()).question);
  } catch {
    busy = true;
  }
}

function show(pair) {
  const isNew = JSON.stringify(pair) !== JSON.stringify(question);
  question = pair;
  busy = !pair;
  for (const button of document.querySelectorAll("[data-said]")) button.disabled = busy;
  find("ask-title").textContent = `${pair?.again ? "Once more: do" : "Do"} these two belong together?`;
  if (!pair) {
    find("pair").replaceChildren(made("p", "No question is left: all pairs that matter are answered, or follow.", { class: "quiet" }));
  } else if (isNew) {
    allFields = false;
    drawPair();
    if (pair.again) say(`${find("message").textContent} The next pair is asked again: its answer was a surprise.`);
  }
  drawQuestion();
  find("ask").dataset.rows = pair ? `${pair.a.row} ${pair.b.row}` : "";
  performance.mark("question");
}

function drawPair() {
  const table = made("table");
  table.append(made("caption", `Point ${question.a.id} and point ${question.b.id}`, { class: "hidden" }));
  const head = made("tr");
  head.append(made("td", "", { class: "corner" }));
  for (const end of ["a", "b"]) {
    const card = question[end];
    const cell = made("th", undefined, { scope: "col" });
    const name = made("span", undefined, { class: "name" });
    name.append(made("span", end.toUpperCase(), { class: "letter", "aria-hidden": "true" }), made("span", card.id));
    cell.append(name, chip(card.label));
    if (card.picture) cell.append(made("img", undefined, { src: `/picture/${card.row}`, alt: `Picture of ${card.id}` }));
    head.append(cell);
  }
  head.append(made("th", "apart", { scope: "col", class: "apart", title: "standard deviations between the two" }));
  const body = made("tbody");
  const fields = allFields ? question.fields : mostApart(question.fields);
  for (const field of fields) body.append(fieldRow(field));
  const top = made("thead");
  top.append(head);
  table.append(top, body);
  const parts = [table];
  if (fields.length < question.fields.length) {
    const more = made("button", `Show all ${question.fields.length} fields`, { type: "button", class: "small more" });
    more.addEventListener("click", () => { allFields = true; drawPair(); });
    parts.push(more);
  }
  find("pair").replaceChildren(...parts);
}

function mostApart(fields) {
  if (fields.length <= FIELDS) return fields;
  const weight = (field) => field.apart ?? (field.differs ? 100 : 99);
  const least = fields.map(weight).sort((a, b) => b - a)[FIELDS - 1];
  return fields.filter((field) => weight(field) >= least).slice(0, FIELDS);
}

function fieldRow(field) {
  const level = !field.differs ? 0 : field.apart === null || field.apart >= 1 ? 2 : field.apart >= 0.3 ? 1 : 0;
  const row = made("tr", undefined, { class: `level${level}` });
  const name = made("th", undefined, { scope: "row" });
  for (const part of field.name.split(/(?<=[_./-])/)) name.append(part, made("wbr"));
  row.append(name);
  for (const end of ["a", "b"]) row.append(made("td", field[end] || "—"));
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

function chip(label) {
  const element = made("span", undefined, { class: `chip k${label % COLOURS}` });
  element.append(made("i", undefined, { "aria-hidden": "true" }), made("span", `class ${label}`));
  return element;
}

function answer(said) {
  if (busy || !question) return;
  busy = true;
  performance.clearMarks("answer");
  performance.mark("answer");
  put({ entry: "answer", rows: [question.a.row, question.b.row], said });
}

const undo = () => put({ entry: "undo" });

// What is known

async function look() {
  try {
    const reply = await ask(`/api/status?page=${page}&have=${status?.version ?? 0}`);
    if (!waiting.length) alarm("");
    if (reply.status === 204) return;
    const before = status;
    status = await reply.json();
    if (status.table !== start.table) location.reload(); // the server was started with another table
    if (!question && !waiting.length) await nextQuestion();
    if (before?.refits !== status.refits) await recolour();
    drawStatus();
    drawLinks();
  } catch (error) {
    if (!waiting.length) alarm(error instanceof Refused ? error.message : "The server can not be reached. Start it again with the same command, and this page goes on.");
  }
}

function drawStatus() {
  const { counts, n_links: links, stop } = status;
  find("stop").textContent = stop.sentence;
  find("stop").className = stop.enough ? "enough" : "";
  const settled = Math.round(100 * (1 - stop.signal));
  find("settled").setAttribute("aria-valuenow", settled);
  find("settled").firstElementChild.style.width = `${settled}%`;
  const rows = [
    ["Same", counts.same], ["Different", counts.different], ["Unsure", counts.unsure], ["Skipped", counts.skip],
    ["Must-links", links.same], ["Cannot-links", links.different],
  ];
  find("counts").replaceChildren(...rows.map(([name, value]) => {
    const pair = made("div");
    pair.append(made("dt", name), made("dd", value.toLocaleString("en")));
    return pair;
  }));
  const who = status.annotators.length > 1 ? ` Answers by ${status.annotators.join(", ")}.` : "";
  find("fitting").textContent = (status.trouble ?? (status.fitting ? "Refitting the model …" : `The model was refitted ${status.refits} times.`)) + who;
  const shown = status.links.slice(0, 100);
  listLinks("links-list", shown, "No links yet.");
  const total = links.same + links.different;
  find("links-title").textContent = total > shown.length ? `Links (the newest ${shown.length} of ${total})` : `Links (${total})`;
  listLinks("review-list", status.review, "Nothing stands out.");
  find("legend").replaceChildren(...status.sizes.map((size, label) => {
    const item = made("li");
    item.append(chip(label), made("span", ` ${size.toLocaleString("en")}`, { class: "quiet" }));
    return item;
  }));
  find("plot").setAttribute("aria-label", `Map of ${start.n_points} points: ${status.sizes.map((n, label) => `${n} in class ${label}`).join(", ")}`);
}

function listLinks(id, links, empty) {
  const list = find(id);
  if (!links.length) return list.replaceChildren(made("li", empty, { class: "quiet" }));
  const focused = list.contains(document.activeElement) ? [...list.querySelectorAll("button")].indexOf(document.activeElement) : -1;
  list.replaceChildren(...links.map((link) => {
    const item = made("li");
    const text = made("span", undefined, { class: "text" });
    text.append(made("span", link.ids[0]), made("b", link.said === "same" ? " = " : " ≠ "), made("span", link.ids[1]));
    if (link.reason || link.annotator) text.append(made("small", [link.reason, link.annotator && `by ${link.annotator}`].filter(Boolean).join("; ")));
    const button = made("button", "Remove", { type: "button", class: "small", "aria-label": `Remove the link between ${link.ids[0]} and ${link.ids[1]}` });
    button.addEventListener("click", () => remove(link));
    item.append(text, button);
    return item;
  }));
  if (focused >= 0) list.querySelectorAll("button")[Math.min(focused, links.length - 1)]?.focus();
}

const remove = (link) => put({ entry: "remove", rows: link.rows });

// The map. The points are drawn on a canvas, so that 100,000 of them are quick and no script needs to be made from text;
// Plotly, over it, draws links and rings and does the moving, zooming and lassoing.

const TRACES = { same: 0, different: 1, question: 2, chosen: 3 };
const LINE = 1.5;
let view; // what part of the map is seen
let whole;
let byColour = []; // rows of each colour

async function drawMap() {
  const n = start.n_points;
  const line = (dash) => ({ type: "scatter", mode: "lines", x: [], y: [], line: { color: colour("--ink"), width: LINE, dash } });
  const rings = (symbol, width, name) => ({
    type: "scatter", mode: "markers+text", x: [], y: [], textposition: "top center",
    textfont: { color: colour("--ink"), size: 16, weight: 700 },
    marker: { size: 17, symbol, color: colour(name), line: { color: colour(name), width } },
  });
  const range = (from) => {
    let low = Infinity, high = -Infinity;
    for (let i = from; i < from + n; i++) {
      if (places[i] < low) low = places[i];
      if (places[i] > high) high = places[i];
    }
    const room = (high - low || 1) * 0.06;
    return [low - room, high + room];
  };
  whole ??= { x: range(0), y: range(n) };
  view ??= whole;
  const layout = {
    xaxis: { range: [...view.x], visible: false }, yaxis: { range: [...view.y], visible: false }, margin: { l: 0, r: 0, t: 0, b: 0 },
    showlegend: false, dragmode: document.querySelector("[data-drag][aria-pressed=true]").dataset.drag, hovermode: false,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", newselection: { line: { color: colour("--accent"), width: 2, dash: "solid" } },
  };
  const chart = find("chart");
  const traces = [line("solid"), line("6px,4px"), rings("circle-open", 3, "--ink"), rings("square-open", 2.5, "--accent")];
  await Plotly.newPlot(chart, traces, layout, { displayModeBar: false, responsive: true, scrollZoom: true, doubleClick: false });
  chart.on("plotly_relayouting", moved);
  chart.on("plotly_relayout", moved);
  chart.on("plotly_selected", lassoed);
  drawCloud();
  drawLinks();
  drawQuestion();
  drawChosen();
  find("plot").dataset.drawn = "";
  performance.mark("map");
}

function moved(event) {
  const at = (name, i, old) => event[`${name}.range`]?.[i] ?? event[`${name}.range[${i}]`] ?? old;
  view = { x: view.x.map((old, i) => at("xaxis", i, old)), y: view.y.map((old, i) => at("yaxis", i, old)) };
  requestAnimationFrame(drawCloud);
}

function drawCloud() {
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
  const n = start.n_points;
  const many = n > 5000;
  const radius = many ? (n > 20000 ? 1.25 : 1.75) : 3.5;
  const toX = width / (view.x[1] - view.x[0]), toY = height / (view.y[1] - view.y[0]);
  const isChosen = chosen.length > 2 ? new Set(chosen) : null;
  for (const dim of isChosen ? [true, false] : [false]) {
    paint.globalAlpha = dim ? 0.15 : many ? 0.6 : 0.85;
    byColour.forEach((rows, k) => {
      paint.fillStyle = colour(`--k${k}`);
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

function takeLabels(bytes) {
  const labels = new Int16Array(bytes);
  byColour = Array.from({ length: COLOURS }, () => []);
  labels.forEach((label, row) => byColour[label % COLOURS].push(row));
  drawCloud();
}

async function recolour() {
  if (view) takeLabels(await (await ask("/api/labels")).arrayBuffer());
}

// Changes of the chart, one after the other.
function change(make) {
  if (!find("chart").data) return;
  drawn = drawn.then(() => make(find("chart"))).catch((error) => console.error(error));
}

const x = (row) => places[row];
const y = (row) => places[start.n_points + row];

function drawLinks() {
  if (!view || !status) return;
  const lines = { same: { x: [], y: [] }, different: { x: [], y: [] } };
  for (const { rows: [a, b], said } of status.links) {
    lines[said].x.push(x(a), x(b), null);
    lines[said].y.push(y(a), y(b), null);
  }
  const { same, different } = lines;
  change((chart) => Plotly.restyle(chart, { x: [same.x, different.x], y: [same.y, different.y] }, [TRACES.same, TRACES.different]));
}

function drawQuestion() {
  if (!view) return;
  const rows = question ? [question.a.row, question.b.row] : [];
  change((chart) => Plotly.restyle(chart, { x: [rows.map(x)], y: [rows.map(y)], text: [["A", "B"].slice(0, rows.length)] }, [TRACES.question]));
}

function drawChosen() {
  if (!view) return;
  const rows = chosen.length > 2 ? [] : chosen;
  change((chart) => Plotly.restyle(chart, { x: [rows.map(x)], y: [rows.map(y)] }, [TRACES.chosen]));
  drawCloud();
}

// Where on the map an event is, as functions from data to distances in pixels.
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
  for (let row = 0; row < start.n_points; row++) {
    const one = dx(x(row)), other = dy(y(row));
    const distance = one * one + other * other;
    if (distance < best) [best, found] = [distance, row];
  }
  return [found, Math.sqrt(best)];
}

function nearestLink({ dx, dy }) {
  let best = NEAR, found = null;
  for (const link of status?.links ?? []) {
    const [ax, bx] = link.rows.map((row) => dx(x(row)));
    const [ay, by] = link.rows.map((row) => dy(y(row)));
    const length = Math.hypot(bx - ax, by - ay);
    const along = -(ax * (bx - ax) + ay * (by - ay)) / length;
    if (!(along > NEAR && along < length - NEAR)) continue; // near its ends one means the points, not the link
    const distance = Math.abs(ax * by - ay * bx) / length;
    if (distance < best) [best, found] = [distance, link];
  }
  return [found, best];
}

function clicked(event) {
  if (!view) return;
  const at = pixels(event);
  const [link, toLink] = nearestLink(at);
  const [row, toPoint] = nearestPoint(at);
  if (link && toLink <= toPoint) return remove(link);
  if (row < 0 || chosen.length > 1) return choose(row < 0 ? [] : [row]);
  choose(chosen[0] === row ? [] : [...chosen, row]);
}

function lassoed(event) {
  if (!event?.lassoPoints) return;
  const { x: across, y: up } = event.lassoPoints;
  const rows = [];
  for (let row = 0; row < start.n_points; row++) if (isInside(x(row), y(row), across, up)) rows.push(row);
  choose(rows);
}

function isInside(left, top, across, up) {
  let inside = false;
  for (let i = 0, j = across.length - 1; i < across.length; j = i++) {
    if (up[i] > top !== up[j] > top && left < ((across[j] - across[i]) * (top - up[i])) / (up[j] - up[i]) + across[i]) inside = !inside;
  }
  return inside;
}

async function choose(rows) {
  chosen = rows;
  drawChosen();
  if (find("chart").layout?.selections?.length) change((chart) => Plotly.relayout(chart, { selections: [] }));
  find("chosen").hidden = !rows.length;
  find("link-same").hidden = find("link-different").hidden = rows.length !== 2;
  find("link-all").hidden = rows.length < 3 || rows.length > start.most_together;
  let text = `${rows.length.toLocaleString("en")} points are chosen.`;
  if (rows.length > start.most_together) text += ` That is too many to say at once: choose at most ${start.most_together.toLocaleString("en")}.`;
  if (rows.length === 1 || rows.length === 2) {
    const { a, b } = await (await ask(`/api/pair?a=${rows[0]}&b=${rows.at(-1)}`)).json();
    if (chosen !== rows) return;
    text = rows.length === 1 ? `${a.id} is chosen. Click another point to link the two.` : `Are ${a.id} and ${b.id} the same?`;
  }
  find("chosen-text").textContent = text;
}

function linkChosen(entry) {
  const rows = chosen;
  choose([]);
  return put({ ...entry, rows });
}

// What a person does

for (const button of document.querySelectorAll("[data-said]")) button.addEventListener("click", () => answer(button.dataset.said));
find("undo").addEventListener("click", undo);
find("link-same").addEventListener("click", () => linkChosen({ entry: "answer", said: "same" }));
find("link-different").addEventListener("click", () => linkChosen({ entry: "answer", said: "different" }));
find("link-all").addEventListener("click", () => linkChosen({ entry: "together" }));
find("link-none").addEventListener("click", () => choose([]));
find("whole").addEventListener("click", () => change((chart) => Plotly.relayout(chart, { "xaxis.range": [...whole.x], "yaxis.range": [...whole.y] })));
find("plot").addEventListener("click", clicked);
new ResizeObserver(drawCloud).observe(find("plot"));
for (const button of document.querySelectorAll("[data-drag]")) {
  button.addEventListener("click", () => {
    for (const other of document.querySelectorAll("[data-drag]")) other.setAttribute("aria-pressed", String(other === button));
    change((chart) => Plotly.relayout(chart, { dragmode: button.dataset.drag }));
  });
}

find("by-id").addEventListener("submit", async (event) => {
  event.preventDefault();
  const values = new FormData(event.target);
  try {
    const rows = [];
    for (const end of ["a", "b"]) rows.push((await (await ask(`/api/find?id=${encodeURIComponent(values.get(end))}`)).json()).row);
    if (rows[0] === rows[1]) return say("These are one point: name two.");
    await choose(rows);
    find("link-same").focus();
  } catch (error) {
    say(`${error.message}.`);
  }
});

const KEYS = { s: () => answer("same"), d: () => answer("different"), u: () => answer("unsure"), k: () => answer("skip"), z: undo };
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
  if (view) drawMap(); // in the other colours
});

// The beginning: the question first, then the map, which needs a large script

start = await (await ask("/api/start")).json();
document.title = `${start.title} | linkmix`;
find("title").textContent = start.title;
find("links-file").textContent = start.links;
find("hint").textContent = `Across: ${start.axes[0]}; up: ${start.axes[1]}. Solid lines are must-links, dashed ones cannot-links. Click two points to link them, a link to remove it; lasso points that all belong together.`;
if (waiting.length) send();
else await nextQuestion();
await look();
const [bytes] = await Promise.all([ask("/api/places"), plotlyLoaded()]);
places = new Float32Array(await bytes.arrayBuffer());
takeLabels(await (await ask("/api/labels")).arrayBuffer());
await drawMap();
for (;;) {
  await pause(POLL);
  if (!document.hidden) await look();
}

function plotlyLoaded() {
  return window.Plotly ? null : new Promise((done) => addEventListener("load", done));
}
