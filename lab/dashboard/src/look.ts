// Colors and signs of implementations: the same everywhere on the page. No difference is shown
// only by color.

import type { Page } from "./data.js";

const SIGNS = ["circle", "square", "triangle", "diamond2", "star", "wye"] as const;
const GLYPHS = ["●", "■", "▲", "◆", "★", "Y"];

export interface Look {
  color: string;
  sign: (typeof SIGNS)[number];
  glyph: string;
}

/** Ours has the first look. Peers get theirs by name without version, in the order of all runs. */
export class Looks {
  private readonly names: string[] = [];

  constructor(page: Page) {
    for (const run of page.runs) {
      for (const peer of run.peers) {
        const name = nameOf(peer);
        if (!this.names.includes(name)) this.names.push(name);
      }
    }
  }

  ours(): Look {
    return look(0);
  }

  /** Within a run: two peers of one run never look alike, as long as there are looks left. */
  ofRun(peers: string[]): Map<string, Look> {
    const looks = new Map<string, Look>();
    const taken = new Set([0]);
    const wish = (peer: string) => 1 + (this.names.indexOf(nameOf(peer)) % (SIGNS.length - 1));
    for (const peer of peers) {
      let index = wish(peer);
      for (let tries = 1; taken.has(index) && tries < SIGNS.length; tries++) index = 1 + (index % (SIGNS.length - 1));
      taken.add(index);
      looks.set(peer, look(index));
    }
    return looks;
  }
}

function look(index: number): Look {
  return { color: `var(--series-${index})`, sign: SIGNS[index] ?? "circle", glyph: GLYPHS[index] ?? "●" };
}

/** `blake3 1.8.7 (held to avx2)`: the name alone. */
function nameOf(label: string): string {
  return label.replace(/ v?[\d.]+.*$/, "");
}
