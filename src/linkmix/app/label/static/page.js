// What all parts of the page share: its state, and small helpers. Text from the user enters the page through
// textContent alone, and never enters Plotly.

export const state = {
  start: null, // facts that do not change during a session, from /api/start
  status: null, // the last reply of /api/status
  classes: [], // the classes, from /api/classes
  question: null, // the question on the page
  busy: true, // no question is on the page, or its answer is on the way
  chosen: [], // rows of points that were clicked or lassoed
  link: null, // the link that was clicked
};

export const find = (id) => document.getElementById(id);
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const written = (n) => n.toLocaleString("en");
export const counted = (n, what) => `${written(n)} ${n === 1 ? what : `${what}s`}`;
export const listed = (words) => (words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : words.join(""));

export function made(tag, text, attributes = {}) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (["input", "select"].includes(tag)) element.autocomplete = "off"; // or going back and forth would tick other boxes
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

export function pressed(text, act, attributes = {}) {
  const button = made("button", text, { type: "button", class: "small", ...attributes });
  button.addEventListener("click", act);
  return button;
}

const known = (label) => state.classes.find((one) => one.label === label);
export const nameOf = (label) => (label < 0 ? "no class" : known(label)?.name || state.status?.names?.[label] || `class ${label}`);
export const colourOf = (label) => (known(label)?.colour ?? label) % state.start.n_colours;

export function chip(label) {
  const element = made("span", undefined, { class: `chip ${label < 0 ? "nowhere" : `c${colourOf(label)}`}` });
  element.append(made("i", undefined, { "aria-hidden": "true" }), made("span", nameOf(label)));
  return element;
}

export function say(text, guess = "") {
  find("message").textContent = "";
  find("message").textContent = text;
  find("guess").textContent = guess;
}

// Something is wrong with the news, the question or the answers; an empty text: no longer.
const wrong = { answers: "", question: "", news: "" };
export function alarm(what, said) {
  wrong[what] = said;
  const text = Object.values(wrong).find(Boolean) ?? "";
  const element = find("alarm");
  if (element.textContent !== text) element.textContent = text;
  element.hidden = !text;
}

// Replaces the contents of an element; the focus stays on what has the same data-key, or else the same place.
export function redraw(element, parts) {
  const active = element.contains(document.activeElement) ? document.activeElement : null;
  const able = () => [...element.querySelectorAll("button, input, select, textarea")];
  const at = active ? able().indexOf(active) : -1;
  const top = element.scrollTop;
  element.replaceChildren(...parts);
  element.scrollTop = top;
  if (!active || active === element) return;
  const now = able();
  const same = active.dataset.key && now.find((one) => one.dataset.key === active.dataset.key);
  (same || now[Math.min(at, now.length - 1)])?.focus({ preventScroll: true });
}
