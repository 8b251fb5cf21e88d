// A server for the pages of the tests, on a port of this machine that is free.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname } from "node:path";

/** @type {Record<string, string>} */
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json",
  ".svg": "image/svg+xml",
};

/**
 * Serves files by their address, each a text or the URL of a file, all with the same headers, and
 * what a folder holds below its address.
 *
 * @param {Record<string, string | URL>} files
 * @param {Record<string, string>} headers
 * @returns {Promise<{ origin: string, close: () => void }>}
 */
export async function serve(files, headers) {
  const server = createServer(async (request, response) => {
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    const file = files[path] ?? files[path.replace(/[^/]*$/, "*")];
    try {
      if (file === undefined) throw new Error("no such file");
      const last = path.slice(path.lastIndexOf("/") + 1);
      const content = file instanceof URL ? await readFile(path in files ? file : new URL(last, file)) : file;
      response.writeHead(200, { "content-type": TYPES[extname(path)] ?? TYPES[".html"], ...headers });
      response.end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return {
    origin: `http://127.0.0.1:${port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
