// The pair that is asked about, and what was answered.

import { ask, page, put } from "./api.js";
import { drawQuestion } from "./map.js";
import { chip, find, made, say, state } from "./page.js";

const FIELDS = 14; // fields shown until all are asked for
let allFields = false;

export async function nextQuestion() {
  try {
    show((await (await ask(`/api/question?page=${page}`)).json()).question);
  } catch {
    state.busy = true;
  }
}

function show(pair) {
  const isNew = JSON.stringify(pair) !== JSON.stringify(state.question);
  state.question = pair;
  state.busy = !pair;
  for (const button of document.querySelectorAll("[data-said]")) button.disabled = state.busy;
  const audit = pair?.audit;
  for (const button of document.querySelectorAll("[data-nowhere]")) {
    button.hidden = !state.start.noise;
    button.disabled = state.busy || Boolean(audit); // the check is about pairs
  }
  find("auditing").hidden = !audit;
  if (audit) find("auditing").textContent = `${audit.answered} of ${audit.n} answered. These ${audit.n} questions are about random pairs, so they show how good the result is. The answers are used for training only afterwards.`;
  find("ask-title").textContent = `${pair?.again ? "Once more: do" : "Do"} these two belong together?`;
  if (!pair) {
    const text = "No questions are left: every pair that matters is answered or follows from other answers.";
    find("pair").replaceChildren(made("p", text, { class: "quiet" }));
  } else if (isNew) {
    allFields = false;
    drawPair();
    if (pair.again) say(`${find("message").textContent} This pair is asked again, because the answer was unexpected.`);
  }
  drawQuestion();
  find("ask").dataset.rows = pair ? `${pair.a.row} ${pair.b.row}` : "";
  performance.mark("question");
}

function drawPair() {
  const { question } = state;
  const table = made("table");
  table.append(made("caption", `Point ${question.a.id} and point ${question.b.id}`, { class: "hidden" }));
  const head = made("tr");
  head.append(made("td", "", { class: "corner" }));
  for (const end of ["a", "b"]) {
    const card = question[end];
    const cell = made("th", undefined, { scope: "col" });
    const name = made("span", undefined, { class: "name" });
    name.append(made("span", end.toUpperCase(), { class: "letter", "aria-hidden": "true" }), made("span", card.id));
    cell.append(name);
    if (card.label !== null) cell.append(chip(card.label)); // a label would suggest an answer in the check
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

export function answer(said) {
  if (state.busy || !state.question) return;
  state.busy = true;
  performance.clearMarks("answer");
  performance.mark("answer");
  put({ entry: "answer", rows: [state.question.a.row, state.question.b.row], said });
}

export function nowhere(ends) {
  if (!state.start.noise || state.busy || !state.question || state.question.audit) return;
  state.busy = true;
  put({ entry: "nowhere", rows: ends.split(" ").map((end) => state.question[end].row) });
}

// The server has an entry: say so, and show the question that came with the reply.
export function taken(entry, reply) {
  const said = (word) => (word === "skip" ? "skipped" : word);
  if (entry.entry === "undo") {
    const { entry: kind, ids = [], said: word } = reply.undone ?? {};
    const what = {
      answer: `${said(word)}, ${ids.join(" and ")}`,
      together: `${ids.length} points belong together`,
      nowhere: `no class, ${ids.join(" and ")}`,
      remove: ids.length === 1 ? `${ids[0]} has a class` : `removal of the link between ${ids.join(" and ")}`,
    }[kind];
    say(what ? `Undone: ${what}.` : "Undone.");
  } else if (entry.entry === "audit") say("The check begins.");
  else if (entry.entry === "give up") say("The check has ended early. Its answers are kept, and the model will use them.");
  else if (entry.entry === "answer") say(`Saved: ${said(entry.said)}.`);
  else if (entry.entry === "nowhere") say(entry.rows.length === 1 ? "Saved: no class." : `Saved: ${entry.rows.length} points have no class.`);
  else if (entry.entry === "remove" && entry.rows.length === 1) say("Removed: the point may have a class. Undo restores it.");
  else if (entry.entry === "together") say(`Saved: ${entry.rows.length} points belong together.`);
  else say("Link removed. Undo restores it.");
  if ("question" in reply) show(reply.question);
}

export function refused(error) {
  say(`Not saved: ${error.message}.`);
  if (state.question) state.busy = false;
}
