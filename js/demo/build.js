// Builds the page into a folder that any web server can serve.
//
//     npm run build && node demo/build.js            writes demo/dist
//     npm run build && node demo/build.js FOLDER

import { copyFileSync, mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

/** @param {string} name */
const here = (name) => fileURLToPath(new URL(name, import.meta.url));

/** @param {string} folder */
export async function buildDemo(folder) {
  mkdirSync(folder, { recursive: true });
  for (const name of ["index.html", "demo.css"]) copyFileSync(here(name), resolve(folder, name));
  await build({
    entryPoints: [here("demo.js"), here("worker.js")],
    outdir: folder,
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    // The page's own scripts are told to be without side effects by the package that they lie in.
    ignoreAnnotations: true,
    logLevel: "error",
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const folder = process.argv[2] ?? here("dist");
  await buildDemo(folder);
  console.log(`${folder}: serve it, for example with python3 -m http.server --directory ${folder}`);
}
