// The contrast of text as WCAG 2 defines it.

/**
 * Runs in the page: the text with too little contrast, as lines. Large text needs 3, other text
 * 4.5.
 */
export function weakText() {
  const parse = (color) => {
    const [r, g, b, a = 1] = /^rgba?\((.*)\)$/.exec(color)[1].split(/[ ,/]+/).map(Number);
    return [r, g, b, a];
  };
  const over = ([r, g, b, a], under) => [r, g, b].map((part, place) => part * a + under[place] * (1 - a));
  const luminance = (color) => color.map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
  const behind = (element) => {
    const chain = [];
    for (let at = element; at !== null; at = at.parentElement) {
      chain.push(parse(getComputedStyle(at).backgroundColor));
      // A dialog's background is the page's color, not that of its parent element.
      if (chain.at(-1)[3] === 1) break;
    }
    return chain.reverse().reduce((under, color) => over(color, under), [255, 255, 255]);
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let count = 0;
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    const unseen = element.closest(".unseen, noscript, option, .skip") !== null || !element.checkVisibility({ visibilityProperty: true });
    if (text === "" || unseen) continue;
    // A control that cannot be used needs no contrast. Ours have it all the same.
    const style = getComputedStyle(element);
    const under = behind(element);
    const color = over(parse(element.namespaceURI.endsWith("svg") ? style.fill : style.color), under);
    const [light, dark] = [luminance(color), luminance(under)].sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    count += 1;
    if (ratio < (isLarge ? 3 : 4.5)) found.push(`${ratio.toFixed(2)} ${style.color} on ${under}: ${text.slice(0, 40)}`);
  }
  return { count, found };
}
