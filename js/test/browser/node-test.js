// What the shared tests use of node:test, for browsers: a list that whoever started the page goes
// through.

/** @type {{ name: string, run: () => unknown }[]} */
const tests = [];

/** @param {string} name @param {() => unknown} run */
export function test(name, run) {
  tests.push({ name, run });
}

Object.assign(globalThis, {
  BULLA_TESTS: {
    names: () => tests.map(({ name }) => name),
    /** Runs the i-th; returns the text of its error, or nothing.
     * @param {number} i */
    async run(i) {
      try {
        await /** @type {{ run: () => unknown }} */ (tests[i]).run();
      } catch (error) {
        return `${error}\n${/** @type {any} */ (error)?.stack}`;
      }
    },
  },
});
