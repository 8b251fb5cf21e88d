// Reads the shared vectors of the project. A browser has this module replaced by one that fetches
// them.
import { readFile } from "node:fs/promises";

/** @param {string} name such as "blake3.json" */
export async function vectors(name) {
  return JSON.parse(await readFile(new URL(`../../../spec/vectors/${name}`, import.meta.url), "utf8"));
}
