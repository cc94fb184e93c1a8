// Which words of a text another text does not have.

import { made } from "./page.js";

const bare = (word) => word.toLowerCase().replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "");
const parts = (text) => text.split(/(\s+)/).filter(Boolean);

export const isText = (value) => value.trim().split(/\s+/).length > 2;

// The text, with the words marked that the other lacks or has fewer times.
export function marked(text, other) {
  const left = new Map();
  for (const word of parts(other)) left.set(bare(word), (left.get(bare(word)) ?? 0) + 1);
  const found = document.createDocumentFragment();
  let mark = null, space = "";
  for (const part of parts(text)) {
    const word = bare(part);
    if (!part.trim()) space = part;
    else if (word && !left.get(word)) {
      if (mark) mark.append(space, part);
      else found.append(space, (mark = made("mark", part)));
      space = "";
    } else {
      if (word) left.set(word, left.get(word) - 1);
      found.append(space, part);
      [mark, space] = [null, ""];
    }
  }
  found.append(space);
  return found;
}
