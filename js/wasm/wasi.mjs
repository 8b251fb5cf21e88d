// Runs a program that was compiled for WASI: the runner of cargo for the tests of the WebAssembly
// kernel.
//
//   node --no-warnings js/wasm/wasi.mjs PROGRAM ARGUMENTS...
import { readFileSync } from 'node:fs';
import { WASI } from 'node:wasi';

const [program, ...rest] = process.argv.slice(2);
const wasi = new WASI({
  version: 'preview1',
  args: [program, ...rest],
  env: process.env,
  // The tests read the shared vectors by their paths.
  preopens: { '/': '/' },
  returnOnExit: true,
});
const { instance } = await WebAssembly.instantiate(readFileSync(program), wasi.getImportObject());
process.exitCode = wasi.start(instance);
