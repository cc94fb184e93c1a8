// The question on the page, and its answer.

import { put, question as fetchQuestion } from "./api.js";
import { drawCard, fieldsOf } from "./cards.js";
import { drawQuestion } from "./map.js";
import { alarm, counted, find, made, pressed, redraw, say, state } from "./page.js";
import { drawPair } from "./pair.js";
import { Refused, Trouble } from "./trouble.js";

let picked = new Set(); // rows of the cards that were tapped
let allFields = false;

// Whether the next question is here.
export async function nextQuestion() {
  try {
    show((await fetchQuestion()).question);
    alarm("question", "");
    return true;
  } catch (error) {
    state.busy = true;
    if (!(error instanceof Refused || error instanceof Trouble)) throw error;
    alarm("question", error.message);
    return false;
  }
}

// The points of a question: the two of a pair; or the first one, and the cards to compare it with.
export const cardsOf = (question) => {
  if (!question) return [];
  if (question.kind === "which") return [question.row, ...question.cards];
  if (question.kind === "group") return [question.anchor, ...question.cards];
  return [question.a, question.b];
};
export const rowsOf = (question) => cardsOf(question).map((card) => card.row);

export function show(question) {
  if (question) question.kind ??= "pair";
  const isNew = JSON.stringify(question) !== JSON.stringify(state.question);
  const isOther = question?.kind !== state.question?.kind || `${rowsOf(question)}` !== `${rowsOf(state.question)}`;
  state.question = question;
  state.busy = !question;
  const { audit, kind, again } = question ?? {};
  if (isOther) { // a refit may change what the model thinks of the same cards: what was tapped stays
    picked = new Set();
    allFields = false;
    if (find("cards").contains(document.activeElement)) find("ask").focus({ preventScroll: true }); // its card is gone
  }
  drawButtons();
  find("auditing").hidden = !audit;
  if (audit) find("auditing-text").textContent = `${audit.answered} of ${audit.n} answered. These ${audit.n} questions are about random pairs, so they show how good the result is. The answers are used for training only afterwards.`;
  find("why").textContent = question?.why ?? "";
  find("why").hidden = !question?.why || Boolean(audit);
  find("ask-title").textContent = {
    which: "Which of these is it like? Tap all that are.",
    group: "Do these belong together? Tap those that do not fit.",
  }[kind] ?? `${again ? "Once more: do" : "Do"} these two belong together?`;
  if (!question) {
    const text = "No questions are left: every pair that matters is answered or follows from other answers.";
    find("cards").replaceChildren(made("p", text, { class: "quiet" }));
  } else if (isNew) {
    drawCards();
    if (isOther) find("cards").scrollTop = 0;
    if (again && kind === "pair") say(`${find("message").textContent} This pair is asked again, because the answer was unexpected.`);
  }
  drawQuestion(cardsOf(question));
  find("ask").dataset.kind = kind ?? "";
  find("ask").dataset.rows = rowsOf(question).join(" ");
  performance.mark("question");
}

export function drawCards() {
  const { question } = state;
  if (!question) return;
  const labels = find("show-guess").checked && !question.audit;
  if (question.kind === "pair") return drawPair(find("cards"), question, { labels });
  const all = cardsOf(question);
  const names = fieldsOf(all, allFields);
  const draw = (card, more) => drawCard(card, { names, all: allFields, label: labels ? card.label : null, ...more });
  const grid = made("div", undefined, { class: "grid", role: "group", "aria-label": question.kind === "which" ? "All that it is like" : "Those that do not fit" });
  question.cards.forEach((card, i) => grid.append(draw(card, { pick, picked: picked.has(card.row), number: i + 1 })));
  const both = made("div", undefined, { class: `several${all.some((card) => card.picture) ? " pictures" : ""}` });
  both.append(draw(all[0], { large: true, note: question.kind === "which" ? "this one" : "compare with this one" }), grid);
  const parts = [both];
  if (all[0].fields.length > fieldsOf(all).length) {
    const text = allFields ? "Show fewer fields" : `Show all ${all[0].fields.length} fields`;
    parts.push(pressed(text, () => { allFields = !allFields; drawCards(); }, { class: "small more", "data-key": "fields" }));
  }
  redraw(find("cards"), parts);
}

function pick(row, is) {
  picked[is ? "add" : "delete"](row);
  drawButtons();
}

export function toggle(number) {
  const box = find("cards").querySelectorAll(".grid input")[number - 1];
  if (!box || state.busy) return;
  box.click();
  box.focus(); // so that Enter confirms, wherever the focus was
}

function drawButtons() {
  const { question, busy, start } = state;
  const kind = question?.kind ?? "pair";
  const focused = find("answers").contains(document.activeElement);
  for (const button of find("answers").querySelectorAll("button")) {
    const nowhere = "nowhere" in button.dataset;
    button.hidden = !button.dataset.kind.split(" ").includes(kind) || (nowhere && !start.noise);
    button.disabled = busy || (nowhere && Boolean(question.audit)); // the check is about pairs
  }
  find("answers").dataset.kind = kind;
  find("confirm").disabled = busy || (kind === "which" && !picked.size);
  const one = picked.size === 1;
  if (kind === "which") find("confirm-text").textContent = !picked.size ? "Like these" : one ? "Like this one" : `Like these ${picked.size}`;
  else find("confirm-text").textContent = !picked.size ? "All fit" : one ? "This one does not fit" : `These ${picked.size} do not fit`;
  if (focused && !find("answers").contains(document.activeElement)) find("ask").focus({ preventScroll: true }); // its button is gone
}

function send(entry) {
  if (state.busy || !state.question) return;
  state.busy = true;
  performance.clearMarks("answer");
  performance.mark("answer");
  put({ rows: rowsOf(state.question), ...entry });
}

export function answer(said) {
  const kind = state.question?.kind;
  if (kind === "pair") send({ entry: "answer", said });
  else if (said === "unsure" || said === "skip") send({ entry: kind, said });
}

export function confirm() {
  const kind = state.question?.kind;
  if (kind === "which" && picked.size) send({ entry: kind, like: [...picked] });
  if (kind === "group") send({ entry: kind, out: [...picked] });
}

export function none() {
  if (state.question?.kind === "which") send({ entry: "which", like: [] });
  else if (state.question?.kind === "pair") nowhere("0 1");
}

export function nowhere(ends) {
  if (!state.start.noise || !state.question || state.question.audit) return;
  const rows = rowsOf(state.question);
  send({ entry: "nowhere", rows: ends.split(" ").map((end) => rows[end]) });
}

// What the model thought of the question, now that it is answered: a sentence, or nothing.
export function guess(question, entry) {
  const cards = cardsOf(question);
  if (!cards.length || question.audit || cards.some((card) => typeof card.label !== "number")) return "";
  const [first, ...others] = cards;
  const like = others.filter((card) => card.label === first.label && first.label >= 0).map((card) => card.row);
  if (entry.entry === "answer") {
    const word = like.length ? "same" : "different";
    return entry.said === word ? "So the model thought." : `The model thought: ${word}.`;
  }
  if (entry.said || !["which", "group"].includes(entry.entry)) return "";
  const said = entry.entry === "which" ? entry.like : others.map((card) => card.row).filter((row) => !entry.out.includes(row));
  const off = others.filter((card) => like.includes(card.row) !== said.includes(card.row)).length;
  return off ? `The model thought otherwise of ${counted(off, "card")}.` : "So the model thought.";
}
