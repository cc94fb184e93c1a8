// The links as a list, and points that were said to have no class.

import { remove } from "./api.js";
import { find, made, pressed, redraw, state } from "./page.js";

export function drawLinkLists() {
  const { start, status } = state;
  const shown = status.links.slice(0, 100);
  const total = status.n_links.same + status.n_links.different;
  list("links-list", shown, "No links yet.");
  find("links-title").textContent = total > shown.length ? `Links (the newest ${shown.length} of ${total})` : `Links (${total})`;
  find("nowhere-title").hidden = find("nowhere-list").hidden = !start.noise;
  find("nowhere-title").textContent = `No class (${status.n_nowhere})`;
  list("nowhere-list", status.nowhere.slice(0, 100), "Nothing yet.");
}

function list(id, links, empty) {
  if (!links.length) return find(id).replaceChildren(made("li", empty, { class: "quiet" }));
  redraw(find(id), links.map((link) => {
    const item = made("li");
    const text = made("span", undefined, { class: "text" });
    text.append(made("span", link.ids[0]));
    if (link.ids.length > 1) text.append(made("b", link.said === "same" ? " = " : " ≠ "), made("span", link.ids[1]));
    if (link.annotator) text.append(made("small", `by ${link.annotator}`));
    const name = link.ids.length > 1 ? `Remove the link between ${link.ids[0]} and ${link.ids[1]}` : `Remove that ${link.ids[0]} has no class`;
    item.append(text, pressed("Remove", () => remove(link), { "aria-label": name }));
    return item;
  }));
}
