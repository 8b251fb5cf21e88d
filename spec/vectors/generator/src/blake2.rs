//! BLAKE2: the known answers of the reference code, `testvectors/blake2-kat.json`: each input of 0
//! to 255 bytes, plain, and with a key of full length.
use crate::json::{Value, json};

/// Byte i of inputs and keys is i.
fn counting(n: usize) -> Vec<u8> {
    (0..=255).take(n).collect()
}

/// The digests of all inputs, plain and keyed.
macro_rules! answers {
    ($params:path, $key_len:expr) => {{
        let digests = |key_len: usize| -> Vec<String> {
            let digest = |n| <$params>::new().key(&counting(key_len)).hash(&counting(n)).to_hex().to_string();
            (0..256).map(digest).collect()
        };
        json!({ "hash": digests(0), "keyed_hash": digests($key_len) })
    }};
}

/// In the order of the published file.
pub(crate) fn cases() -> Value {
    use blake2b_simd::KEYBYTES as B;
    use blake2s_simd::KEYBYTES as S;
    json!({
        "source": "crates blake2b_simd 1.0.5 and blake2s_simd 1.0.5; byte i of every input and key is i; the input of the n-th digest has n bytes",
        "blake2s": answers!(blake2s_simd::Params, S),
        "blake2b": answers!(blake2b_simd::Params, B),
        "blake2sp": answers!(blake2s_simd::blake2sp::Params, S),
        "blake2bp": answers!(blake2b_simd::blake2bp::Params, B),
    })
}
