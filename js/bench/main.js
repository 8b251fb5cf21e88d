// One launch of the benchmark: prints records on standard output.
//
//     node main.js             all groups
//     node main.js pure        one group, in this process
// Each group runs in a separate process, like a program that uses one entry: the compiler's
// knowledge of the other core would slow down both.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

import { GROUPS } from "./cases.js";
import { measure } from "./measure.js";

const [group] = process.argv.slice(2);
if (group === undefined) {
  const file = fileURLToPath(import.meta.url);
  for (const name of Object.keys(GROUPS)) {
    const { status, error } = spawnSync(process.execPath, [...process.execArgv, file, name], { stdio: "inherit" });
    if (status !== 0) throw error ?? new Error(`the group ${name} ended with status ${status}`);
  }
} else {
  for await (const test of await GROUPS[group]()) {
    if (!isWanted(test)) continue;
    for (const record of await measure(test)) console.log(JSON.stringify(record));
  }
  process.exit();
}

/**
 * Whether the user's restrictions include the case.
 * @param {{ name: string, bytes: number }} test
 */
function isWanted({ name, bytes }) {
  const list = (/** @type {string} */ variable) => (process.env[variable] ?? "").split(",").filter((item) => item !== "");
  const prefixes = list("BULLA_BENCH_CASES");
  const sizes = list("BULLA_BENCH_SIZES");
  return (
    (prefixes.length === 0 || prefixes.some((prefix) => name.startsWith(prefix) || `js/${name}`.startsWith(prefix))) &&
    (sizes.length === 0 || sizes.includes(String(bytes)))
  );
}
