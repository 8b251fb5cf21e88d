// Builds dist/ from src/: removes what was there, so that nothing old is packed.
//
//     node scripts/build.js

import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const root = new URL("../", import.meta.url);
rmSync(new URL("dist", root), { recursive: true, force: true });
const compiler = createRequire(import.meta.url).resolve("typescript/package.json").replace("package.json", "bin/tsc");
const { status } = spawnSync(process.execPath, [compiler, "--project", fileURLToPath(root)], { stdio: "inherit" });
process.exitCode = status ?? 1;
