// What the shared tests use of node:assert/strict, for browsers.

class AssertionError extends Error {
  name = "AssertionError";
}

/** @param {unknown} holds @param {string} message */
function check(holds, message) {
  if (!holds) throw new AssertionError(message);
}

/** @param {unknown} value */
function show(value) {
  try {
    return String(typeof value === "object" ? JSON.stringify(value) : value).slice(0, 200);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

/** The same kind of thing, with the same in it.
 * @param {any} a @param {any} b @returns {boolean} */
function same(a, b) {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
  if (a instanceof Set) return same([...a], [...b]);
  if (a instanceof Map) return same([...a], [...b]);
  if (ArrayBuffer.isView(a)) {
    const [x, y] = [a, b].map((view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength));
    return x.length === y.length && x.every((byte, i) => byte === y[i]);
  }
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && same(a[key], b[key]));
}

/** @param {any} error @param {any} expected @param {string} message */
function checkError(error, expected, message) {
  if (expected === undefined) return;
  if (typeof expected === "function") return check(error instanceof expected, `${message}: another error, ${error}`);
  if (expected instanceof RegExp) return check(expected.test(String(error)), `${message}: another error, ${error}`);
  for (const [key, value] of Object.entries(expected)) {
    const matches = value instanceof RegExp ? value.test(error?.[key]) : same(error?.[key], value);
    check(matches, `${message}: ${key} is ${show(error?.[key])} instead of ${show(value)}`);
  }
}

const assert = {
  /** @param {unknown} value */
  ok(value, message = "not true") {
    check(value, message);
  },

  /** @param {unknown} a @param {unknown} b */
  equal(a, b, message = "not equal") {
    check(Object.is(a, b), `${message}: ${show(a)} instead of ${show(b)}`);
  },

  /** @param {unknown} a @param {unknown} b */
  deepEqual(a, b, message = "not equal") {
    check(same(a, b), `${message}: ${show(a)} instead of ${show(b)}`);
  },

  /** @param {string} text @param {RegExp} pattern */
  doesNotMatch(text, pattern, message = "a match") {
    check(!pattern.test(text), `${message}: ${show(text)}`);
  },

  /** @param {() => unknown} call @param {unknown} [expected] */
  throws(call, expected, message = "throws") {
    try {
      call();
    } catch (error) {
      return checkError(error, expected, message);
    }
    check(false, `${message}: no error, where there should be ${show(expected)}`);
  },

  /** @param {Promise<unknown> | (() => Promise<unknown>)} work @param {unknown} [expected] */
  async rejects(work, expected, message = "rejects") {
    try {
      await (typeof work === "function" ? work() : work);
    } catch (error) {
      return checkError(error, expected, message);
    }
    check(false, `${message}: no error, where there should be ${show(expected)}`);
  },
};

export default assert;
