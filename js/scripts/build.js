// Builds dist/ from src/, and then makes the text that workers run.
//
//     node scripts/build.js

import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { compile } from "./compile.js";

const root = new URL("../", import.meta.url);
const status = compile(fileURLToPath(root));
process.exitCode = status;
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
