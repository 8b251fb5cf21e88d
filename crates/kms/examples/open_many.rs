//! Measures the time to open a keystore with many keys, and the memory that they take.
//!
//! `cargo run --release -p bulla-kms --example open_many -- [KEYS] [FILE] [TENANTS]`: makes the
//! keystore in FILE (or in a temporary folder) unless it exists, and opens it five times. The keys
//! are divided among so many tenants; it also measures a signature, and a list of the keys of one
//! tenant. Pin it to one core with `taskset -c 0`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use bulla_kms::{Algorithm, KeyFile, Keystore, Name, NewKey, Result, Unlock};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let keys: usize = arguments.next().map_or(100_000, |keys| keys.parse().expect("KEYS is a number"));
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = arguments.next().map_or_else(|| folder.path().join("keystore"), PathBuf::from);
    let tenants: usize = arguments.next().map_or(1, |tenants| tenants.parse().expect("TENANTS is a number"));
    let key_file = path.with_extension("key");
    let unlock = Unlock::KeyFile(key_file.clone());
    if !path.exists() {
        let start = Instant::now();
        KeyFile::create(&key_file)?;
        let keystore = Keystore::create(&path, &unlock)?;
        for number in 0..keys {
            let tenant = format!("tenant-{}", number % tenants);
            let new = NewKey::new(tenant.parse()?, "files".parse()?, Algorithm::Ed25519);
            keystore.create_key(new.label(format!("key-{number}").parse()?))?;
        }
        println!("made {keys} keys in {:.1?}", start.elapsed());
    }
    let size = std::fs::metadata(&path).map_or(0, |data| data.len());
    println!("the file has {size} bytes, {} a key", size as usize / keys.max(1));
    let mut times = Vec::new();
    for _ in 0..5 {
        let before = resident();
        let (start, busy) = (Instant::now(), processor_time());
        let keystore = Keystore::open(&path, &unlock)?;
        let (took, busy) = (start.elapsed(), processor_time() - busy);
        let memory = resident().saturating_sub(before) / keys.max(1);
        println!("opened {keys} keys in {took:.1?}, {busy:.1?} of processor time; {memory} bytes a key");
        measure_one_tenant(&keystore)?;
        let found = keystore.list()?.len();
        assert_eq!(found, keys, "the keystore has other keys than asked for");
        times.push(took);
    }
    times.sort_unstable();
    println!(
        "median {:.1?}, {:.2?} a key",
        times[2],
        times[2].div_f64(keys.max(1) as f64).max(Duration::ZERO)
    );
    Ok(())
}

/// Measures what a caller of one tenant asks for, among the keys of all.
fn measure_one_tenant(keystore: &Keystore) -> Result<()> {
    let tenant: Name = "tenant-0".parse()?;
    let label: Name = "key-0".parse()?;
    let start = Instant::now();
    let key = keystore.find(&tenant, &label)?.expect("the first key has this label");
    keystore.sign(&key, b"the key is opened when it first signs")?;
    let first = start.elapsed();
    let start = Instant::now();
    for _ in 0..SIGNATURES {
        let key = keystore.find(&tenant, &label)?.expect("the first key has this label");
        keystore.sign(&key, b"a message")?;
    }
    let signed = start.elapsed() / SIGNATURES;
    // After the signatures: the allocator still orders what the list of all keys gave back.
    let start = Instant::now();
    let page = keystore.list_page(&tenant, None, 100, &|_| true);
    let listed = start.elapsed();
    println!(
        "listed {} keys of one tenant in {listed:.1?}; the first signature takes {first:.1?}, others {signed:.1?}",
        page.len()
    );
    Ok(())
}

/// How many signatures are timed.
const SIGNATURES: u32 = 10_000;

/// The time that all threads of this process have used a processor.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// The memory that this process uses, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: usize = status.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * 4096
}
