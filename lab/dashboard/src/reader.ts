// Reads values from a chart: with a pointer, a finger, or the arrow keys.

import { element } from "./dom.js";

/** A place along the axis of a chart, and the values there. */
export interface Stop {
  /** From the left edge of the drawing, in its own units. */
  x: number;
  /** The case or the run at that place. */
  name: string;
  title: string;
  lines: { glyph: string; color: string; name: string; value: string }[];
}

/**
 * Puts a drawing into its place and lets its stops be read. Without stops, the drawing is only a
 * picture. Returns the function that opens the stop with a name.
 */
export function readable(host: HTMLElement, drawing: SVGSVGElement, stops: Stop[], label: string): (name: string) => void {
  const width = Number(drawing.getAttribute("width"));
  const height = Number(drawing.getAttribute("height"));
  const rule = document.createElementNS("http://www.w3.org/2000/svg", "line");
  rule.setAttribute("class", "cursor");
  rule.setAttribute("y1", "12");
  rule.setAttribute("y2", String(height - 36));
  drawing.append(rule);
  drawing.setAttribute("aria-hidden", "true");
  const box = element("div", { class: "tip", hidden: true });
  // A separate element, because screen readers do not read hidden ones.
  const spoken = element("p", { class: "unseen", role: "status" });
  host.replaceChildren(drawing, box, spoken);
  host.setAttribute("aria-label", `${label} Left and right arrow keys read the values.`);
  let at = -1;

  const show = (index: number) => {
    at = index;
    const stop = stops[index];
    rule.classList.toggle("on", stop !== undefined);
    box.hidden = stop === undefined;
    if (stop === undefined) return;
    rule.setAttribute("x1", String(stop.x));
    rule.setAttribute("x2", String(stop.x));
    box.replaceChildren(element("strong", {}, stop.title), list(stop));
    box.classList.toggle("left", stop.x > width / 2);
    box.style.setProperty("--x", `${stop.x}px`);
    spoken.textContent = `${stop.title}: ${stop.lines.map((line) => `${line.name} ${line.value}`).join(", ")}`;
  };
  const nearest = (event: PointerEvent) => {
    const frame = drawing.getBoundingClientRect();
    const x = ((event.clientX - frame.left) * width) / frame.width;
    let best = -1;
    stops.forEach((stop, index) => {
      const other = stops[best];
      if (other === undefined || Math.abs(stop.x - x) < Math.abs(other.x - x)) best = index;
    });
    show(best);
  };
  host.onpointermove = nearest;
  host.onpointerdown = nearest;
  host.onpointerleave = () => show(-1);
  host.onblur = () => show(-1);
  host.onkeydown = (event) => {
    const next = step(event.key, at, stops.length);
    if (next === undefined) return;
    event.preventDefault();
    show(next);
  };
  return (name) => show(stops.findIndex((stop) => stop.name === name));
}

/** The target of a key, if it has one. */
function step(key: string, at: number, count: number): number | undefined {
  switch (key) {
    case "ArrowRight":
      return Math.min(at + 1, count - 1);
    case "ArrowLeft":
      return at < 0 ? count - 1 : Math.max(at - 1, 0);
    case "Home":
      return 0;
    case "End":
      return count - 1;
    case "Escape":
      return -1;
    default:
      return undefined;
  }
}

function list(stop: Stop): HTMLElement {
  const rows = stop.lines.map((line) =>
    element(
      "tr",
      {},
      element("td", { class: "glyph", style: `color: ${line.color}` }, line.glyph),
      element("td", {}, line.name),
      element("td", { class: "figure" }, line.value),
    ),
  );
  return element("table", {}, element("tbody", {}, ...rows));
}
