// Compiles src/ of a package to its dist/. It removes old files first, so that they are not packed.
//
//     node scripts/compile.js FOLDER

import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

/**
 * Compiles a package, and returns the compiler's exit status.
 * @param {string} folder
 */
export function compile(folder) {
  rmSync(join(folder, "dist"), { recursive: true, force: true });
  const compiler = createRequire(import.meta.url).resolve("typescript/package.json").replace("package.json", "bin/tsc");
  const { status } = spawnSync(process.execPath, [compiler, "--project", folder], { stdio: "inherit" });
  return status ?? 1;
}

const [, program = "", folder] = process.argv;
if (import.meta.url === pathToFileURL(program).href) {
  if (folder === undefined) throw new TypeError("name the package's folder");
  process.exitCode = compile(resolve(folder));
}
