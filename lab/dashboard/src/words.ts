// The words of the page: explained in place, and all together at the end.

import type { Page } from "./data.js";
import { byId, element, fill } from "./dom.js";

/** By the name in a button's `data-word`. */
const WORDS: Record<string, [word: string, meaning: string]> = {
  ours: ["Ours", "bulla, the software that this page is about. A peer is another implementation of the same algorithm."],
  case: ["Case", "One operation that is measured, such as hash/1024: hash 1024 bytes. The part before the last slash is its group."],
  suite: ["Suite", "A set of cases about one question, such as BLAKE3 in one call. A suite is measured as a whole."],
  lane: ["Lane", "A class of machines with the same kind of processor. Do not compare figures across lanes."],
  ratio: ["Ratio", "How many times as fast ours is as a peer: the peer’s time over ours, taken in the same round. 1.25× means that the peer takes 1.25 times as long; below 1, ours is slower."],
  even: ["Even", "The difference is 1 % or less. Two copies of the same code can differ by as much."],
  gbs: ["GB/s", "Gigabytes per second: a thousand million bytes. MB/s: a million bytes. k/s and M/s: a thousand and a million operations per second."],
  cycles: ["c/B", "Cycles per byte: ticks of the processor’s clock for each byte. Fewer are better. The clock’s speed makes no difference to them. For signatures: cycles per signature."],
  kernel: ["Kernel", "The machine code that does the work, written for one instruction set such as AVX-512. “As detected” is the one that the software chooses by itself. Any other was forced."],
  run: ["Run", "Everything that one command measured together, at one time, from one version of the software."],
  launch: ["Launch", "One start of the measuring program. Each process gets another place in memory, which can make it faster or slower by chance. So a run has several launches, and its figure is their median."],
  round: ["Round", "One turn in which every implementation is timed once, in a random order."],
  quantile: ["Quantile", "The value that a given share of the measurements stays below. The median is the quantile of one half."],
  modeled: ["Modeled", "Computed, not measured: what a formula says for more threads than the measuring machine has. The formula is fitted to what was measured."],
  interval: ["Interval", "The range between two quantiles of the launches: of nine, the 2nd and the 8th. It includes the true ratio in 96 of 100 cases. With fewer than seven launches it spans all of them and is less certain. If it includes 1, the launches disagree about which is faster."],
  control: ["Control", "The first peer, measured twice, side by side. The two are equal, so any difference between them is noise. Also called “two equals”."],
  shared: ["Shared", "The share of rounds in which something else used the same processor core."],
  need: ["Need", "How much longer ours takes than the peer. Positive means that ours is slower."],
  gate: ["Gate", "A test that fails when ours becomes slower, relative to a peer, than a limit allows. “At least” is the ratio that it demands."],
};

/** A word that explains itself when it is pointed at, focused or tapped. */
export function word(name: string, text: string): HTMLElement {
  return element("button", { type: "button", class: "word", "data-word": name, "aria-describedby": `word-${name}` }, text);
}

/** The suites, by `suite-NAME`. */
const SUITES: typeof WORDS = {};

function list(id: string, words: typeof WORDS): void {
  const entries = Object.entries(words).sort(([, [a]], [, [b]]) => a.localeCompare(b, "en"));
  fill(id, ...entries.map(([name, [word, meaning]]) => element("div", {}, element("dt", {}, word), element("dd", { id: `word-${name}` }, meaning))));
}

/** Fills the lists at the end, and explains every word of the page in its place. */
export function words(page: Page): void {
  for (const { name, title, about } of page.suites) SUITES[`suite-${name}`] = [`${title} (${name})`, about];
  list("words", WORDS);
  list("suites", SUITES);
  for (const button of document.querySelectorAll<HTMLElement>(".word")) button.setAttribute("aria-describedby", `word-${button.dataset["word"]}`);
  const at = (event: Event) => (event.target instanceof Element ? event.target.closest<HTMLElement>(".word") : null);
  const inBox = (event: Event) => event.target instanceof Node && byId("explain").contains(event.target);
  for (const kind of ["focusin", "click"]) {
    document.addEventListener(kind, (event) => {
      const button = at(event);
      if (button !== null) show(button);
    });
  }
  document.addEventListener("focusout", (event) => at(event) !== null && hide());
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType !== "mouse") return;
    const button = at(event);
    if (button !== null) show(button);
    // The pointer crosses a gap between the word and its explanation, which can be read and copied.
    else if (!inBox(event) && shown !== document.activeElement) later();
    else clearTimeout(waiting);
  });
  document.addEventListener("pointerdown", (event) => at(event) === null && !inBox(event) && hide());
  // An explanation that covers something goes away when it is pressed, unless that selects its
  // text.
  byId("explain").addEventListener("click", () => getSelection()?.isCollapsed !== false && hide());
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  // In a scrolling box, a word may move below its explanation.
  document.addEventListener("scroll", (event) => event.target !== document && hide(), true);
  addEventListener("resize", hide);
}

let shown: HTMLElement | undefined;
let waiting = 0;

function later(): void {
  clearTimeout(waiting);
  waiting = setTimeout(hide, 150);
}

function hide(): void {
  clearTimeout(waiting);
  shown = undefined;
  byId("explain").hidden = true;
}

/** Below the word, or above it if there is no room, and never beyond the edge of the screen. */
function show(button: HTMLElement): void {
  clearTimeout(waiting);
  const name = button.dataset["word"] ?? "";
  const [word, meaning] = WORDS[name] ?? SUITES[name] ?? ["", ""];
  const box = byId("explain");
  box.replaceChildren(element("strong", {}, word), element("p", {}, meaning));
  box.hidden = false;
  shown = button;
  const [from, size] = [button.getBoundingClientRect(), box.getBoundingClientRect()];
  const edge = 12;
  const most = document.documentElement.clientWidth - size.width - edge;
  const below = from.bottom + 6;
  const above = from.top - 6 - size.height;
  const top = below + size.height > innerHeight && above > 0 ? above : below;
  box.style.left = `${Math.max(edge, Math.min(from.left, most)) + scrollX}px`;
  box.style.top = `${top + scrollY}px`;
}
