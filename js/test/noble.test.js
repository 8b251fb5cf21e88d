// Whatever noble does, the entry that stands in for it does.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { runInNewContext } from "node:vm";
import { blake3 as theirs } from "@noble/hashes/blake3.js";
import { BLAKE3, _BLAKE3, blake3 as ours } from "bulla/noble";
import { pattern } from "./support/data.js";

const key = pattern(32);
const context = new TextEncoder().encode("a context");
const both = /** @type {any[]} */ ([theirs, ours]);

/** What a use of a package gives: a value, or the class of an error.
 * @param {any} blake3 @param {(blake3: any) => unknown} use */
function outcome(blake3, use) {
  try {
    return { value: use(blake3) };
  } catch (error) {
    const { constructor, code } = /** @type {any} */ (error);
    if (blake3 === ours && constructor !== Mine) assert.match(String(code), /^ERR_/, `${use}: ${error}`);
    return { error: constructor.name };
  }
}

/** An error of a caller's own, which is passed on. */
class Mine extends Error {}

/** @param {(blake3: any) => unknown} use @param {unknown} [what] */
function same(use, what = "") {
  const [expected, actual] = both.map((blake3) => outcome(blake3, use));
  assert.deepEqual(actual, expected, `${use} ${inspect(what)}`);
}

test("digests in every mode and length", () => {
  for (const length of [0, 1, 63, 64, 65, 1023, 1024, 1025, 5000, 70_000]) {
    for (const opts of [undefined, {}, { dkLen: 0 }, { dkLen: 1 }, { dkLen: 200 }, { key }, { context }, { key, dkLen: 64 }]) {
      same((blake3) => blake3(pattern(length), opts));
      same((blake3) => blake3.create(opts).update(pattern(length)).update(pattern(3)).digest());
    }
  }
});

test("properties of the function", () => {
  for (const name of ["outputLen", "blockLen", "canXOF"]) same((blake3) => blake3[name]);
  same((blake3) => Object.isFrozen(blake3));
  same((blake3) => [blake3.create().outputLen, blake3.create({ dkLen: 7 }).outputLen, blake3.create().blockLen, blake3.create().canXOF]);
  assert.ok(ours.create() instanceof BLAKE3);
  assert.equal(BLAKE3, _BLAKE3);
});

test("extended output, clones and destruction", () => {
  same((blake3) => {
    const xof = blake3.create().update(pattern(5000));
    const first = xof.xof(10);
    const clone = xof.clone();
    return [first, xof.xof(100), clone.xof(100), xof.xofInto(new Uint8Array(7)), clone.xof(0)];
  });
  same((blake3) => {
    const hash = blake3.create({ key }).update(pattern(2000));
    const clone = hash.clone().update(pattern(10));
    return [hash.digest(), clone.digest()];
  });
  same((blake3) => blake3.create().update(pattern(9))._cloneInto(blake3.create({ key })).update(pattern(3)).digest());
  same((blake3) => {
    const out = new Uint8Array(40);
    return [blake3.create().update(pattern(9)).digestInto(out), out];
  });
});

/** Bytes and what resembles them. Text is not here: see the differences. */
const THINGS = () => [
  undefined, null, true, false, 0, 5, -1, NaN, 5n, Symbol("s"), () => {}, {}, [], [1, 2, 3], { length: 32 }, new Date(0), new Map(),
  new Uint8Array(0), pattern(31), key, pattern(33), pattern(100).subarray(3, 35), Buffer.from(key), new (class extends Uint8Array {})(32),
  runInNewContext("new Uint8Array(32)"), runInNewContext("new Uint16Array(16)"), new Uint8Array(new SharedArrayBuffer(32)),
  new Uint8ClampedArray(32), new Int8Array(32), new Uint16Array(16), new Uint32Array(8), new Float64Array(4), new BigUint64Array(4),
  new DataView(new ArrayBuffer(32)), new ArrayBuffer(32), new SharedArrayBuffer(32), new Proxy(new Uint8Array(32), {}),
  Object.create(Uint8Array.prototype), { constructor: { name: "Uint8Array" }, BYTES_PER_ELEMENT: 1, length: 32 },
];

const NUMBERS = [
  undefined, null, 0, 1, 31, 32, 33, 64, 1000, -1, -0, 0.5, 1.5, NaN, Infinity, -Infinity, 2 ** 40, 2 ** 53 - 1, 2 ** 53, "32", "", 32n, true,
  {}, [], [32], Symbol("s"), () => 32, new Number(32),
];

/** Objects of options, made anew for each use. */
const OPTIONS = [
  () => undefined, () => null, () => 5, () => "key", () => true, () => 5n, () => Symbol("s"), () => () => {}, () => [], () => [key],
  () => ({}), () => Object.create(null), () => Object.assign(Object.create(null), { key }), () => Object.freeze({ key }), () => new Map(),
  () => new (class { key = key; })(), () => Object.create({ key }), () => Object.create(Object.create(null)), () => key, () => new Date(0),
  () => JSON.parse('{ "__proto__": { "dkLen": 5 } }'), () => ({ ["__proto__"]: undefined }), () => ({ __proto__: null, dkLen: 5 }),
  () => runInNewContext("({ dkLen: 5 })"), () => new Proxy({ dkLen: 5 }, {}), () => ({ get dkLen() { return 7; } }),
  () => ({ get key() { throw new Mine(); } }), () => Object.defineProperty({}, "key", { value: key }), () => ({ [Symbol("key")]: key }),
  () => ({ kye: key, length: 5, outputLen: 5, salt: 1, personalization: 2 }), () => ({ key: undefined, context: undefined, dkLen: undefined }),
  () => ({ key, context }), () => ({ key, context: undefined }), () => ({ key: pattern(31), context }), () => ({ key, context, dkLen: -1 }),
  () => ({ key: null }), () => ({ context: null }), () => ({ context: new Uint8Array(0) }), () => ({ dkLen: 5, key }), () => ({ dkLen: 5, context }),
];

test("every argument is taken or refused as by noble, with an error of the same class", () => {
  for (const value of THINGS()) {
    same((blake3) => blake3(value), value);
    same((blake3) => blake3(value, { dkLen: 5 }), value);
    same((blake3) => blake3.create().update(value).digest(), value);
    same((blake3) => blake3(pattern(3), { key: value }), value);
    same((blake3) => blake3(pattern(3), { context: value }), value);
    same((blake3) => [blake3.create().update(pattern(3)).digestInto(value), value], value);
    same((blake3) => [blake3.create({ dkLen: 0 }).digestInto(value), value], value);
    same((blake3) => [blake3.create().update(pattern(3)).xofInto(value), value], value);
  }
  for (const dkLen of /** @type {any[]} */ (NUMBERS)) {
    same((blake3) => blake3.create({ dkLen }).outputLen, dkLen);
    same((blake3) => blake3(pattern(3), { dkLen }), dkLen);
    same((blake3) => blake3.create().xof(dkLen), dkLen);
  }
  for (const options of OPTIONS) {
    same((blake3) => blake3(pattern(3), options()), options);
    same((blake3) => blake3.create(options()).update(pattern(3)).digest(), options);
    same((blake3) => blake3(5, options()), options);
  }
  for (const to of [undefined, null, 0, "", {}, 5, "a", [], () => {}]) {
    same((blake3) => blake3.create({ key, dkLen: 9 }).update(pattern(3))._cloneInto(to).digest(), to);
  }
});

test("in every state of a hash, each call does what noble's does, with good and with wrong arguments", () => {
  const before = ["", "update", "xof", "xofInto", "digest", "digestInto", "destroy", "clone"];
  /** @type {[string, ...unknown[]][]} */
  const calls = [
    ["update", pattern(3)], ["update", 5], ["update"], ["xof", 3], ["xof", -1], ["xof", "3"], ["xofInto", new Uint8Array(3)], ["xofInto", [3]],
    ["digest"], ["digestInto", new Uint8Array(32)], ["digestInto", new Uint8Array(31)], ["digestInto", {}], ["clone"], ["destroy"],
  ];
  /** @param {any} hash @param {string} name */
  const prepare = (hash, name) => {
    if (name === "clone") return hash.clone();
    if (name !== "") hash[name](...(name === "xof" ? [3] : name.endsWith("Into") ? [new Uint8Array(32)] : name === "update" ? [pattern(70)] : []));
    return hash;
  };
  for (const first of before) {
    for (const second of before) {
      for (const [name, ...args] of calls) {
        same((blake3) => {
          const hash = prepare(prepare(blake3.create({ key }).update(pattern(9)), first), second);
          const result = hash[name](...args);
          return ["clone", "update"].includes(name) ? result.digest() : result;
        }, [first, second, name, args]);
      }
    }
  }
});

test("errors say why a hash takes no more calls, in noble's words", () => {
  /** @type {[string, (hash: any) => unknown][]} */
  const cases = [
    ["digest() was already called", (hash) => (hash.digest(), hash.digest())],
    ["digest() was already called", (hash) => (hash.xof(3), hash.update(pattern(3)))],
    ["no XOF after digest()", (hash) => (hash.digest(), hash.xof(3))],
    ["hash was destroyed", (hash) => (hash.destroy(), hash.update(pattern(3)))],
    ['"output" expected length >= 32', (hash) => hash.digestInto(new Uint8Array(31))],
    ['"output" expected length >= 32', (hash) => (hash.digest(), hash.digestInto(new Uint8Array(31)))],
  ];
  for (const [message, use] of cases) for (const blake3 of both) assert.throws(() => use(blake3.create()), { message }, String(use));
});

test("what a program put on Object.prototype is no option, as with noble", () => {
  const inherited = /** @type {any} */ (Object.prototype);
  Object.assign(inherited, { key, dkLen: 5 });
  try {
    for (const options of [undefined, {}, Object.create(null)]) {
      same((blake3) => [...blake3(pattern(3), options)]);
      same((blake3) => [...blake3.create(options).update(pattern(3)).digest()]);
    }
  } finally {
    for (const name of ["key", "dkLen"]) delete inherited[name];
  }
});

test("what differs from noble is what MIGRATION.md says", () => {
  const encoder = new TextEncoder();
  for (const text of ["", "abc", "\u2713", "c".repeat(32)]) {
    const bytes = encoder.encode(text);
    assert.throws(() => theirs(/** @type {any} */ (text)), TypeError);
    assert.deepEqual(ours(text), theirs(bytes));
    assert.deepEqual(ours.create().update(text).digest(), theirs(bytes));
    assert.throws(() => theirs(bytes, { context: /** @type {any} */ (text) }), TypeError);
    assert.deepEqual(ours(bytes, { context: text }), theirs(bytes, { context: bytes }));
    for (const blake3 of both) assert.throws(() => blake3(bytes, { key: text }), TypeError);
  }
  const gone = pattern(32);
  structuredClone(gone.buffer, { transfer: [gone.buffer] });
  assert.deepEqual(theirs(gone), theirs(new Uint8Array(0)));
  for (const use of [() => ours(gone), () => ours.create().update(gone), () => ours(key, { context: gone })]) {
    assert.throws(use, { name: "TypeError", code: "ERR_DETACHED" });
  }
  class Liar extends Uint8Array {
    // @ts-ignore
    get length() { return 1; }
  }
  assert.deepEqual(theirs(new Liar(3)), theirs(new Uint8Array(1)));
  assert.deepEqual(ours(new Liar(3)), theirs(new Uint8Array(3)));
  const named = Object.defineProperty(new Int8Array(3), "constructor", { value: { name: "Uint8Array" } });
  assert.deepEqual(theirs(/** @type {any} */ (named)), theirs(new Uint8Array(3)));
  assert.throws(() => ours(/** @type {any} */ (named)), { name: "TypeError", code: "ERR_DATA_TYPE" });
});
