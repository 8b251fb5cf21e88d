// Runs whose every figure is known.

const SIZES = [0, 64, 256, 1024, 4096, 65536, 1048576];

/** @param {number} middle @param {number} launches */
function against(middle, launches) {
  const off = [-0.02, -0.01, 0, 0, 0, 0, 0, 0.01, 0.02];
  return {
    ratio: /** @type {[number, number, number]} */ ([middle - 0.05, middle, middle + 0.05]),
    launches: off.slice(0, launches).map((off) => middle * (1 + off)),
  };
}

/** @param {string} name @param {number} bytes @param {number[]} ratios @param {number} launches */
export function found(name, bytes, ratios, launches) {
  const ns = 40 + bytes / 5;
  const worst = Math.min(...ratios);
  const even = Math.abs(worst - 1) <= 0.01;
  return {
    case: name,
    bytes,
    threads: 1,
    unit: bytes === 0 ? "call" : "byte",
    count: bytes || 1,
    ghz: 3,
    ns,
    // Ours, or the first peer where it is the faster: no other peer comes near.
    fastest: worst < 1 ? { peer: 0, lead: 1 / worst, even: [] } : { peer: null, lead: worst, even: even ? [0] : [] },
    control: [0.998, 1, 1.002],
    controls: new Array(launches).fill(1),
    disturbed: 0.02,
    against: ratios.map((ratio, peer) => ({ peer, ns: ns * ratio, ...against(ratio, launches), limit: 1 / 1.02, verdict: "pass" })),
  };
}

/** @param {Record<string, unknown>} other */
function run(other) {
  return {
    suite: "oneshot", lane: "lane-a", forced: "", kernel: "x86_64/avx2", implementation: "bulla", version: "0.1.0", cpu: "A Processor",
    cores: 2, modeled: [], features: ["avx2"], ghz: 3, toolchain: "rustc 1.95.0", flags: "", dirty: false, launches: 9, load: 0.5, disturbed: 0.02,
    peers: ["official 1.0.0", "another 2.1.0"],
    ...other,
  };
}

/**
 * Two runs of one suite, of which the newer has one loss and one even case, and a run of another
 * without lane and sizes.
 */
export function madeUp() {
  const hash = (/** @type {number} */ most) =>
    SIZES.map((bytes) => found(`hash/${bytes}`, bytes, [bytes === 1024 ? 0.8 : bytes === 4096 ? 1.005 : 1.25, most], 9));
  const keyed = [64, 1024].map((bytes) => found(`keyed/${bytes}`, bytes, [1.5, 2], 9));
  return {
    version: 3,
    even: 0.01,
    lanes: [{ name: "lane-a", about: "Processor A, another: the lane of the test" }],
    suites: [{ name: "oneshot", title: "One call", about: "One call hashes one input." }],
    machines: [
      {
        lane: "lane-a", cpus: ["A Processor"], suites: 1, count: { fastest: 7, even: 1, slower: 1 },
        main: {
          run: 2, group: "hash", count: { fastest: 5, even: 1, slower: 1 }, least: { case: "hash/1024", ratio: 0.8 }, most: { case: "hash/64", ratio: 1.25 },
        },
      },
      {
        lane: "", cpus: ["A Processor"], suites: 1, count: { fastest: 2, even: 0, slower: 0 },
        main: {
          run: 1, group: "stream", count: { fastest: 2, even: 0, slower: 0 }, least: { case: "stream/small", ratio: 1.3 }, most: { case: "stream/large", ratio: 1.4 },
        },
      },
    ],
    losses: [{ run: 2, case: "hash/1024", peer: 0, lost: 1, of: 18 }],
    runs: [
      run({ run: "2026-01-01T08:00:00Z-aaaa", commit: "a".repeat(40), cases: [...hash(1.4), ...keyed] }),
      run({
        run: "2026-01-02T08:00:00Z-bbbb", suite: "go", lane: "", commit: "", launches: 1, peers: ["zeebo 0.2.4"],
        cases: [found("stream/small", 100, [1.3], 1), found("stream/large", 1000, [1.4], 1)],
      }),
      run({ run: "2026-01-03T08:00:00Z-cccc", commit: "c".repeat(40), dirty: true, cases: [...hash(1.5), ...keyed] }),
    ],
  };
}
