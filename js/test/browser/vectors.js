// The shared vectors, fetched: test/support/vectors.js for browsers.

/** @param {string} name such as "blake3.json" */
export async function vectors(name) {
  const response = await fetch(`/vectors/${name}`);
  if (!response.ok) throw new Error(`${name}: ${response.status}`);
  return response.json();
}
