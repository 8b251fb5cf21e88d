// Builds dist/ from src/. It removes old files first, so that they are not packed, and at the end
// makes the text that workers run.
//
//     node scripts/build.js

import { spawnSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = new URL("../", import.meta.url);
rmSync(new URL("dist", root), { recursive: true, force: true });
const compiler = createRequire(import.meta.url).resolve("typescript/package.json").replace("package.json", "bin/tsc");
const { status } = spawnSync(process.execPath, [compiler, "--project", fileURLToPath(root)], { stdio: "inherit" });
process.exitCode = status ?? 1;
if (status === 0) await embedWorker();

/**
 * Makes one text of dist/parallel/worker.js and all its imports, as src/parallel/worker-text.d.ts
 * declares it.
 */
async function embedWorker() {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL("dist/parallel/worker.js", root))],
    bundle: true,
    minify: true,
    write: false,
    // A script, so that every platform can run the text.
    format: "iife",
    target: "es2022",
    logLevel: "warning",
  });
  const text = `// Made by scripts/build.js.\nexport const WORKER = ${JSON.stringify(outputFiles[0].text)};\n`;
  writeFileSync(new URL("dist/parallel/worker-text.js", root), text);
}
