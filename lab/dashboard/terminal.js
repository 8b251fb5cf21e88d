// Draws a terminal with commands and their output, as one SVG: light or dark.

const THEMES = {
  light: { paper: "#f6f7f9", bar: "#dfe3e8", ink: "#1a2230", soft: "#566072", accent: "#2459a9" },
  dark: { paper: "#12161d", bar: "#2d3542", ink: "#e7ebf1", soft: "#a0abbb", accent: "#84b4ff" },
};
const LINE = 20;
const CHARACTER = 8.43;
const MAX_COLUMNS = 100;

/** @param {string} text */
const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** A line in pieces that fit, as a terminal wraps it.
 * @param {string} line */
function wrapped(line) {
  const pieces = [];
  for (let at = 0; at === 0 || at < line.length; at += MAX_COLUMNS) pieces.push(line.slice(at, at + MAX_COLUMNS));
  return pieces;
}

/** The text of an SVG file.
 * @param {string[]} lines Commands begin with `$ `; everything else is output.
 * @param {"light" | "dark"} theme */
export function terminalPicture(lines, theme) {
  const { paper, bar, ink, soft, accent } = THEMES[theme];
  const rows = lines.flatMap((line) => wrapped(line).map((text, index) => ({ text, command: index === 0 && line.startsWith("$ ") })));
  const width = 880;
  const height = 30 + rows.length * LINE + 22;
  const texts = rows.map(({ text, command }, index) => {
    const y = 30 + (index + 1) * LINE;
    const length = `textLength="${(text.length * CHARACTER).toFixed(1)}" lengthAdjust="spacingAndGlyphs"`;
    const content = command ? `<tspan fill="${accent}">$</tspan>${escaped(text.slice(1))}` : escaped(text);
    if (text === "") return "";
    return `<text x="16" y="${y}" fill="${command ? ink : soft}" ${command ? 'font-weight="600" ' : ""}${length} xml:space="preserve">${content}</text>\n`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="14">
<rect width="${width}" height="${height}" rx="8" fill="${paper}"/>
<path d="M0 30V8a8 8 0 0 1 8-8h${width - 16}a8 8 0 0 1 8 8v22z" fill="${bar}"/>
<g fill="${soft}"><circle cx="18" cy="15" r="5"/><circle cx="36" cy="15" r="5"/><circle cx="54" cy="15" r="5"/></g>
${texts.join("")}</svg>
`;
}

/** The first lines of a document's tour: those of its blocks `console tour` from the first to the
 * one that contains `last`.
 * @param {string} document @param {string} last */
export function tourLines(document, last) {
  const lines = [];
  for (const [, block] of document.matchAll(/```console tour\n(.*?)```/gs)) {
    lines.push(...(block ?? "").trimEnd().split("\n"));
    if (block?.includes(last)) return lines;
  }
  throw new Error(`no block of the tour contains ${last}`);
}
