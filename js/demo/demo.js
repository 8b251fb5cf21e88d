// The page: drop a file, see its digest grow, compare it.

import { amount, verdict } from "./compare.js";

/** @param {string} id @returns {any} */
const element = (id) => document.getElementById(id);
const [drop, input, work, error, result, expected] = ["drop", "file", "work", "error", "result", "expected"].map(element);

/** @type {Worker | undefined} */
let worker;
/** @type {string | undefined} */
let digest;

/** @param {number} bytes @param {number} milliseconds */
const rate = (bytes, milliseconds) => `${amount((bytes / Math.max(milliseconds, 1)) * 1000)} a second`;

/** Says something to those who do not see the page.
 * @param {string} text */
function say(text) {
  element("status").textContent = text;
}

function compare() {
  const { text, kind } = verdict(expected.value, digest);
  const line = element("verdict");
  line.textContent = text;
  line.className = `verdict ${kind}`;
  expected.toggleAttribute("aria-invalid", kind === "differs");
}

/** @param {string} message */
function fail(message) {
  stop();
  error.textContent = message;
  error.hidden = false;
}

/** Ends what is under way, and forgets what was found. */
function stop() {
  worker?.terminate();
  worker = digest = undefined;
  work.hidden = result.hidden = error.hidden = true;
  compare();
}

/** @param {File} file */
function hash(file) {
  stop();
  element("name").textContent = file.name;
  showProgress(file, 0, 0);
  work.hidden = false;
  say(`Hashing ${file.name}`);
  worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  worker.onerror = (event) => fail(`The hashing code did not start: ${event.message ?? "it could not be loaded"}. Load the page again.`);
  worker.onmessage = ({ data }) => {
    if (data.kind === "progress") showProgress(file, data.bytes, data.milliseconds);
    else if (data.kind === "done") finish(file, data);
    else fail(`${file.name} could not be read: ${data.message}. Choose it again; a folder cannot be hashed.`);
  };
  worker.postMessage(file);
}

/** @param {File} file @param {number} bytes @param {number} milliseconds */
function showProgress(file, bytes, milliseconds) {
  element("progress").value = file.size === 0 ? 1 : bytes / file.size;
  const speed = milliseconds > 0 ? `, ${rate(bytes, milliseconds)}` : "";
  element("amount").textContent = `${amount(bytes)} of ${amount(file.size)}${speed}`;
}

/** @param {File} file @param {{ digest: string, milliseconds: number, kernel: string }} done */
function finish(file, done) {
  worker?.terminate();
  worker = undefined;
  digest = done.digest;
  work.hidden = true;
  element("digest").textContent = digest;
  const seconds = (done.milliseconds / 1000).toPrecision(2);
  element("facts").textContent =
    `${file.name}: ${amount(file.size)} in ${seconds} s, ${rate(file.size, done.milliseconds)}, by ${done.kernel}`;
  result.hidden = false;
  say(`The digest of ${file.name} is ready`);
  compare();
}

/** @param {FileList | undefined} files */
function take(files) {
  const file = files?.[0];
  if (file === undefined) fail("That was no file. Drop a file, or choose one.");
  else hash(file);
}

input.addEventListener("change", () => {
  if (input.files.length > 0) take(input.files);
});
// The same file may be chosen again.
input.addEventListener("click", () => {
  input.value = "";
});
expected.addEventListener("input", compare);
element("cancel").addEventListener("click", () => {
  stop();
  say("Canceled");
  input.focus();
});
element("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(digest ?? "");
    say("Copied");
  } catch {
    getSelection()?.selectAllChildren(element("digest"));
    say("Selected: copy it with the keyboard");
  }
});

// Anywhere on the page: a file that misses the frame would replace the page otherwise.
addEventListener("dragover", (event) => {
  event.preventDefault();
  drop.classList.add("over");
});
for (const name of ["dragleave", "dragend"]) addEventListener(name, () => drop.classList.remove("over"));
addEventListener("drop", (event) => {
  event.preventDefault();
  drop.classList.remove("over");
  input.value = "";
  take(event.dataTransfer?.files);
});
