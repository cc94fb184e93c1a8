// Progress as a drawing: the share of settled labels and the checks over the number of answers.

import { find, made, state } from "./page.js";

const HEIGHT = 190, LEFT = 52, RIGHT = 12, TOP = 12, BOTTOM = 34;
const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

const percent = (share) => `${Math.round(100 * share)} %`;

export function drawHistory() {
  const { history = [], audits = [] } = state.status;
  const figure = find("history");
  figure.hidden = !history.length && !audits.length;
  if (figure.hidden) return;
  const width = Math.min(620, figure.clientWidth || 560);
  const key = JSON.stringify([history, audits, width]);
  if (figure.dataset.key === key) return;
  figure.dataset.key = key;
  const most = Math.max(20, ...history.map((one) => one.answers), ...audits.map((one) => one.answers));
  const x = (answers) => LEFT + (answers / most) * (width - LEFT - RIGHT);
  const y = (share) => TOP + (1 - share) * (HEIGHT - TOP - BOTTOM);
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, role: "img", "aria-label": `${inWords(history)} ${ofCheck(audits)}` });
  for (const share of [0, 0.5, 1]) {
    drawing.append(
      svg("line", { x1: LEFT, x2: width - RIGHT, y1: y(share), y2: y(share), class: "rule" }),
      svg("text", { x: LEFT - 6, y: y(share) + 5, "text-anchor": "end" }, percent(share)),
    );
  }
  const step = most <= 40 ? 10 : most <= 100 ? 20 : most <= 200 ? 50 : 10 ** Math.floor(Math.log10(most));
  for (let answers = 0; answers <= most; answers += step) drawing.append(svg("text", { x: x(answers), y: HEIGHT - BOTTOM + 17, "text-anchor": "middle" }, answers));
  drawing.append(svg("text", { x: width - RIGHT, y: HEIGHT - 2, "text-anchor": "end" }, "answers"));
  if (history.length) {
    drawing.append(svg("polyline", { points: history.map((one) => `${x(one.answers)},${y(one.settled)}`).join(" "), class: "settled" }));
    for (const one of history) drawing.append(svg("circle", { cx: x(one.answers), cy: y(one.settled), r: 3, class: "settled-dot" }));
  }
  for (const one of audits) {
    drawing.append(
      svg("line", { x1: x(one.answers), x2: x(one.answers), y1: y(one.low), y2: y(one.high), class: "interval" }),
      svg("rect", { x: x(one.answers) - 5, y: y(one.right) - 5, width: 10, height: 10, class: "check" }),
    );
  }
  const caption = made("figcaption", undefined, { class: "quiet" });
  const sample = (name, text) => {
    const part = made("span", undefined, { class: "key" });
    part.append(made("i", undefined, { class: name, "aria-hidden": "true" }), made("span", text));
    return part;
  };
  caption.append(sample("line", "labels that have settled: the last fit kept them, and its starts agree on them"));
  caption.append(sample("square", "pairs judged as you would, by a check, with its 90 % interval"));
  figure.replaceChildren(drawing, made("p", inWords(history)), caption);
}

function inWords(history) {
  if (!history.length) return "";
  const last = history.at(-1), first = history[0];
  const before = history.length > 1 ? `; after ${first.answers} it was ${percent(first.settled)}` : "";
  return `After ${last.answers} answers ${percent(last.settled)} of the labels are settled${before}.`;
}

function ofCheck(audits) {
  const check = audits.at(-1);
  return check ? `The last check, at ${check.answers} answers, found ${percent(check.right)} of all pairs right (${percent(check.low)} to ${percent(check.high)}).` : "";
}
