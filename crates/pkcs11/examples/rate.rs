//! How many signatures a second programs get of a module: ours, or another one beside it.
//!
//! ```console
//! $ cargo run --release -p bulla-pkcs11 --example rate -- MODULE TOKEN PIN KEY THREADS SECONDS
//! ```
//!
//! `TOKEN` is the label of the token, `KEY` that of the private key. An empty `PIN` is for a token
//! that needs no login. Each thread has a session of its own, and signs 32 bytes: a message with a
//! key of Ed25519, and a digest with one of ECDSA.

#[path = "../tests/pkcs11/support/raw.rs"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest")]
mod raw;

use cryptoki_sys::{CKA_KEY_TYPE, CKK_EC, CKK_EC_EDWARDS, CKM_ECDSA, CKM_EDDSA, CKO_PRIVATE_KEY};
use raw::{Module, number};
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, token, pin, key, threads, seconds] = arguments.as_slice() else {
        eprintln!("usage: rate MODULE TOKEN PIN KEY THREADS SECONDS");
        std::process::exit(2);
    };
    let threads: usize = threads.parse().expect("a number of threads");
    let time = Duration::from_secs_f64(seconds.parse().expect("a number of seconds"));
    let module = Module::load(Path::new(path));
    module.initialize().expect("it is initialized");
    let slot = module.slot(token);
    let first = module.open(slot).expect("a session");
    if !pin.is_empty() {
        first.login(pin).expect("the PIN is right");
    }
    let object = first.only(CKO_PRIVATE_KEY, key);
    let kind = first.attribute(object, CKA_KEY_TYPE).expect("a type");
    let mechanism = match kind.as_slice() {
        kind if kind == number(&CKK_EC_EDWARDS) => CKM_EDDSA,
        kind if kind == number(&CKK_EC) => CKM_ECDSA,
        _ => panic!("the key {key} is neither one of Ed25519 nor one of ECDSA"),
    };
    let start = Barrier::new(threads);
    let rates = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|_| {
                let session = module.open(slot).expect("a session");
                let start = &start;
                scope.spawn(move || {
                    let sign = || session.sign(mechanism, object, &[7; 32]).expect("a signature");
                    // The first one opens a connection.
                    sign();
                    start.wait();
                    let (begin, mut made) = (Instant::now(), 0_u32);
                    while begin.elapsed() < time {
                        sign();
                        made += 1;
                    }
                    f64::from(made) / begin.elapsed().as_secs_f64()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a rate")).sum::<f64>()
    });
    println!("{rates:.0} signatures a second");
}
