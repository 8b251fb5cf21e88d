//! Hashes: the official cases, and every length.
use crate::input::{CONTEXT, KEY, pattern};
use crate::json::{Value, json};
use blake3::Hasher;

/// The number of output bytes of each official case.
const EXTENDED: usize = 131;
/// The last length of `blake3-lengths.json`: four chunks past two groups of the widest kernel.
const LAST_LENGTH: usize = 36864;
const LENGTHS: [usize; 43] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 63, 64, 65, 127, 128, 129, 1023, 1024, 1025, 2048, 2049, 3072, 3073, 4096,
    4097, 5120, 5121, 6144, 6145, 7168, 7169, 8192, 8193, 16384, 16385, 31744, 65535, 65536, 65537, 102400,
    262144, 262145, 299999, 1048577,
];
/// Positions and lengths of pieces of the output.
const SEEKS: [(u64, usize); 8] = [
    (0, 1),
    (1, 64),
    (63, 2),
    (64, 65),
    (777, 1500),
    (1024, 1024),
    (0xffff_ffff * 64 + 63, 130),
    (u64::MAX - 100, 100),
];

fn hashers() -> [(&'static str, Hasher); 3] {
    [
        ("hash", Hasher::new()),
        ("keyed_hash", Hasher::new_keyed(KEY)),
        ("derive_key", Hasher::new_derive_key(CONTEXT)),
    ]
}

/// The shape of the official `test_vectors.json`, with pieces of the output from odd positions
/// beside it.
pub(crate) fn cases() -> Value {
    let cases: Vec<Value> = LENGTHS
        .iter()
        .map(|&n| {
            let mut case = json!({ "input_len": n });
            for (name, mut hasher) in hashers() {
                let mut out = [0; EXTENDED];
                hasher.update(&pattern(n)).finalize_xof().fill(&mut out);
                case.insert(name, hex::encode(out));
            }
            case
        })
        .collect();
    let pieces: Vec<Value> =
        [0, 3, 1024, 5000].iter().flat_map(|&n| SEEKS.iter().map(move |&seek| piece(n, seek))).collect();
    json!({
        "source": "crate blake3 1.8.7; byte i of every input is i mod 251",
        "key": std::str::from_utf8(KEY).expect("ASCII"),
        "context_string": CONTEXT,
        "cases": cases,
        "output_pieces": pieces,
    })
}

fn piece(input_len: usize, (position, len): (u64, usize)) -> Value {
    let mut out = vec![0; len];
    let mut reader = Hasher::new().update(&pattern(input_len)).finalize_xof();
    reader.set_position(position);
    reader.fill(&mut out);
    json!({ "input_len": input_len, "position": position.to_string(), "len": len, "hash": blake3::hash(&out).to_hex().as_str() })
}

/// For each mode and each run of 1024 lengths, the hash of the concatenation of their 32-byte
/// hashes.
pub(crate) fn lengths() -> Value {
    let input = pattern(LAST_LENGTH);
    let mut runs = Vec::new();
    for from in (0..=LAST_LENGTH).step_by(1024) {
        let to = (from + 1023).min(LAST_LENGTH);
        let mut run = json!({ "from": from, "to": to });
        for (name, hasher) in hashers() {
            let mut all = Hasher::new();
            for n in from..=to {
                all.update(hasher.clone().update(&input[..n]).finalize().as_bytes());
            }
            run.insert(name, all.finalize().to_hex().as_str());
        }
        runs.push(run);
    }
    json!({ "source": "crate blake3 1.8.7; keys, contexts and inputs as in blake3.json", "runs": runs })
}
