// Whatever noble does, the entry that stands in for it does.
import assert from "node:assert/strict";
import { test } from "node:test";
import { blake3 as theirs } from "@noble/hashes/blake3.js";
import { BLAKE3, _BLAKE3, blake3 as ours } from "bulla/noble";
import { pattern } from "./support/data.js";

const key = pattern(32);
const context = new TextEncoder().encode("a context");
const both = /** @type {any[]} */ ([theirs, ours]);

/** @param {(blake3: any) => unknown} use */
function same(use) {
  const [expected, actual] = both.map((blake3) => {
    try {
      return { value: use(blake3) };
    } catch (error) {
      return { error: /** @type {Error} */ (error).constructor.name };
    }
  });
  assert.deepEqual(actual, expected, String(use));
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
  same((blake3) => [blake3.create().outputLen, blake3.create({ dkLen: 7 }).outputLen, blake3.create().blockLen]);
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

test("what noble refuses is refused", () => {
  same((blake3) => blake3.create().update(5));
  same((blake3) => blake3(undefined));
  same((blake3) => blake3(pattern(1), { dkLen: -1 }));
  same((blake3) => blake3(pattern(1), { dkLen: 1.5 }));
  same((blake3) => blake3(pattern(1), { dkLen: "32" }));
  same((blake3) => blake3(pattern(1), { key: pattern(31) }));
  same((blake3) => blake3(pattern(1), { key: 5 }));
  same((blake3) => blake3(pattern(1), { context: 5 }));
  same((blake3) => blake3.create().digestInto(new Uint8Array(31)));
  same((blake3) => blake3.create().digestInto([]));
  same((blake3) => blake3.create().xof(-1));
  /** @param {string} last @param {string} then */
  const after = (last, then) =>
    same((blake3) => {
      const hash = blake3.create().update(pattern(3));
      if (last === "xof") hash.xof(3);
      else hash[last]();
      return then === "xof" ? hash.xof(3) : then === "update" ? hash.update(pattern(3)).blockLen : hash[then]();
    });
  for (const last of ["digest", "xof", "destroy"]) for (const then of ["update", "digest", "xof"]) after(last, then);
});
