// What can go wrong between the page and the server, each in its own words with its own remedy.

import { framed } from "./token.js";

export class Refused extends Error {} // the request makes no sense, or not now: sending it again does not help

export class Trouble extends Error { // the request may be sent again
  constructor(kind, reason) {
    super(SENTENCES[kind](reason));
    this.kind = kind;
  }
}

const SENTENCES = {
  gone: () => "The server cannot be reached. Start it again with the same command, and this page will continue.",
  locked: () => framed
    ? "The server does not let this page in: its token is missing or out of date. Show the page from the notebook again."
    : "The server does not let this page in: its token is missing or out of date. Open the whole address that linkmix label printed, in this browser, and this page will continue.",
  full: (reason) => `Nothing can be saved: ${reason.replace(/^it could not be saved: /, "")}. Make room on the disk, and this page will continue.`,
  bug: () => "The server has failed, which is a bug in linkmix. The terminal says more: please report it. If it goes on, start the server again with the same command.",
};

const KINDS = { 403: "locked", 421: "locked", 507: "full" };

// A request, whose failure is a Refused or a Trouble.
export async function reach(path, options) {
  let reply, body;
  try {
    reply = await fetch(path, options);
    body = await reply.arrayBuffer(); // here too: the server may end before all of it has come
  } catch {
    throw new Trouble("gone");
  }
  const { ok, status } = reply;
  if (ok) return new Response(status === 204 ? null : body, { status });
  const reason = new TextDecoder().decode(body).trim();
  const kind = KINDS[status] ?? (status >= 500 ? "bug" : null);
  throw kind ? new Trouble(kind, reason) : new Refused(reason);
}
