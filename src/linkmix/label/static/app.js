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
let start, status, question, places, labels;
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
  if (!pair) {
    find("pair").replaceChildren(made("p", "No question is left: all pairs that matter are answered, or follow.", { class: "quiet" }));
  } else if (isNew) {
    allFields = false;
    drawPair();
  }
  drawQuestion();
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
  row.append(made("th", field.name, { scope: "row" }));
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

// The map: all points, the links, the two of the question, and what is chosen

const TRACES = { points: 0, same: 1, different: 2, question: 3, chosen: 4 };

function scale() {
  return Array.from({ length: COLOURS }, (_, k) => colour(`--k${k}`)).flatMap((value, k) => [[k / COLOURS, value], [(k + 1) / COLOURS, value]]);
}

function size() {
  return start.n_points > 20000 ? 3 : start.n_points > 2000 ? 5 : 7;
}

const hasWebGL = () => Boolean(document.createElement("canvas").getContext("webgl"));

async function drawMap() {
  const n = start.n_points;
  const line = (dash) => ({ type: "scatter", mode: "lines", x: [], y: [], hoverinfo: "skip", line: { color: colour("--ink"), width: 1.5, dash } });
  const rings = (symbol, width, name) => ({
    type: "scatter", mode: "markers+text", x: [], y: [], hoverinfo: "skip", textposition: "top center",
    textfont: { color: colour("--ink"), size: 15, weight: 700 },
    marker: { size: 16, symbol, color: colour(name), line: { color: colour(name), width } },
  });
  const traces = [
    {
      type: hasWebGL() ? "scattergl" : "scatter", mode: "markers", x: places.subarray(0, n), y: places.subarray(n), hoverinfo: "skip",
      marker: { size: size(), opacity: n > 20000 ? 0.6 : 0.85, color: colours(), cmin: 0, cmax: COLOURS, colorscale: scale(), line: { width: 0 } },
      unselected: { marker: { opacity: 0.15 } },
    },
    line("solid"), line("6px,4px"), rings("circle-open", 3, "--ink"), rings("square-open", 2.5, "--accent"),
  ];
  const axis = (from) => {
    let low = Infinity, high = -Infinity;
    for (let i = from; i < from + n; i++) {
      if (places[i] < low) low = places[i];
      if (places[i] > high) high = places[i];
    }
    const room = (high - low || 1) * 0.06;
    return { range: [low - room, high + room], visible: false };
  };
  const layout = {
    xaxis: axis(0), yaxis: axis(n), margin: { l: 0, r: 0, t: 0, b: 0 }, showlegend: false, dragmode: "pan", hovermode: false,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", newselection: { line: { color: colour("--accent"), width: 2, dash: "solid" } },
  };
  whole = { "xaxis.range": layout.xaxis.range.slice(), "yaxis.range": layout.yaxis.range.slice() };
  const plot = find("plot");
  await Plotly.newPlot(plot, traces, layout, { displayModeBar: false, responsive: true, scrollZoom: true, doubleClick: false });
  plot.on("plotly_selected", lassoed);
  plot.addEventListener("click", clicked);
  performance.mark("map");
}
let whole;

const colours = () => Float32Array.from(labels, (label) => (label % COLOURS) + 0.5);

function change(make) {
  if (!find("plot").data) return;
  drawn = drawn.then(make).catch((error) => console.error(error));
}

async function recolour() {
  if (!places) return;
  labels = new Int16Array(await (await ask("/api/labels")).arrayBuffer());
  change(() => Plotly.restyle(find("plot"), { "marker.color": [colours()] }, [TRACES.points]));
}

const x = (row) => places[row];
const y = (row) => places[start.n_points + row];

function drawLinks() {
  if (!places || !status) return;
  const lines = { same: { x: [], y: [] }, different: { x: [], y: [] } };
  for (const { rows: [a, b], said } of status.links) {
    lines[said].x.push(x(a), x(b), null);
    lines[said].y.push(y(a), y(b), null);
  }
  const { same, different } = lines;
  change(() => Plotly.restyle(find("plot"), { x: [same.x, different.x], y: [same.y, different.y] }, [TRACES.same, TRACES.different]));
}

function drawQuestion() {
  if (!places) return;
  const rows = question ? [question.a.row, question.b.row] : [];
  change(() => Plotly.restyle(find("plot"), { x: [rows.map(x)], y: [rows.map(y)], text: [["A", "B"].slice(0, rows.length)] }, [TRACES.question]));
}

function drawChosen() {
  const rows = chosen.length > 2 ? [] : chosen;
  change(() => Plotly.restyle(find("plot"), { x: [rows.map(x)], y: [rows.map(y)] }, [TRACES.chosen]));
}

// Where on the map an event is, as functions from data to distances in pixels.
function pixels(event) {
  const plot = find("plot");
  const box = plot.getBoundingClientRect();
  const [left, right] = plot.layout.xaxis.range;
  const [bottom, top] = plot.layout.yaxis.range;
  const toX = box.width / (right - left), toY = box.height / (top - bottom);
  return {
    dx: (value) => (value - left) * toX - (event.clientX - box.left),
    dy: (value) => (top - value) * toY - (event.clientY - box.top),
  };
}

function nearestPoint({ dx, dy }) {
  let best = NEAR * NEAR, found = -1;
  const n = start.n_points;
  for (let row = 0; row < n; row++) {
    const one = dx(places[row]), other = dy(places[n + row]);
    const distance = one * one + other * other;
    if (distance < best) [best, found] = [distance, row];
  }
  return [found, Math.sqrt(best)];
}

function nearestLink({ dx, dy }) {
  let best = NEAR, found = null;
  for (const link of status?.links ?? []) {
    const [ax, bx, ay, by] = [dx(x(link.rows[0])), dx(x(link.rows[1])), dy(y(link.rows[0])), dy(y(link.rows[1]))];
    const length = Math.hypot(bx - ax, by - ay);
    const along = -(ax * (bx - ax) + ay * (by - ay)) / (length * length);
    // Near its ends one means the points, not the link.
    if (!(along * length > NEAR && (1 - along) * length > NEAR)) continue;
    const distance = Math.abs(ax * by - ay * bx) / length;
    if (distance < best) [best, found] = [distance, link];
  }
  return [found, best];
}

function clicked(event) {
  const at = pixels(event);
  const [link, toLink] = nearestLink(at);
  const [row, toPoint] = nearestPoint(at);
  if (link && toLink <= toPoint) return remove(link);
  if (row < 0) return choose([]);
  if (chosen.length !== 1 || chosen[0] === row) return choose(chosen.length === 1 ? [] : [row]);
  choose([chosen[0], row]);
}

function lassoed(event) {
  const rows = (event?.points ?? []).filter((point) => point.curveNumber === TRACES.points).map((point) => point.pointIndex);
  if (event) choose(rows);
}

async function choose(rows) {
  const lasso = chosen.length > 2 && rows.length <= 2;
  chosen = rows;
  drawChosen();
  if (lasso || !rows.length) unselect();
  find("chosen").hidden = !rows.length;
  find("link-same").hidden = find("link-different").hidden = rows.length !== 2;
  find("link-all").hidden = rows.length < 3 || rows.length > start.most_together;
  if (!rows.length) return;
  let text = `${rows.length.toLocaleString("en")} points are chosen.`;
  if (rows.length > start.most_together) text += ` That is too many to say at once: choose at most ${start.most_together.toLocaleString("en")}.`;
  if (rows.length <= 2) {
    const { a, b } = await (await ask(`/api/pair?a=${rows[0]}&b=${rows.at(-1)}`)).json();
    if (chosen !== rows) return;
    text = rows.length === 1 ? `${a.id} is chosen. Click another point to link the two.` : `Are ${a.id} and ${b.id} the same?`;
  }
  find("chosen-text").textContent = text;
}

function unselect() {
  change(async () => {
    await Plotly.restyle(find("plot"), { selectedpoints: [null] }, [TRACES.points]);
    await Plotly.relayout(find("plot"), { selections: [] });
  });
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
find("whole").addEventListener("click", () => change(() => Plotly.relayout(find("plot"), whole)));
for (const button of document.querySelectorAll("[data-drag]")) {
  button.addEventListener("click", () => {
    for (const other of document.querySelectorAll("[data-drag]")) other.setAttribute("aria-pressed", String(other === button));
    change(() => Plotly.relayout(find("plot"), { dragmode: button.dataset.drag }));
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
  if (find("plot").data) { Plotly.purge(find("plot")); drawMap().then(() => { drawLinks(); drawQuestion(); drawChosen(); }); }
});

// The beginning: the question first, then the map, which needs a large script

start = await (await ask("/api/start")).json();
document.title = `${start.title} – linkmix`;
find("title").textContent = start.title;
find("links-file").textContent = start.links;
find("hint").textContent = `Across: ${start.axes[0]}; up: ${start.axes[1]}. Solid lines are must-links, dashed ones cannot-links. Click two points to link them, a link to remove it; lasso points that all belong together.`;
if (waiting.length) send();
else await nextQuestion();
await look();
const [bytes] = await Promise.all([ask("/api/places"), plotlyLoaded()]);
places = new Float32Array(await bytes.arrayBuffer());
labels = new Int16Array(await (await ask("/api/labels")).arrayBuffer());
await drawMap();
drawLinks();
drawQuestion();
for (;;) {
  await pause(POLL);
  if (!document.hidden) await look();
}

function plotlyLoaded() {
  return window.Plotly ? null : new Promise((done) => addEventListener("load", done));
}
