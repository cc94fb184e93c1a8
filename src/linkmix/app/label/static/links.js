// What is known so far: progress, the links, and those worth a second look.

import { alarm, chip, find, made, state } from "./page.js";
import { ask, page, Refused, remove, waiting } from "./api.js";
import { drawLinks, recolour } from "./map.js";
import { nextQuestion } from "./question.js";

// Asks the server for news and shows it.
export async function look() {
  try {
    const reply = await ask(`/api/status?page=${page}&have=${state.status?.version ?? 0}`);
    if (!waiting.length) alarm("");
    if (reply.status === 204) return;
    const before = state.status;
    state.status = await reply.json();
    if (state.status.table !== state.start.table) location.reload(); // the server was started with another table
    if (!state.question && !waiting.length) await nextQuestion();
    if (before?.refits !== state.status.refits) await recolour();
    drawStatus();
    drawLinks();
  } catch (error) {
    const text = "The server cannot be reached. Start it again with the same command, and this page will continue.";
    if (!waiting.length) alarm(error instanceof Refused ? error.message : text);
  }
}

function drawStatus() {
  const { start, status } = state;
  const { counts, n_links: links, stop } = status;
  find("stop").textContent = stop.sentence;
  find("stop").className = stop.enough ? "enough" : "";
  const settled = Math.round(100 * (1 - stop.signal));
  find("settled").setAttribute("aria-valuenow", settled);
  find("settled").firstElementChild.style.width = `${settled}%`;
  find("how-good").hidden = !status.how_good;
  if (find("how-good").textContent !== (status.how_good ?? "")) find("how-good").textContent = status.how_good ?? "";
  find("audit").textContent = status.audit ? "Stop the check" : `Check how good this is: ${start.n_audit} random questions`;
  const rows = [
    ["Same", counts.same], ["Different", counts.different], ["Unsure", counts.unsure], ["Skipped", counts.skip],
    ["Must-links", links.same], ["Cannot-links", links.different],
    ...(start.noise ? [["Said to have no class", status.n_nowhere]] : []),
  ];
  find("counts").replaceChildren(...rows.map(([name, value]) => {
    const pair = made("div");
    pair.append(made("dt", name), made("dd", value.toLocaleString("en")));
    return pair;
  }));
  const who = status.annotators.length > 1 ? ` Answers by ${status.annotators.join(", ")}.` : "";
  const times = { 0: "No refit yet.", 1: "The model was refitted once." }[status.refits] ?? `The model was refitted ${status.refits} times.`;
  find("fitting").textContent = (status.trouble ?? (status.fitting ? "Refitting the model …" : times)) + who;
  const shown = status.links.slice(0, 100);
  listLinks("links-list", shown, "No links yet.");
  const total = links.same + links.different;
  find("links-title").textContent = total > shown.length ? `Links (the newest ${shown.length} of ${total})` : `Links (${total})`;
  listLinks("review-list", status.review, "Nothing stands out.");
  find("nowhere-title").hidden = find("nowhere-list").hidden = !start.noise;
  find("nowhere-title").textContent = `No class (${status.n_nowhere})`;
  listLinks("nowhere-list", status.nowhere.slice(0, 100), "Nothing yet.");
  find("legend").replaceChildren(...status.sizes.map((size, label) => {
    const item = made("li");
    item.append(chip(label), made("span", ` ${size.toLocaleString("en")}`, { class: "quiet" }));
    return item;
  }));
  if (start.noise) {
    const item = made("li");
    item.append(chip(-1), made("span", ` ${status.n_noise.toLocaleString("en")}`, { class: "quiet" }));
    find("legend").append(item);
  }
  const sizes = status.sizes.map((n, label) => `${n} in class ${label}`).join(", ");
  find("plot").setAttribute("aria-label", `Map of ${start.n_points} points: ${sizes}`);
}

function listLinks(id, links, empty) {
  const list = find(id);
  if (!links.length) return list.replaceChildren(made("li", empty, { class: "quiet" }));
  const focused = list.contains(document.activeElement) ? [...list.querySelectorAll("button")].indexOf(document.activeElement) : -1;
  list.replaceChildren(...links.map((link) => {
    const item = made("li");
    const text = made("span", undefined, { class: "text" });
    text.append(made("span", link.ids[0]));
    if (link.ids.length > 1) text.append(made("b", link.said === "same" ? " = " : " ≠ "), made("span", link.ids[1]));
    const notes = [link.reason, link.annotator && `by ${link.annotator}`].filter(Boolean);
    if (notes.length) text.append(made("small", notes.join("; ")));
    const name = link.ids.length > 1 ? `Remove the link between ${link.ids[0]} and ${link.ids[1]}` : `Remove that ${link.ids[0]} has no class`;
    const button = made("button", "Remove", { type: "button", class: "small", "aria-label": name });
    button.addEventListener("click", () => remove(link));
    item.append(text, button);
    return item;
  }));
  if (focused >= 0) list.querySelectorAll("button")[Math.min(focused, links.length - 1)]?.focus();
}
