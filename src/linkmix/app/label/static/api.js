// Requests to the server. Answers wait in a queue until the server has acknowledged them.

import { alarm, find, state } from "./page.js";
import { ofSession } from "./store.js";
import { token } from "./token.js";
import { reach, Trouble } from "./trouble.js";

const TRIES = 3; // of a request that makes the server fail

const stored = (name) => JSON.parse(ofSession.getItem(name) ?? "null");
const store = (name, value) => ofSession.setItem(name, JSON.stringify(value));

function key() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const page = stored("page") ?? key();
store("page", page);
export const waiting = stored("waiting") ?? []; // not acknowledged yet; survives a reload
export const on = {}; // taken(entry, reply), refused(error), emptied() and sent() are set by main.js

const HEADER = "X-Linkmix";

export const ask = (path) => reach(path, { headers: { [HEADER]: token() } });

export const kinds = () => find("kinds").value; // of questions, as the person wants them

async function post(path, body) {
  const headers = { "Content-Type": "application/json", [HEADER]: token() };
  return (await reach(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
}

export const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

// Sends the queue in order, and repeats until the server acknowledges. A key makes repeating harmless.
let sending = false;
export async function send() {
  if (sending) return;
  sending = true;
  let failures = 0;
  while (waiting.length) {
    const entry = waiting[0];
    try {
      const reply = await post("/api/entries", entry);
      alarm("answers", "");
      on.taken(entry, reply);
    } catch (error) {
      if (error instanceof Trouble && !(error.kind === "bug" && ++failures === TRIES)) {
        const n = waiting.length === 1 ? "1 answer is waiting" : `${waiting.length} answers are waiting`;
        alarm("answers", `${error.message} ${n} and will be sent again.`);
        await pause(500);
        continue;
      }
      alarm("answers", "");
      on.refused(error);
    }
    failures = 0;
    waiting.shift();
    store("waiting", waiting);
    if (!waiting.length) await on.emptied();
  }
  sending = false;
  on.sent();
}

export function put(entry) {
  waiting.push({ ...entry, key: key(), page, kinds: kinds().split(","), table: state.start.table, annotator: find("annotator").value.trim() || null });
  store("waiting", waiting);
  return send();
}

export const undo = () => put({ entry: "undo" });
export const check = () => put({ entry: state.status?.audit ? "give up" : "audit" });
export const question = () => post("/api/question", { page, kinds: kinds().split(","), table: state.start.table });
export const finish = () => post("/api/finish", { key: key(), table: state.start.table });
export const remove = (link) => put({ entry: "remove", rows: link.rows });
export const turn = (link, said) => put({ entry: "turn", rows: link.rows, said });
export const keep = (link) => put({ entry: "keep", rows: link.rows });
