//! One program, written for `blake2b_simd` or `blake2s_simd`, compiled against ours by a change of
//! the import. It names every public item of theirs, with its types.

/// The program on a library and its parallel mode. `$count` is the type of counts.
macro_rules! program {
    ($name:ident, $library:path, $one:ident, $p:ident, $count:ty) => {
        mod $name {
            use library::many::{HashManyJob, MAX_DEGREE, degree, hash_many, update_many};
            use library::{
                BLOCKBYTES, Hash, KEYBYTES, OUTBYTES, PERSONALBYTES, Params, SALTBYTES, State, $one, $p,
            };
            use std::io::Write;
            use $library as library;

            /// Everything that it computes, as text. Texts of `Debug` may differ between libraries:
            /// they are made, and not returned.
            pub(super) fn run() -> Vec<String> {
                let data: Vec<u8> = (0..3000_u32).map(|i| (i * 31 + 7) as u8).collect();
                let mut said =
                    vec![format!("{OUTBYTES} {KEYBYTES} {SALTBYTES} {PERSONALBYTES} {BLOCKBYTES}")];
                for len in [0, 1, BLOCKBYTES, BLOCKBYTES + 1, data.len()] {
                    let input = &data[..len];
                    one(input, &mut said);
                    pieces(input, &mut said);
                    many(input, &mut said);
                    parallel(input, &mut said);
                }
                said
            }

            fn one(input: &[u8], said: &mut Vec<String>) {
                let plain: Hash = $one(input);
                let mut params: Params = Params::new();
                let chained: &mut Params = params
                    .hash_length(OUTBYTES / 2)
                    .key(b"key")
                    .salt(&[1; SALTBYTES])
                    .personal(&[2; PERSONALBYTES])
                    .fanout(2_u8)
                    .max_depth(3_u8)
                    .max_leaf_length(4_u32)
                    .node_offset(5_u64)
                    .node_depth(6_u8)
                    .inner_hash_length(7_usize)
                    .last_node(true);
                let tuned: Hash = chained.hash(input);
                let cloned: Hash = params.clone().to_state().update(input).finalize();
                assert_eq!(tuned, cloned);
                assert_eq!(plain, Params::default().hash(input));
                let array: &[u8; OUTBYTES] = plain.as_array();
                let bytes: &[u8] = plain.as_bytes();
                assert!(Hash::from(array) == plain && Hash::from(*array) == plain && plain == *bytes);
                let (hex, copied): (_, Hash) = (plain.to_hex(), plain);
                let (text, reference): (&str, &[u8]) = (&hex, copied.as_ref());
                assert_eq!(reference, bytes);
                let _ = format!("{params:?} {plain:?}");
                said.extend([text.to_owned(), tuned.to_hex().to_string()]);
            }

            fn pieces(input: &[u8], said: &mut Vec<String>) {
                let mut state: State = State::new();
                for piece in input.chunks(100) {
                    let _: &mut State = state.update(piece);
                }
                state.write_all(b"written").and_then(|()| state.flush()).unwrap();
                let count: $count = state.count();
                let whole: Hash = state.finalize();
                let last: Hash = state.clone().set_last_node(true).finalize();
                let _ = format!("{state:?} {:?}", State::default());
                said.extend([count.to_string(), whole.to_hex().to_string(), last.to_hex().to_string()]);
            }

            fn many(input: &[u8], said: &mut Vec<String>) {
                assert!(degree() <= MAX_DEGREE);
                let params = Params::new();
                let mut jobs: Vec<HashManyJob<'_>> =
                    input.chunks(700).map(|input| HashManyJob::new(&params, input)).collect();
                hash_many(&mut jobs);
                hash_many(jobs.iter_mut());
                said.extend(jobs.iter().map(|job| job.to_hash().to_hex().to_string()));
                let mut states = vec![State::new(); jobs.len()];
                update_many(states.iter_mut().zip(input.chunks(700)));
                update_many(states.iter_mut().zip(vec![b"more".to_vec(); jobs.len()].iter()));
                said.extend(states.iter().map(|state| state.finalize().to_hex().to_string()));
                let _ = format!("{:?}", jobs.first().cloned());
            }

            fn parallel(input: &[u8], said: &mut Vec<String>) {
                let plain: Hash = $p::$p(input);
                let mut params: $p::Params = $p::Params::new();
                let tuned: Hash = params.hash_length(OUTBYTES - 1).key(b"key").hash(input);
                let mut state: $p::State = params.clone().to_state();
                let _: &mut $p::State = state.update(input);
                state.write_all(b"").and_then(|()| state.flush()).unwrap();
                let count: $count = state.count();
                assert_eq!(state.clone().finalize(), tuned);
                assert_eq!($p::State::default().update(input).finalize(), $p::Params::default().hash(input));
                let _ = format!("{params:?} {state:?} {:?}", $p::State::new());
                said.extend([count.to_string(), plain.to_hex().to_string(), tuned.to_hex().to_string()]);
            }
        }
    };
}

program!(theirs_b, ::blake2b_simd, blake2b, blake2bp, u128);
program!(ours_b, ::bulla_blake2::blake2b, blake2b, blake2bp, u128);
program!(theirs_s, ::blake2s_simd, blake2s, blake2sp, u64);
program!(ours_s, ::bulla_blake2::blake2s, blake2s, blake2sp, u64);

#[test]
fn programs_of_the_peers_compile_and_compute_the_same() {
    assert_eq!(ours_b::run(), theirs_b::run());
    assert_eq!(ours_s::run(), theirs_s::run());
}
