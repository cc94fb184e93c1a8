// The secret that requests need. It comes in the part of the address after #, which browsers send to nobody, and is kept
// in the storage of this origin. In the frame of a notebook it is taken from the address alone: so another page that
// frames this one shows nothing. A browser that linkmix opens gets a ticket, which is good for the token once.

import { lasting, ofBrowser } from "./store.js";

export const framed = window.top !== window.self;
let given = null;

async function entered(ticket) {
  const headers = { "Content-Type": "application/json", "X-Linkmix": ticket };
  try {
    return (await (await fetch("/api/enter", { method: "POST", headers, body: "{}" })).json()).token;
  } catch {
    return null; // without it the page says what to do
  }
}

async function read() {
  const [, kind, secret] = location.hash.match(/^#(token|ticket)=([\w-]+)$/) ?? [];
  const found = kind === "ticket" ? await entered(secret) : secret;
  if (!found) return;
  given = found;
  if (framed || !lasting) return;
  ofBrowser.setItem("token", found); // for other tabs too, also after the server was started again
  history.replaceState(null, "", location.pathname); // out of sight
}

await read();
window.addEventListener("hashchange", read);

export const token = () => (framed ? null : ofBrowser.getItem("token")) ?? given ?? "none";
