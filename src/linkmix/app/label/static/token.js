// The secret that requests need. It comes in the part of the address after #, which browsers send to nobody, and is kept
// in the storage of this origin. In the frame of a notebook it is taken from the address alone: so another page that
// frames this one shows nothing.

import { lasting, ofBrowser } from "./store.js";

export const framed = window.top !== window.self;
let given = null;

function read() {
  const found = location.hash.match(/^#token=([\w-]+)$/)?.[1];
  if (!found) return;
  given = found;
  if (framed || !lasting) return;
  ofBrowser.setItem("token", found); // for other tabs too, also after the server was started again
  history.replaceState(null, "", location.pathname); // out of sight
}

read();
window.addEventListener("hashchange", read);

export const token = () => (framed ? null : ofBrowser.getItem("token")) ?? given ?? "none";
