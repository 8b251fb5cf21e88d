// The audit log: its newest entries, its checkpoint, and its verification.

import * as api from "./api.js";
import { announce, button, copyButton, facts, h, notice, section, table } from "./dom.js";
import { time, words } from "./format.js";

const LIMIT = 50;

/** The view. */
export function auditView() {
  const body = h("div", {}, h("p", { class: "about" }, "Loading…"));
  load(body);
  return h("div", {}, h("h1", { tabindex: -1 }, "Audit log"), body);
}

async function load(body) {
  try {
    const checkpoint = await api.json("api/v1/audit-log/checkpoint").catch((error) => {
      // A young log has none yet.
      if (error.code === "not_found") return null;
      throw error;
    });
    const entries = entriesPart(checkpoint?.size ?? 0);
    body.replaceChildren(verificationPart(), checkpointPart(checkpoint), entries.part);
    await entries.newest();
  } catch (error) {
    body.replaceChildren(refusal(error));
  }
}

function refusal(error) {
  if (error.isRefused) {
    return notice("info", h("p", { role: "alert" }, "You may not read the audit log. It concerns the whole service: a credential of the operators' tenant that permits ",
      h("code", {}, "audit"), " can read it."));
  }
  if (error.isAbsent) {
    return notice("info", h("p", { role: "alert" }, "This service keeps no audit log. ", h("code", {}, "bulla log init"), " starts one in the keystore."));
  }
  return notice("bad", h("p", { role: "alert" }, error.message));
}

function checkpointPart(checkpoint) {
  if (checkpoint === null) return section("Newest checkpoint", h("p", { class: "about" }, "The log has no checkpoint yet. The service signs one from time to time."));
  const { log, size, root, time: at, key, checkpoint: note } = checkpoint;
  return section("Newest checkpoint", facts(
    ["Log", h("code", {}, log)],
    ["Entries", size.toLocaleString("en-US")],
    ["Root", h("code", {}, root)],
    ["Signed", time(at)],
    ["Signed by", h("code", {}, key)],
    ["Signed note", copyButton(note, "the checkpoint")],
  ), h("p", { class: "about" }, "Keep a copy elsewhere. With it, a verification shows whether somebody changed earlier entries or cut them off."));
}

function verificationPart() {
  const result = h("div", { role: "status" });
  const verify = button("Verify the log", async () => {
    verify.disabled = true;
    result.replaceChildren(h("p", { class: "about" }, "The service reads the whole log and checks every link and signature…"));
    try {
      result.replaceChildren(reportOf(await api.json("api/v1/audit-log/verify", { method: "POST", body: {} })));
    } catch (error) {
      result.replaceChildren(notice("bad", h("p", {}, error.message)));
    }
    verify.disabled = false;
  }, { class: "primary" });
  return section("Verification", h("div", { class: "actions" }, verify), result);
}

function reportOf({ valid, entries, checkpoints, signed_entries, problems }) {
  const count = (number, one, many = `${one}s`) => `${number.toLocaleString("en-US")} ${number === 1 ? one : many}`;
  if (valid) {
    const open = entries - signed_entries;
    return notice("good", h("p", {}, h("strong", {}, "The log is whole. "), `${count(entries, "entry", "entries")} and ${count(checkpoints, "checkpoint")} verify.`),
      open > 0 ? h("p", {}, `The newest ${open} are chained, and not yet signed by a checkpoint.`) : null);
  }
  const rows = problems.map(({ kind, file, line, entry, message }) => [words(kind), entry === null ? "–" : String(entry), `${file}:${line}`, message]);
  return notice("bad", h("p", {}, h("strong", {}, "The log is not whole. "), `${count(problems.length, "problem")} found.`),
    table("Problems of the log", [{ name: "Problem" }, { name: "Entry", figure: true }, { name: "Place" }, { name: "What was found" }], rows));
}

const COLUMNS = [{ name: "Entry" }, { name: "Time" }, { name: "Caller" }, { name: "Operation" }, { name: "Key" }, { name: "Result" }];

function row({ number, time: at, who, operation, key, result }) {
  const isWell = ["ok", "valid"].includes(result);
  return [String(number), h("time", { datetime: at }, time(at)), who, words(operation), key ? h("code", {}, key) : "–",
    h("span", { class: isWell ? "well" : "failed" }, words(result))];
}

/** The entries, page by page. */
function entriesPart(size) {
  const list = h("div", {});
  const about = h("p", { class: "about", role: "status" });
  let first = 0;
  const older = button("Older", () => go(first - LIMIT));
  const newer = button("Newer", () => go(first + LIMIT));
  const newest = button("Newest", () => seekNewest());

  async function page(from) {
    return api.json(`api/v1/audit-log/entries${api.query({ after: from > 0 ? from - 1 : undefined, limit: LIMIT })}`);
  }

  function draw({ entries, next }) {
    list.replaceChildren(entries.length === 0 ? h("p", { class: "nothing" }, "The log has no entry yet.") : table("Entries", COLUMNS, [...entries].reverse().map(row)));
    about.textContent = entries.length === 0 ? "" : `Entries ${entries[0].number} to ${entries.at(-1).number}, the newest first`;
    older.disabled = first === 0;
    newer.disabled = next === null;
  }

  async function go(from) {
    first = Math.max(0, from);
    try {
      draw(await page(first));
    } catch (error) {
      list.replaceChildren(refusal(error));
    }
  }

  /** Entries after the checkpoint are not in its size: the view goes on until there is none. */
  async function seekNewest() {
    first = Math.max(0, size - LIMIT);
    let found = await page(first);
    while (found.next !== null) {
      first = size = found.next + 1;
      found = await page(first);
    }
    const last = found.entries.at(-1)?.number ?? 0;
    if (found.entries.length < LIMIT && first > 0) {
      first = Math.max(0, last + 1 - LIMIT);
      found = await page(first);
    }
    draw(found);
    announce("The newest entries are shown");
  }
  const part = section("Entries", list, h("div", { class: "pages" }, about, h("div", { class: "buttons" }, older, newer, newest)));
  return { part, newest: seekNewest };
}
