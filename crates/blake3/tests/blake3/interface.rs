//! The interface that the ecosystem knows: digests as text, subtrees, traits.

use crate::support::{CONTEXT, KEY, input};
use bulla_blake3::hazmat::{self, HasherExt, Mode};
use bulla_blake3::kernel::{self, Kernel};
use bulla_blake3::{DeriveKey, Hash, Hasher, derive_key, hash, keyed_hash};

#[test]
fn digests_are_text_and_back() {
    let digest = hash(b"abc");
    let hex = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";
    assert_eq!(digest.to_hex().as_str(), hex);
    assert_eq!(digest.to_string(), hex);
    assert_eq!(format!("{digest:?}"), format!("Hash(\"{hex}\")"));
    assert_eq!(Hash::from_hex(hex).expect("hex"), digest);
    assert_eq!(hex.to_uppercase().parse::<Hash>().expect("hex"), digest);
    assert_eq!(
        Hash::from_hex(&hex[1..]).expect_err("short").to_string(),
        "a digest has 64 hexadecimal digits, and this text has 63 bytes"
    );
    assert_eq!(
        Hash::from_hex(hex.replace('6', "g")).expect_err("no hex").to_string(),
        "'g' is not a hexadecimal digit"
    );
    assert!(Hash::from_slice(&[0; 31]).is_err());
    assert_eq!(Hash::from_slice(digest.as_slice()).expect("32 bytes"), digest);
    assert_eq!(digest, *digest.as_bytes());
    assert_eq!(digest, digest.as_bytes()[..]);
    assert_ne!(digest, hash(b"abd"));
}

#[test]
fn modes_differ_and_agree_with_the_official_crate() {
    let data = input(5000);
    assert_eq!(keyed_hash(&KEY, &data).as_bytes(), blake3::keyed_hash(&KEY, &data).as_bytes());
    assert_eq!(derive_key(CONTEXT, &data), blake3::derive_key(CONTEXT, &data));
    assert_eq!(DeriveKey::new(CONTEXT).derive(&data), blake3::derive_key(CONTEXT, &data));
    let mut hasher = DeriveKey::new(CONTEXT).hasher();
    assert_eq!(*hasher.update(&data).finalize().as_bytes(), blake3::derive_key(CONTEXT, &data));
}

#[test]
fn subtrees_put_together_are_the_whole() {
    let data = input(200_000);
    for mode in [Mode::Hash, Mode::KeyedHash(&KEY), Mode::DeriveKeyMaterial(&KEY)] {
        for len in [1025, 2048, 2049, 16_384, 40_000, 65_536, 65_537, 200_000] {
            let left = hazmat::left_subtree_len(len) as usize;
            let value = |from: usize, to: usize| {
                let mut hasher = kernel::active().hasher(mode);
                hasher.set_input_offset(from as u64).update(&data[from..to]).finalize_non_root()
            };
            let (left, right) = (value(0, left), value(left, len as usize));
            let whole = kernel::active().hash_in(mode, &data[..len as usize]);
            assert_eq!(hazmat::merge_subtrees_root(&left, &right, mode), whole, "{len} bytes");
            let mut output = [0; 32];
            hazmat::merge_subtrees_root_xof(&left, &right, mode).fill(&mut output);
            assert_eq!(output, *whole.as_bytes());
        }
    }
    assert_eq!(hazmat::max_subtree_len(0), None);
    assert_eq!(hazmat::max_subtree_len(3 * 1024), Some(1024));
    assert_eq!(hazmat::max_subtree_len(64 * 1024), Some(64 * 1024));
    assert_eq!(hazmat::hash_derive_key_context(CONTEXT), blake3::hazmat::hash_derive_key_context(CONTEXT));
}

/// `guts` of the official crate, from which programs older than `hazmat` take their trees.
#[allow(deprecated, reason = "theirs is, and still in use")]
#[test]
fn guts_are_those_of_the_official_crate() {
    use blake3::guts as theirs;
    use bulla_blake3::guts as ours;

    assert_eq!((ours::BLOCK_LEN, ours::CHUNK_LEN), (theirs::BLOCK_LEN, theirs::CHUNK_LEN));
    let data = input(1024);
    for len in [0, 1, 64, 65, 1000, 1024] {
        for (counter, is_root) in [(0, true), (0, false), (1, false), (u64::MAX, false)] {
            let (mut our, mut their) = (ours::ChunkState::new(counter), theirs::ChunkState::new(counter));
            our.update(&data[..len / 2]).update(&data[len / 2..len]);
            their.update(&data[..len / 2]).update(&data[len / 2..len]);
            assert_eq!(our.len(), their.len());
            let value = our.clone().finalize(is_root);
            assert_eq!(value.as_bytes(), their.finalize(is_root).as_bytes(), "{len} bytes at {counter}");
            let (left, right) = (hash(b"left"), blake3::hash(b"left"));
            let (ours, theirs) = (
                ours::parent_cv(&left, &value, is_root),
                theirs::parent_cv(&right, &(*value.as_bytes()).into(), is_root),
            );
            assert_eq!(ours.as_bytes(), theirs.as_bytes());
        }
    }
    assert!(!format!("{:?}", ours::ChunkState::new(0).update(b"secret")).contains("secret"));
}

#[test]
#[should_panic(expected = "a chunk holds 1024 bytes")]
fn a_chunk_of_guts_cannot_outgrow_its_place() {
    bulla_blake3::guts::ChunkState::new(0).update(&[0; 1000]).update(&[0; 25]);
}

#[test]
#[should_panic(expected = "use finalize_non_root")]
fn a_subtree_has_no_digest() {
    Hasher::new().set_input_offset(1024).finalize();
}

#[test]
#[should_panic(expected = "use finalize_non_root")]
fn a_subtree_has_no_extended_output() {
    Hasher::new().set_input_offset(1024).finalize_xof();
}

#[test]
#[should_panic(expected = "holds at most 1024 bytes")]
fn a_subtree_cannot_outgrow_its_place() {
    Hasher::new().set_input_offset(1024).update(&[0; 1025]);
}

#[test]
fn kernels_have_names() {
    assert!(kernel::available().any(|kernel| kernel.name() == "portable"));
    assert_eq!(Kernel::by_name("portable").expect("always there").to_string(), "portable");
    let unknown = Kernel::by_name("x86_64/avx1024").expect_err("nobody has it").to_string();
    for kernel in kernel::available() {
        assert!(unknown.contains(kernel.name()), "{unknown}");
    }
}

#[test]
fn a_hasher_is_cheap_to_have_and_shows_no_secret() {
    assert!(size_of::<Hasher>() <= 3 * 1024, "{} bytes", size_of::<Hasher>());
    let shown = format!("{:?} {:?}", Hasher::new_keyed(&KEY), DeriveKey::new(CONTEXT));
    assert!(!shown.contains("whats") && !shown.contains("119"), "{shown}");
}

#[test]
fn the_traits_of_digest() {
    use digest::{ExtendableOutput, FixedOutputReset, Mac, Update, XofReader};
    let expected = blake3::keyed_hash(&KEY, b"message");
    let mut mac = <Hasher as digest::KeyInit>::new_from_slice(&KEY).expect("32 bytes");
    Mac::update(&mut mac, b"message");
    mac.clone().verify_slice(expected.as_bytes()).expect("the right tag");
    assert!(mac.verify_slice(&[0; 32]).is_err());

    let mut hasher = Hasher::default();
    Update::update(&mut hasher, b"abc");
    assert_eq!(hasher.finalize_fixed_reset()[..], *hash(b"abc").as_bytes());
    Update::update(&mut hasher, b"abc");
    let mut output = [0; 100];
    ExtendableOutput::finalize_xof(hasher).read(&mut output);
    assert_eq!(output[..32], *hash(b"abc").as_bytes());
    assert_eq!(<Hasher as digest::Digest>::digest(b"abc")[..], *hash(b"abc").as_bytes());
}

#[test]
fn a_digest_serializes_and_is_zeroized() {
    use zeroize::Zeroize;
    let digest = hash(b"abc");
    let json = serde_json::to_string(&digest).expect("bytes");
    assert_eq!(serde_json::from_str::<Hash>(&json).expect("bytes"), digest);
    let mut cleared = digest;
    cleared.zeroize();
    assert_eq!(cleared, [0; 32]);
    let mut hasher = Hasher::new_keyed(&KEY);
    hasher.update(&input(50_000)).zeroize();
    assert_eq!(hasher.count(), 0);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_variable_forces_a_kernel_or_names_those_there_are() {
    if let Ok(expected) = std::env::var("BULLA_TEST_EXPECT_KERNEL") {
        // The child: see below.
        assert_eq!(kernel::active().name(), expected);
        hash(b"by the forced kernel");
        return;
    }
    let run = |force: &str, expect: &str| {
        std::process::Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "interface::the_variable_forces_a_kernel_or_names_those_there_are"])
            .env(kernel::FORCE_VARIABLE, force)
            .env("BULLA_TEST_EXPECT_KERNEL", expect)
            .output()
            .expect("this program runs")
    };
    for kernel in kernel::available() {
        assert!(run(kernel.name(), kernel.name()).status.success(), "{kernel}");
    }
    let refused = run("x86_64/mmx", "x86_64/mmx");
    assert!(!refused.status.success());
    let said =
        String::from_utf8_lossy(&refused.stdout).into_owned() + &String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("it has") && said.contains("portable"), "{said}");
}
