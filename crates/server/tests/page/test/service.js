// The real service, as its users start it: each on a free port, with a keystore of its own.

import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The program `bulla`: named by the suite that runs this. */
const program = process.env.BULLA ?? fileURLToPath(new URL("../../../../../target/debug/bulla", import.meta.url));

/** No setting of the user's may count. */
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("BULLA")));

export const bulla = (...args) => execFileSync(program, args, { env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/**
 * Starts a service, and waits until it answers. Another program may take the port meanwhile: then
 * another port is tried.
 */
export async function start(args, { tries = 5 } = {}) {
  const origin = `http://127.0.0.1:${await freePort()}`;
  const child = spawn(program, ["serve", ...args, "--listen", origin.slice(7)], { env, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (data) => { said += data; });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const stop = async () => {
    child.kill();
    await ended;
  };
  for (;;) {
    if (child.exitCode !== null) {
      if (tries > 1 && /in use/.test(said)) return start(args, { tries: tries - 1 });
      throw new Error(`bulla serve ended: ${said}`);
    }
    // A sealed service answers, too.
    const answers = await fetch(`${origin}/api/v1/health`).then(({ ok }) => ok, () => false);
    if (answers) return { origin, stop, api: (path, how) => api(origin, path, how) };
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Asks the service beside the page. */
async function api(origin, path, { token, body, method = body === undefined ? "GET" : "POST" } = {}) {
  const headers = { "content-type": "application/json" };
  if (token !== undefined) headers.authorization = `Bearer ${token}`;
  const response = await fetch(`${origin}${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
  return answer;
}

export const development = () => start(["--dev"]);

/**
 * A service with a keystore on the disk, and tokens that were minted before it started. With a
 * passphrase it starts sealed.
 */
export async function withKeystore({ passphrase, hasLog = false, tokens }) {
  const folder = mkdtempSync(join(tmpdir(), "bulla-page-"));
  const store = join(folder, "store");
  const config = join(folder, "serve.toml");
  writeFileSync(config, `[keystore]\nfolder = ${JSON.stringify(store)}\n`);
  const opened = ["--keystore", store];
  if (passphrase !== undefined) {
    const file = join(folder, "passphrase");
    writeFileSync(file, `${passphrase}\n`, { mode: 0o600 });
    opened.push("--passphrase-file", file);
  }
  bulla("keystore", "init", ...opened);
  if (hasLog) bulla("log", "init", ...opened);
  const minted = Object.fromEntries(Object.entries(tokens).map(([name, { operations, keys = [] }]) => {
    const flags = [...operations.flatMap((operation) => ["--operation", operation]), ...keys.flatMap((key) => ["--key", key])];
    return [name, bulla("token", "new", ...flags, "--expires", "1h", ...opened).trim()];
  }));
  const service = await start(["--config", config]);
  const stop = async () => {
    await service.stop();
    rmSync(folder, { recursive: true });
  };
  return { ...service, stop, folder, tokens: minted };
}
