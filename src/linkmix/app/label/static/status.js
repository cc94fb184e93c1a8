// News from the server, and what is shown of them on every view.

import { ask, page, waiting } from "./api.js";
import { drawClasses, loadClasses } from "./classes.js";
import { drawFinish } from "./finish.js";
import { drawLinkLists } from "./links.js";
import { drawLinks, recolour } from "./map.js";
import { alarm, chip, find, made, state, written } from "./page.js";
import { drawHistory } from "./progress.js";
import { nextQuestion } from "./question.js";
import { drawReview } from "./review.js";
import { Refused, Trouble } from "./trouble.js";
import { shown } from "./views.js";

let unasked = false; // whether the question could not be fetched

// Asks the server for news and shows it.
export async function look() {
  try {
    const reply = await ask(`/api/status?page=${page}&have=${state.status?.version ?? 0}`);
    alarm("news", "");
    if (!state.question && !waiting.length && unasked) unasked = !(await nextQuestion());
    if (reply.status === 204) return;
    const before = state.status;
    state.status = await reply.json();
    if (state.status.table !== state.start.table) location.reload(); // the server was started with another table
    if (!state.question && !waiting.length) unasked = !(await nextQuestion());
    if (before?.refits !== state.status.refits) {
      await loadClasses();
      await recolour();
    }
    drawStatus();
    drawLinks();
    await drawView();
  } catch (error) {
    if (!(error instanceof Refused || error instanceof Trouble)) throw error;
    alarm("news", error.message);
  }
}

// The view that is open, where it needs more than the status.
export async function drawView() {
  if (!state.status) return;
  if (shown("classes")) await drawClasses();
  if (shown("review")) await drawReview();
}

function drawStatus() {
  const { start, status } = state;
  const { counts, n_links: links, stop } = status;
  find("stop").textContent = find("brief").textContent = stop.sentence;
  find("stop").className = stop.enough ? "enough" : "";
  find("open-finish").classList.toggle("ready", stop.enough);
  find("how-good").hidden = !status.how_good;
  if (find("how-good").textContent !== (status.how_good ?? "")) find("how-good").textContent = status.how_good ?? "";
  find("audit").textContent = status.audit ? "Stop the check" : `Check how good this is: ${start.n_audit} random questions`;
  const rows = [
    ["Same", counts.same], ["Different", counts.different], ["Unsure", counts.unsure], ["Skipped", counts.skip],
    ["Must-links", links.same], ["Cannot-links", links.different],
    ...(counts.which ? [["Which of these", counts.which]] : []), ...(counts.group ? [["Groups", counts.group]] : []),
    ...(start.noise ? [["Said to have no class", status.n_nowhere]] : []),
  ];
  find("counts").replaceChildren(...rows.map(([name, value]) => {
    const pair = made("div");
    pair.append(made("dt", name), made("dd", written(value)));
    return pair;
  }));
  const who = status.annotators.length > 1 ? ` Answers by ${status.annotators.join(", ")}.` : "";
  const times = { 0: "No refit yet.", 1: "The model was refitted once." }[status.refits] ?? `The model was refitted ${status.refits} times.`;
  find("fitting").textContent = (status.trouble ?? (status.fitting ? "Refitting the model …" : times)) + who;
  find("another").textContent = status.another ?? "";
  find("another").hidden = !status.another;
  document.querySelector("[data-view=classes]").classList.toggle("signed", Boolean(status.another));
  find("review-count").textContent = status.review.length ? ` (${status.review.length})` : "";
  drawLinkLists();
  drawHistory();
  drawLegend();
  drawFinish();
}

function drawLegend() {
  const { start, status } = state;
  const entry = (label, size) => {
    const item = made("li");
    item.append(chip(label), made("span", ` ${written(size)}`, { class: "quiet" }));
    return item;
  };
  const items = status.sizes.map((size, label) => entry(label, size));
  if (start.noise) items.push(entry(-1, status.n_noise));
  find("legend").replaceChildren(...items);
  const sizes = status.sizes.map((n, label) => `${n} in class ${label}`).join(", ");
  find("plot").setAttribute("aria-label", `Map of ${start.n_points} points: ${sizes}`);
}
