//! x
use bulla_kms::*;
use std::time::Instant;
fn main() {
    let dir = std::env::temp_dir().join("kms-scratch");
    let _ = std::fs::remove_dir_all(&dir);
    let kf = dir.join("key");
    KeyFile::create(&kf).unwrap();
    let un = Unlock::KeyFile(kf);
    let p = dir.join("store");
    let ks = Keystore::create(&p, &un).unwrap();
    let k = ks
        .create_key(NewKey {
            tenant: "local".parse().unwrap(),
            purpose: "files".parse().unwrap(),
            algorithm: Algorithm::Ed25519,
            label: None,
        })
        .unwrap();
    println!("size {}", std::fs::metadata(&p).unwrap().len());
    let t = Instant::now();
    for _ in 0..100 {
        ks.rotate(k.family()).unwrap();
    }
    println!("rotate {:?}", t.elapsed() / 100);
    let t = Instant::now();
    for _ in 0..2000 {
        ks.sign(k.family(), &[1; 128]).unwrap();
    }
    println!("sign {:?}", t.elapsed() / 2000);
    let s = ks.sign(k.family(), &[1; 128]).unwrap();
    let t = Instant::now();
    for _ in 0..2000 {
        assert!(ks.verify(&s.key, &[1; 128], &s.bytes).unwrap().is_valid());
    }
    println!("verify {:?}", t.elapsed() / 2000);
    println!("size {}", std::fs::metadata(&p).unwrap().len());
    drop(ks);
    println!("size closed {}", std::fs::metadata(&p).unwrap().len());
    let a = std::fs::read(&p).unwrap();
    let t = Instant::now();
    drop(Keystore::open(&p, &un).unwrap());
    println!("open {:?}", t.elapsed());
    let b = std::fs::read(&p).unwrap();
    println!("open changes file: {} bytes", a.iter().zip(&b).filter(|(x, y)| x != y).count());
    let t = Instant::now();
    Keystore::create(&dir.join("s2"), &Unlock::Passphrase("abc".into())).unwrap();
    println!("create pass {:?}", t.elapsed());
    // corrupt
    let mut outcomes = std::collections::BTreeMap::<String, u32>::new();
    let q = dir.join("bad");
    let mut x = 88172645463325252u64;
    for i in 0..40usize {
        let mut c = a.clone();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        let pos = if i < 400 { i } else { (x as usize) % c.len() };
        match i % 5 {
            4 => {
                c.truncate(pos);
            }
            3 => {
                let e = (pos + 512).min(c.len());
                c[pos..e].fill(0xff);
            }
            _ => c[pos] ^= 1 << (x >> 60 & 7),
        }
        std::fs::write(&q, &c).unwrap();
        let r = std::panic::catch_unwind(|| {
            Keystore::open(&q, &un)
                .map(|k| k.attest(k.list().unwrap()[0].key.clone().as_ref_()).unwrap().head)
        });
        let key = match r {
            Ok(Ok(h)) => format!("ok {h}"),
            Ok(Err(e)) => format!("{} {}", e.code, &e.message[..40.min(e.message.len())]),
            Err(p) => format!(
                "PANIC {}",
                p.downcast_ref::<String>()
                    .cloned()
                    .or(p.downcast_ref::<&str>().map(|s| s.to_string()))
                    .unwrap_or_default()
                    .chars()
                    .take(90)
                    .collect::<String>()
            ),
        };
        *outcomes.entry(key).or_default() += 1;
    }
    for (k, v) in outcomes {
        println!("{v:6} {k}");
    }
}
trait R {
    fn as_ref_(&self) -> &Self;
}
impl R for KeyFamily {
    fn as_ref_(&self) -> &Self {
        self
    }
}
