//! How much of the stack the kernels take. In a build without optimization, as a user's tests are,
//! it is much more.

use crate::{KeyCache, PrecomputedTables, SignItem, SigningKey, Verdict, VerifyItem, cofactored, kernel};

/// As much as the first thread of a program has on Windows. A thread of Rust has twice as much.
const STACK: usize = 1 << 20;

/// A stack that is too small ends the program.
#[test]
fn a_small_stack_is_enough() {
    let work = || {
        let signer = SigningKey::from_seed(&[7; 32]);
        for kernel in kernel::available() {
            for count in [1, 2, 3, 8, 20] {
                let mut signatures = vec![[0; 64]; count];
                kernel
                    .sign_many_into(&vec![SignItem { key: &signer, message: b"a" }; count], &mut signatures);
                let (public_key, message) = (signer.public_key(), b"a".as_slice());
                let items: Vec<_> = signatures
                    .iter()
                    .map(|signature| VerifyItem { public_key, message, signature })
                    .collect();
                let mut verdicts = vec![Verdict::Valid; count];
                kernel.verify_many_into(&items, &mut verdicts);
                assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Valid), "{kernel}, {count}");
                cofactored::verify_many_by(kernel, &items, &mut verdicts);
                assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Valid), "{kernel}, {count}");
                for tables in [PrecomputedTables::One, PrecomputedTables::Two, PrecomputedTables::Four] {
                    let verdicts = KeyCache::with_kernel(kernel, &[*public_key], tables).verify_many(&items);
                    assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Valid), "{kernel}, {count}");
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        thread.spawn_scoped(scope, work).unwrap().join().unwrap();
    });
}
