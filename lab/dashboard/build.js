// Checks the sources and bundles them into a folder: index.html, page.css, page.js, and the
// licenses of what is in it. `cargo xtask dashboard` adds data.js.
//
//     node build.js FOLDER

import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** @param {string} name */
const here = (name) => fileURLToPath(new URL(name, import.meta.url));

const folder = resolve(process.argv[2] ?? here("dist"));
const compiler = createRequire(import.meta.url).resolve("typescript/package.json").replace("package.json", "bin/tsc");
const { status } = spawnSync(process.execPath, [compiler, "--project", here(".")], { stdio: ["ignore", 2, 2] });
if (status !== 0) process.exit(1);

mkdirSync(folder, { recursive: true });
for (const name of ["index.html", "page.css"]) copyFileSync(here(`src/${name}`), resolve(folder, name));
const { metafile } = await build({
  entryPoints: [here("src/page.ts")],
  outdir: folder,
  bundle: true,
  minify: true,
  // Not a module: browsers do not load modules from the file system.
  format: "iife",
  platform: "browser",
  target: "es2022",
  legalComments: "none",
  metafile: true,
  absWorkingDir: here("."),
  logLevel: "error",
});

/** The packages in the bundle, each with its license, which every copy must include. */
const packages = new Set(Object.keys(metafile.inputs).flatMap((path) => /^node_modules\/(@[^/]+\/[^/]+|[^/]+)/.exec(path)?.[0] ?? []));
const licenses = [...packages].sort().map((path) => {
  const name = readdirSync(here(path)).find((file) => /^licen[cs]e/i.test(file));
  if (name === undefined) throw new Error(`${path} has no license`);
  return `${path.replace("node_modules/", "")}\n\n${readFileSync(here(`${path}/${name}`), "utf8").trim()}\n`;
});
writeFileSync(resolve(folder, "licenses.txt"), licenses.join(`\n${"-".repeat(72)}\n\n`));
