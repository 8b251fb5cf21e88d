/**
 * Waits until a condition holds; Playwright's own way to wait evaluates text, which a page's policy
 * forbids.
 *
 * @param {() => Promise<boolean>} holds
 */
export async function until(holds, milliseconds = 60_000) {
  const end = Date.now() + milliseconds;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`still not after ${milliseconds} ms: ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
