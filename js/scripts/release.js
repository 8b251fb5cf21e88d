// Publishes both packages with their provenance: a statement, signed for the CI job that runs this,
// about the commit that they were built from. npm checks the identity of the job, so the script
// publishes only from CI.
//
//     node scripts/release.js             checks everything, packs, publishes nothing
//     node scripts/release.js --publish   the same, and publishes

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../", import.meta.url));
/** The folders of the packages: for hashing, and the client of the service. */
const PACKAGES = [root, `${root}kms`];
const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const publishes = process.argv.includes("--publish");

/**
 * Runs a program to its end, or ends with its status.
 * @param {string} program
 * @param {string[]} args
 * @param {string} cwd
 */
function run(program, args, cwd = root) {
  const { status, stdout } = spawnSync(program, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
  if (status !== 0) fail(`${program} ${args.join(" ")} failed${stdout ? `:\n${stdout}` : ""}`);
  return stdout.trim();
}

/** @param {string} message @returns {never} */
function fail(message) {
  console.error(`release: ${message}`);
  process.exit(1);
}

const changed = run("git", ["status", "--porcelain"]);
if (changed !== "") fail(`commit or remove these first:\n${changed}`);
const tags = run("git", ["tag", "--points-at", "HEAD"]).split("\n");
if (publishes && !tags.includes(`js-v${version}`)) fail(`this commit does not have the tag js-v${version}`);
if (publishes && process.env.ACTIONS_ID_TOKEN_REQUEST_URL === undefined && process.env.SIGSTORE_ID_TOKEN === undefined) {
  fail("no identity to sign the provenance with: publish from a CI job with the permission `id-token: write`");
}
run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
run(process.execPath, ["wasm/build.mjs", "--check"]);
for (const folder of PACKAGES) run("npm", ["test"], folder);
for (const folder of PACKAGES) run("npm", ["publish", "--access", "public", ...(publishes ? ["--provenance"] : ["--dry-run"])], folder);
console.log(publishes ? `published ${version}` : `${version} can be published: tag it js-v${version}, and run with --publish in CI`);
