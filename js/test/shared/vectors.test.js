import assert from "node:assert/strict";
import { test } from "node:test";
import { toHex } from "bulla";
import { cores, expectedKernel } from "../support/cores.js";
import { fromHex, pattern } from "../support/data.js";
import { vectors } from "../support/vectors.js";

const known = await vectors("blake3.json");
const key = new TextEncoder().encode(known.key);
const context = known.context_string;

test("the main entry runs the kernel that it should", () => {
  assert.equal(cores[1].api.kernel(), expectedKernel);
  assert.equal(cores[0].api.kernel(), "portable");
});

for (const { name, api } of cores) {
  const { hash, keyedHash, deriveKey, createHasher, hashMany } = api;

  test(`${name}: vectors, one-shot and incremental`, () => {
    for (const { input_len, hash: plain, keyed_hash, derive_key } of known.cases) {
      const input = pattern(input_len);
      const length = plain.length / 2;
      assert.equal(toHex(hash(input, { length })), plain);
      assert.equal(toHex(keyedHash(key, input, { length })), keyed_hash);
      assert.equal(toHex(deriveKey(context, input, { length })), derive_key);
      assert.equal(createHasher().update(input).digest("hex", { length }), plain);
      assert.equal(createHasher({ key }).update(input).digest("hex", { length }), keyed_hash);
      assert.equal(createHasher({ context }).update(input).digest("hex", { length }), derive_key);
      assert.equal(toHex(hash(input)), plain.slice(0, 64));
      assert.equal(toHex(keyedHash(key, input)), keyed_hash.slice(0, 64));
      assert.equal(toHex(deriveKey(context, input)), derive_key.slice(0, 64));
    }
  });

  test(`${name}: output from any position`, () => {
    for (const { input_len, position, len, hash: expected } of known.output_pieces) {
      const reader = createHasher().update(pattern(input_len)).xof().seek(BigInt(position));
      assert.equal(toHex(hash(reader.read(len))), expected, `${input_len} at ${position}`);
      assert.equal(reader.position, BigInt(position) + BigInt(len));
    }
  });

  test(`${name}: many inputs, of one length and of several`, () => {
    const digests = hashMany(known.cases.map((/** @type {any} */ c) => pattern(c.input_len)));
    assert.deepEqual(digests.map(toHex), known.cases.map((/** @type {any} */ c) => c.hash.slice(0, 64)));
    for (const length of [0, 1, 64, 1000, 1024, 1025, 4096, 70000]) {
      const one = pattern(length);
      const expected = toHex(hash(one));
      assert.deepEqual(new Set(hashMany(Array(70).fill(one)).map(toHex)), new Set([expected]));
    }
    assert.deepEqual(hashMany([]), []);
  });

  test(`${name}: every length from 0 to 36864 in each mode`, async () => {
    const { runs } = await vectors("blake3-lengths.json");
    const input = pattern(36864);
    for (const run of runs) {
      const all = { hash: createHasher(), keyed_hash: createHasher(), derive_key: createHasher() };
      for (let length = run.from; length <= run.to; length++) {
        const bytes = input.subarray(0, length);
        all.hash.update(hash(bytes));
        all.keyed_hash.update(keyedHash(key, bytes));
        all.derive_key.update(deriveKey(context, bytes));
      }
      for (const mode of /** @type {const} */ (["hash", "keyed_hash", "derive_key"])) {
        assert.equal(all[mode].digest("hex"), run[mode], `${mode}, ${run.from} to ${run.to}`);
      }
    }
  });

  test(`${name}: saved states are those of the specification, and go on`, async () => {
    const { cases } = await vectors("blake3-state.json");
    const input = pattern(1 << 21);
    const modes = { hash: {}, keyed_hash: { key }, derive_key: { context } };
    for (const c of cases) {
      // A hasher with an offset begins as a saved state of no input.
      const start = createHasher(modes[/** @type {keyof typeof modes} */ (c.mode)]).save();
      new DataView(start.buffer).setBigUint64(16, BigInt(c.offset), true);
      const hasher = createHasher().restore(start);
      const bytes = input.subarray(0, c.count);
      for (let at = 0; at < bytes.length; at += 7000) hasher.update(bytes.subarray(at, at + 7000));
      const saved = hasher.save();
      assert.equal(toHex(saved.subarray(0, 64)), c.head);
      assert.equal(saved.length, c.len);
      assert.equal(toHex(hash(saved)), c.hash);
      const again = createHasher().restore(saved);
      assert.deepEqual(again.save(), saved);
      if (c.offset > 0) {
        assert.throws(() => again.digest(), { code: "ERR_SUBTREE" });
        assert.throws(() => again.xof(), { code: "ERR_SUBTREE" });
        continue;
      }
      const more = input.subarray(c.count, c.count + 5000);
      assert.equal(again.digest("hex"), hasher.digest("hex"));
      assert.equal(again.update(more).digest("hex"), hasher.update(more).digest("hex"));
    }
  });

  test(`${name}: text is hashed as UTF-8, whatever its length`, () => {
    const encoder = new TextEncoder();
    for (const text of ["", "abc", "na\u00efve \u2713 \u{1f600}", "\u{1f600}".repeat(40000), "\ud800"]) {
      assert.deepEqual(hash(text), hash(encoder.encode(text)));
      assert.deepEqual(createHasher().update(text).digest(), hash(text));
    }
  });

  test(`${name}: a digest as bytes, hexadecimal and base64`, () => {
    const hasher = createHasher().update("abc");
    const hex = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";
    assert.deepEqual(hasher.digest(), fromHex(hex));
    assert.deepEqual(hasher.digest("bytes"), fromHex(hex));
    assert.equal(hasher.digest("hex"), hex);
    assert.deepEqual(Uint8Array.from(atob(hasher.digest("base64")), (c) => c.charCodeAt(0)), fromHex(hex));
    // Around the pieces that text is made from.
    for (const length of [0, 1, 2, 3, 4, 12_286, 12_287, 12_288, 12_289, 12_290, 24_576, 24_577, 50_000]) {
      const bytes = hasher.digest("bytes", { length });
      const text = hasher.digest("hex", { length });
      assert.equal(text, Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(""));
      assert.equal(toHex(bytes), text);
      assert.equal(hasher.digest("base64", { length }), btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")));
    }
    assert.equal(toHex(Uint8Array.from({ length: 256 }, (_, i) => i)), Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, "0")).join(""));
  });
}
