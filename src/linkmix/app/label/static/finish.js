// Done is a button: what is written, how good it is, where it is, and the command that does it again.

import { check, finish } from "./api.js";
import { find, made, pressed, state } from "./page.js";
import { ofSession } from "./store.js";
import { go } from "./views.js";

const CERTIFY = "certify"; // set while a check runs that ends in writing the results
let writing = false;
let trouble = null;
let result = null;

export function openFinish() {
  trouble = null;
  drawFinish();
  if (!find("finish").open) find("finish").showModal();
}

export async function write() {
  if (writing) return;
  [writing, trouble] = [true, null];
  drawFinish();
  try {
    result = await finish();
  } catch (error) {
    trouble = error.message.replace(/\.$/, "");
  }
  writing = false;
  drawFinish();
  find("finish-title").focus();
}

// The check first; its last answer writes the results.
export function certify() {
  ofSession.setItem(CERTIFY, String(state.status.audits?.length ?? 0));
  find("finish").close();
  go("ask");
  find("ask").focus();
  if (!state.status.audit) check();
}

// Begins a check that is not followed by anything, or ends the one under way.
export function toggleCheck() {
  ofSession.removeItem(CERTIFY);
  if (!state.status?.audit) go("ask"); // on a narrow screen the questions are another view
  return check();
}

const sentence = (text) => made("p", text);

export function drawFinish() {
  const { start, status } = state;
  if (!status) return;
  followCheck();
  if (!find("finish").open && !writing) result = null;
  find("write").hidden = Boolean(result);
  find("certify").hidden = Boolean(result) || writing;
  find("write").disabled = writing;
  find("write").classList.toggle("big", !result);
  find("write").textContent = writing ? "Writing …" : "Write the results";
  find("certify").textContent = status.audit ? "Go on with the check" : `Certify first: ${start.n_audit} random questions`;
  const done = result ?? (writing ? null : status.finished);
  const parts = [];
  if (trouble) parts.push(made("p", `Not written: ${trouble}.`, { class: "bad", role: "alert" }));
  if (result) parts.push(...written(result));
  else if (writing) parts.push(sentence(status.finishing ?? "Waiting for a model that knows all answers ..."), made("progress", undefined, { "aria-label": "Writing the results" }));
  else {
    parts.push(sentence(status.stop.sentence));
    parts.push(sentence(status.how_good ?? `How good the result is has not been measured. ${start.n_audit} random questions would tell.`));
    parts.push(sentence("Labels, model, report and links are written in one step, just as the page shows them. You can go on afterwards."));
    if (done) {
      const before = made("details");
      before.append(made("summary", "What was written last"), ...written(done));
      parts.push(before);
    }
  }
  const key = JSON.stringify([done, Boolean(result), writing, trouble, status.stop, status.how_good, status.finishing ?? null]);
  if (find("finish-body").dataset.key === key) return;
  find("finish-body").dataset.key = key;
  find("finish-body").replaceChildren(...parts);
}

function written(done) {
  const files = made("ul", undefined, { class: "files" });
  for (const file of done.files) {
    const item = made("li");
    item.append(made("code", file.split(/[\\/]/).at(-1)));
    files.append(item);
  }
  const where = made("p", "Written to ");
  where.append(made("code", done.folder), ":");
  const more = done.sentences.filter((text) => !text.includes("labels.csv")); // what the list says already
  const parts = [where, files, ...more.map(sentence), sentence("The command that does it again:"), command(done.command)];
  if (done.predict) parts.push(sentence("The command for other points:"), command(done.predict));
  return parts;
}

function command(text) {
  const row = made("div", undefined, { class: "command" });
  const copy = pressed("Copy", async () => {
    await navigator.clipboard.writeText(text);
    copy.textContent = "Copied";
  }, { "aria-label": "Copy the command" });
  row.append(made("pre", text, { tabindex: 0, role: "group", "aria-label": "Command" }), copy);
  return row;
}

// A check that was started by Certify and is complete: write the results.
function followCheck() {
  const before = ofSession.getItem(CERTIFY);
  if (before === null || state.status.audit) return;
  if ((state.status.audits?.length ?? 0) <= Number(before)) return; // it has not begun
  ofSession.removeItem(CERTIFY);
  if (!find("finish").open) find("finish").showModal();
  write();
}
