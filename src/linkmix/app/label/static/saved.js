// What the server has taken, in words, with the undo beside it.

import { listed, nameOf, say, state } from "./page.js";
import { cardsOf, guess, rowsOf, show } from "./question.js";

const word = (said) => (said === "skip" ? "skipped" : said);
const points = (ids) => (ids.length === 1 ? ids[0] : ids.length <= 3 ? listed(ids) : `${ids.length} points`);

function ofFace(row) {
  const found = state.classes.find((one) => one.face?.row === row);
  return found ? nameOf(found.label) : "the class";
}

// An entry in words. Ids are known where the entry comes back from the server, or its points are on the page.
function described(entry, ids) {
  const { said, rows = [] } = entry;
  const some = ids ? points(ids) : `${rows.length} points`;
  switch (entry.entry) {
    case "answer": return ids ? `${word(said)}, ${listed(ids)}` : word(said);
    case "which":
      if (said) return word(said);
      return entry.like?.length ? `it is like ${entry.like.length === 1 ? "one" : entry.like.length} of them` : entry.like ? "it is like none of these" : "which of these it is like";
    case "group":
      if (said) return word(said);
      return entry.out?.length ? `${entry.out.length} of them ${entry.out.length === 1 ? "does" : "do"} not fit` : entry.out ? "all fit" : "which of these fit";
    case "together": return `${(ids ?? rows).length} points belong together`;
    case "nowhere": return ids ? `no class, ${listed(ids)}` : rows.length === 1 ? "no class" : `${rows.length} points have no class`;
    case "name": if (ids) return `the name of the class of ${ids[0]}`;
      return entry.name ? `the class is called ${entry.name}` : "the class has no name";
    case "belongs": return `${some} moved to ${ofFace(entry.to?.[0])}`;
    case "not": return `${some} ${some.endsWith("points") ? "do" : "does"} not belong to ${ofFace(entry.of?.[0])}`;
    case "merge": return "the two classes are one";
    case "split": return `${some} split off`;
    case "turn": return "the answer is turned round";
    case "keep": return "the answer is kept";
    case "remove":
      if ((ids ?? rows).length === 1) return ids ? `${ids[0]} has a class` : "removed";
      return ids ? `removal of the link between ${listed(ids)}` : "removed";
    default: return "";
  }
}

// The server has an entry: say so, and show the question that came with the reply.
export function taken(entry, reply) {
  const { question } = state;
  const own = question && entry.rows && JSON.stringify(rowsOf(question).slice(0, entry.rows.length)) === JSON.stringify(entry.rows);
  if (entry.entry === "undo") {
    const what = reply.undone && described(reply.undone, reply.undone.ids ?? []);
    say(what ? `Undone: ${what}.` : "Undone.");
  } else if (entry.entry === "audit") say("The check begins.");
  else if (entry.entry === "give up") say("The check has ended early. Its answers are kept, and the model will use them.");
  else if (entry.entry === "remove") say(entry.rows.length === 1 ? "Removed: the point may have a class. Undo restores it." : "Link removed. Undo restores it.");
  else {
    const cards = entry.entry === "which" && own ? cardsOf(question) : null;
    const like = cards && entry.like?.length ? cards.filter((card) => entry.like.includes(card.row)).map((card) => card.id) : null;
    say(`Saved: ${like ? `${cards[0].id} is like ${listed(like)}` : described(entry)}.`, own ? guess(question, entry) : "");
  }
  if ("question" in reply) show(reply.question);
}

export function refused(error) {
  say(`Not saved: ${error.message.replace(/\.$/, "")}.`);
  if (state.question) state.busy = false;
}
