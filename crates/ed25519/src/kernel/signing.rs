//! Makes signatures, eight at a time.

use super::lanes::{LaneEngine, digest_alone, digests};
use super::machine::EightMachine;
use crate::generic::comb::Comb;
use crate::generic::point::{Addend, Point};
use crate::generic::sign::Signing;
use crate::generic::table::AffineRow;
use crate::lanes::{EightLanes, LANES, Lanes};
use crate::message::Framed;
use crate::signing_key::SignItem;
use crate::wipe;
use zeroize::zeroize_stack;

/// The number of groups that share an inversion.
const GROUPS: usize = 8;

impl<V: EightLanes + 'static, M: EightMachine<V>> LaneEngine<V, M> {
    /// One signature for each item.
    pub(crate) fn sign_all(&self, domain: &[u8], items: &[SignItem<'_>], out: &mut [[u8; 64]]) {
        for (items, out) in items.chunks(GROUPS * LANES).zip(out.chunks_mut(GROUPS * LANES)) {
            if let ([item], [out]) = (items, &mut *out) {
                self.sign_alone(domain, item, out);
                zeroize_stack::<{ wipe::ONE_GROUP }>();
            } else if items.len() <= LANES {
                self.sign_groups::<1>(domain, items, out);
                zeroize_stack::<{ wipe::ONE_GROUP }>();
            } else {
                self.sign_groups::<GROUPS>(domain, items, out);
                zeroize_stack::<{ wipe::ALL_GROUPS }>();
            }
        }
        self.machine.wipe_registers();
    }

    /// All secrets that this writes are in its own frame and in the frames below it, which the
    /// caller wipes.
    #[inline(never)]
    fn sign_groups<const G: usize>(&self, domain: &[u8], items: &[SignItem<'_>], out: &mut [[u8; 64]]) {
        let machine = self.machine;
        let like = machine.splat(0);
        let empty: &[u8] = &[];
        let mut all = [Signing::new(like); G];
        let all = &mut all[..items.len().div_ceil(LANES)];
        for (signing, items) in all.iter_mut().zip(items.chunks(LANES)) {
            let mut framed = [Framed::new([empty; 4]); LANES];
            let mut words = [[0; LANES]; 4];
            for (lane, item) in items.iter().enumerate() {
                framed[lane] = Framed::new([domain, item.key.prefix(), item.message, empty]);
                for (word, bytes) in words.iter_mut().zip(item.key.scalar().as_chunks().0) {
                    word[lane] = u64::from_le_bytes(*bytes);
                }
            }
            signing.key = words.map(|lanes| like.load(&lanes));
            machine.multiply_nonce(signing, &digests(machine, &mut framed), self.comb());
        }
        machine.encode(all);
        for ((signing, items), out) in all.iter_mut().zip(items.chunks(LANES)).zip(out.chunks_mut(LANES)) {
            write_half(&signing.r, 0, out);
            let mut framed = [Framed::new([empty; 4]); LANES];
            for (lane, (item, signature)) in items.iter().zip(out.iter()).enumerate() {
                framed[lane] = Framed::new([domain, &signature[..32], item.key.public_key(), item.message]);
            }
            machine.finish(signing, &digests(machine, &mut framed));
            write_half(&signing.s, 32, out);
        }
    }

    /// Makes one signature with all lanes. As for [`LaneEngine::sign_groups`], the caller wipes the
    /// stack.
    #[inline(never)]
    fn sign_alone(&self, domain: &[u8], item: &SignItem<'_>, out: &mut [u8; 64]) {
        let machine = self.machine;
        let mut signing = Signing::new(machine.splat(0));
        signing.key = words(item.key.scalar()).map(|word| machine.splat(word));
        let empty: &[u8] = &[];
        let nonce = digest_alone(machine, Framed::new([domain, item.key.prefix(), item.message, empty]));
        machine.multiply_nonce_alone(&mut signing, &nonce, self.comb());
        let (r, s) = out.split_at_mut(32);
        let mut encoding = [0; 4];
        machine.encode_alone(&signing, &mut encoding);
        put_words(&encoding, r);
        machine.finish(
            &mut signing,
            &digest_alone(machine, Framed::new([domain, r, item.key.public_key(), item.message])),
        );
        put_words(&signing.s.map(|word| word.store()[0]), s);
    }

    fn comb(&self) -> &Comb {
        self.comb.get_or_init(|| comb(self.machine))
    }
}

fn words(bytes: &[u8; 32]) -> [u64; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

fn put_words(words: &[u64; 4], to: &mut [u8]) {
    for (bytes, word) in to.as_chunks_mut().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
}

/// Writes the words of every lane's R or S to its signature.
fn write_half<V: Lanes>(words: &[V; 4], at: usize, out: &mut [[u8; 64]]) {
    for (n, lanes) in words.iter().enumerate() {
        for (signature, word) in out.iter_mut().zip(lanes.store()) {
            signature[at + 8 * n..][..8].copy_from_slice(&word.to_le_bytes());
        }
    }
}

/// The table of odd multiples.
fn comb<V: EightLanes, M: EightMachine<V>>(machine: M) -> Box<Comb> {
    let mut base = Point::identity(machine.splat(0));
    machine.base_point(&mut base);
    let mut table = vec![[[0; 16]; 15]; 51];
    for window in &mut table {
        let (mut twice, mut multiple) = (base, base);
        machine.double_times(&mut twice, 1);
        let mut step = Addend { plus: base.z, minus: base.z, t2d: base.z, z2: base.z };
        machine.addend(&twice, &mut step);
        for first in [0, LANES] {
            let mut rows = [AffineRow::EMPTY; LANES];
            machine.next_rows(&mut multiple, &step, &mut rows);
            for (entry, row) in rows.iter().enumerate() {
                for (n, word) in row.0[..15].iter().enumerate() {
                    window[n][first + entry] = *word;
                }
            }
        }
        machine.double_times(&mut base, 5);
    }
    table.into_boxed_slice().try_into().unwrap_or_else(|_| unreachable!("51 windows"))
}
