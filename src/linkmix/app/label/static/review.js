// Review by looking: answers that are likely wrong, and answers of different people, as pairs of cards.

import { ask, keep, remove, turn } from "./api.js";
import { drawCard, fieldsOf } from "./cards.js";
import { find, made, pressed, redraw } from "./page.js";
import { marked, isText } from "./words.js";

const OTHER = { same: "different", different: "same" };

export async function drawReview() {
  const { links, disagreements } = await (await ask("/api/review")).json();
  const pairOf = ({ rows }) => String([...rows].sort((a, b) => a - b));
  const disputed = new Set(disagreements.map(pairOf));
  const items = [...disagreements.map(disagreement), ...links.filter((link) => !disputed.has(pairOf(link))).map(doubtful)];
  find("doubts-title").textContent = items.length ? `Worth a second look (${items.length})` : "Worth a second look";
  redraw(find("doubts"), items.length ? items : [made("li", "Nothing stands out.", { class: "quiet" })]);
}

function doubtful(link) {
  const item = both(link);
  const text = made("p", `${link.ids[0]} and ${link.ids[1]} were said to be `);
  text.append(made("b", link.said), link.annotator ? ` by ${link.annotator}` : "", link.reason ? `: ${link.reason}.` : ".");
  item.append(text, buttons(link, `Turn round: ${OTHER[link.said]}`));
  return item;
}

function disagreement(one) {
  const item = both(one);
  const text = made("p", "People differ: ");
  one.words.forEach(({ annotator, said }, i) => text.append(i ? "; " : "", `${annotator || "someone without a name"} said `, made("b", said)));
  text.append(".");
  item.append(text, buttons(one, null));
  return item;
}

function both({ pair }) {
  const item = made("li", undefined, { class: "doubt" });
  const row = made("div", undefined, { class: "two" });
  const cards = ["a", "b"].map((end) => ({ ...pair[end], fields: pair.fields.map((field) => ({ name: field.name, value: field[end] })) }));
  const names = fieldsOf(cards);
  for (const card of cards) row.append(drawCard(card, { names }));
  const texts = pair.fields.filter((field) => names.includes(field.name) && field.differs && (isText(field.a) || isText(field.b)));
  for (const field of texts) {
    const at = pair.fields.filter((one) => names.includes(one.name)).indexOf(field);
    const [a, b] = [...row.querySelectorAll(".fields")].map((fields) => fields.children[at].querySelector(".value"));
    a.replaceChildren(marked(field.a, field.b));
    b.replaceChildren(marked(field.b, field.a));
  }
  item.append(row);
  return item;
}

function buttons(link, turned) {
  const row = made("div", undefined, { class: "row" });
  const which = ` (${link.ids[0]} and ${link.ids[1]})`;
  const button = (text, act) => {
    const made_ = pressed(text, () => act(link), { "data-key": `${text.split(":")[0]} ${link.rows}` });
    made_.append(made("span", which, { class: "hidden" }));
    return made_;
  };
  if (turned) row.append(button(turned, turn));
  else row.append(button("Same", () => turn(link, "same")), button("Different", () => turn(link, "different")));
  row.append(button("Remove", remove), button(turned ? "Keep" : "Keep both", keep));
  return row;
}
