//! Callers of all nodes who sign at the same time. For figures, with how many callers and how large
//! batches: `BULLA_GROUP_RATE_SECONDS=10 BULLA_GROUP_CALLERS=3 BULLA_GROUP_BATCH=64 cargo test -p
//! bulla-server callers -- --nocapture`. `BULLA_GROUP_NODES=9 BULLA_GROUP_THRESHOLD=5` takes other
//! nodes than three, of which two sign, and `BULLA_GROUP_DELAY_MICROSECONDS=1000` lets everything
//! between them take 1 ms longer, each way.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{sleep, spawn};

use super::*;

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// An address that leads to another one, by a way that takes so long.
fn far_address(target: SocketAddr, delay: Duration) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    spawn(move || {
        for near in listener.incoming().flatten() {
            let Ok(far) = TcpStream::connect(target) else { continue };
            carry(near.try_clone().unwrap(), far.try_clone().unwrap(), delay);
            carry(far, near, delay);
        }
    });
    address
}

/// Carries what comes from one to the other. Much can be under way at the same time.
fn carry(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    to.set_nodelay(true).unwrap();
    let (send, receive) = mpsc::channel();
    spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut bytes) {
            if send.send((Instant::now() + delay, bytes[..length].to_vec())).is_err() {
                break;
            }
        }
    });
    spawn(move || {
        for (arrives, bytes) in receive {
            sleep(arrives.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        drop(to.shutdown(Shutdown::Both));
    });
}

#[test]
fn callers_of_all_nodes_sign_batches_at_the_same_time() {
    let (nodes, threshold) = (number("BULLA_GROUP_NODES", 3) as usize, number("BULLA_GROUP_THRESHOLD", 2));
    let folder = tempfile::tempdir().unwrap();
    let mut configs = configs(&folder, nodes);
    configs.iter_mut().for_each(|config| config.threshold = threshold as u16);
    let delay = Duration::from_micros(number("BULLA_GROUP_DELAY_MICROSECONDS", 0));
    for peer in configs.iter_mut().flat_map(|config| &mut config.peer).filter(|_| !delay.is_zero()) {
        peer.address = far_address(peer.address.parse().unwrap(), delay).to_string();
    }
    let three = Three::start_with(folder, configs);
    let callers = number("BULLA_GROUP_CALLERS", 3) as usize;
    let batch = number("BULLA_GROUP_BATCH", 64);
    let length = Duration::from_secs(number("BULLA_GROUP_RATE_SECONDS", 0));
    let (next, latencies) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for caller in 0..callers {
            let (three, next, latencies) = (&three, &next, &latencies);
            scope.spawn(move || {
                let (backend, key) = (three.node(caller % nodes).backend(), three.key(caller % nodes));
                // At least twice: then all nonces were told in advance.
                for round in 0.. {
                    if round >= 2 && begin.elapsed() >= length {
                        break;
                    }
                    let first = next.fetch_add(batch, Ordering::Relaxed);
                    let messages: Vec<_> = (first..first + batch).map(u64::to_be_bytes).collect();
                    let requests: Vec<_> =
                        messages.iter().map(|message| SignRequest::new(&*key, message)).collect();
                    let start = Instant::now();
                    let signatures = backend.sign_many(Algorithm::Ed25519, &requests);
                    latencies.lock().unwrap().push(start.elapsed());
                    let some =
                        messages.iter().zip(signatures).map(|(message, made)| (message, made.unwrap()));
                    // To verify all of them would be half of a measurement.
                    let checked = if length.is_zero() { usize::MAX } else { 1 };
                    for (message, signature) in some.take(checked) {
                        assert!(three.public_key.verify(message, &signature).is_valid());
                    }
                }
            });
        }
    });
    let (seconds, made) = (begin.elapsed().as_secs_f64(), next.load(Ordering::Relaxed));
    let mut latencies = latencies.into_inner().unwrap();
    latencies.sort_unstable();
    println!(
        "{threshold} of {nodes} nodes, {callers} callers, batches of {batch}: {:.0} signatures/s, p50 {:?} for a batch",
        made as f64 / seconds,
        latencies[latencies.len() / 2],
    );
    assert!(made >= 2 * batch * callers as u64);
}
