// What all parts of the page share: its state, and small helpers. Text from the user enters the page through
// textContent alone, and never enters Plotly.

export const state = {
  start: null, // facts that do not change during a session, from /api/start
  status: null, // the last reply of /api/status
  question: null, // the pair on the page
  busy: true, // no question is on the page, or its answer is on the way
  chosen: [], // rows of points that were clicked or lassoed
};

export const find = (id) => document.getElementById(id);
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function made(tag, text, attributes = {}) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

export function chip(label) {
  const name = label < 0 ? "nowhere" : `c${label % state.start.n_colours}`;
  const element = made("span", undefined, { class: `chip ${name}` });
  element.append(made("i", undefined, { "aria-hidden": "true" }), made("span", label < 0 ? "no class" : `class ${label}`));
  return element;
}

export function say(text) {
  const element = find("message");
  element.textContent = "";
  element.textContent = text;
}

export function alarm(text) {
  const element = find("alarm");
  if (element.textContent !== text) element.textContent = text;
  element.hidden = !text;
}
