//! Makes signatures, eight at a time.

use super::lane_engine::{LaneEngine, digest_one, digests};
use super::lane_steps::EightLaneSteps;
use crate::generic::point::{Addend, Point};
use crate::generic::sha512::FramedMessage;
use crate::generic::sign::{Comb, Signing};
use crate::generic::table::AffineRow;
use crate::lanes::{EightLanes, LANES, Lanes};
use crate::signing_key::SignItem;
use crate::wipe;
use zeroize::zeroize_stack;

/// The number of groups that share an inversion.
const MAX_GROUPS: usize = 8;

impl<V: EightLanes + 'static, M: EightLaneSteps<V>> LaneEngine<V, M> {
    /// One signature for each item.
    pub(crate) fn sign_all(&self, domain: &[u8], items: &[SignItem<'_>], out: &mut [[u8; 64]]) {
        for (items, out) in items.chunks(MAX_GROUPS * LANES).zip(out.chunks_mut(MAX_GROUPS * LANES)) {
            if let ([item], [out]) = (items, &mut *out) {
                self.sign_one(domain, item, out);
                zeroize_stack::<{ wipe::GROUP_STACK_LEN }>();
            } else if items.len() <= LANES {
                self.sign_groups::<1>(domain, items, out);
                zeroize_stack::<{ wipe::GROUP_STACK_LEN }>();
            } else {
                self.sign_groups::<MAX_GROUPS>(domain, items, out);
                zeroize_stack::<{ wipe::GROUPS_STACK_LEN }>();
            }
        }
        self.steps.wipe_registers();
    }

    /// All secrets that this writes are in its own frame and in the frames below it, which the
    /// caller wipes.
    #[inline(never)]
    fn sign_groups<const G: usize>(&self, domain: &[u8], items: &[SignItem<'_>], out: &mut [[u8; 64]]) {
        let steps = self.steps;
        let like = steps.splat(0);
        let empty: &[u8] = &[];
        let mut all = [Signing::new(like); G];
        let all = &mut all[..items.len().div_ceil(LANES)];
        for (signing, items) in all.iter_mut().zip(items.chunks(LANES)) {
            let mut framed = [FramedMessage::new([empty; 4]); LANES];
            let mut words = [[0; LANES]; 4];
            for (lane, item) in items.iter().enumerate() {
                framed[lane] = FramedMessage::new([domain, item.key.prefix(), item.message, empty]);
                for (word, bytes) in words.iter_mut().zip(item.key.scalar().as_chunks().0) {
                    word[lane] = u64::from_le_bytes(*bytes);
                }
            }
            signing.key = words.map(|lanes| like.load(&lanes));
            steps.multiply_nonce(signing, &digests(steps, &mut framed), self.comb());
        }
        steps.encode(all);
        for ((signing, items), out) in all.iter_mut().zip(items.chunks(LANES)).zip(out.chunks_mut(LANES)) {
            write_half(&signing.r, 0, out);
            let mut framed = [FramedMessage::new([empty; 4]); LANES];
            for (lane, (item, signature)) in items.iter().zip(out.iter()).enumerate() {
                framed[lane] =
                    FramedMessage::new([domain, &signature[..32], item.key.public_key(), item.message]);
            }
            steps.finish(signing, &digests(steps, &mut framed));
            write_half(&signing.s, 32, out);
        }
    }

    /// Makes one signature with all lanes. As for [`LaneEngine::sign_groups`], the caller wipes the
    /// stack.
    #[inline(never)]
    fn sign_one(&self, domain: &[u8], item: &SignItem<'_>, out: &mut [u8; 64]) {
        let steps = self.steps;
        let mut signing = Signing::new(steps.splat(0));
        signing.key = words(item.key.scalar()).map(|word| steps.splat(word));
        let empty: &[u8] = &[];
        let nonce = digest_one(steps, FramedMessage::new([domain, item.key.prefix(), item.message, empty]));
        steps.multiply_one_nonce(&mut signing, &nonce, self.comb());
        let (r, s) = out.split_at_mut(32);
        let mut encoding = [0; 4];
        steps.encode_one(&signing, &mut encoding);
        put_words(&encoding, r);
        steps.finish(
            &mut signing,
            &digest_one(steps, FramedMessage::new([domain, r, item.key.public_key(), item.message])),
        );
        put_words(&signing.s.map(|word| word.store()[0]), s);
    }

    fn comb(&self) -> &Comb {
        self.comb.get_or_init(|| comb(self.steps))
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
fn comb<V: EightLanes, M: EightLaneSteps<V>>(steps: M) -> Box<Comb> {
    let mut base = Point::identity(steps.splat(0));
    steps.base_point(&mut base);
    let mut table = vec![[[0; 16]; 15]; 51];
    for window in &mut table {
        let (mut twice, mut multiple) = (base, base);
        steps.double_times(&mut twice, 1);
        let mut step = Addend { plus: base.z, minus: base.z, t2d: base.z, z2: base.z };
        steps.addend(&twice, &mut step);
        for first in [0, LANES] {
            let mut rows = [AffineRow::EMPTY; LANES];
            steps.next_rows(&mut multiple, &step, &mut rows);
            for (entry, row) in rows.iter().enumerate() {
                for (n, word) in row.0[..15].iter().enumerate() {
                    window[n][first + entry] = *word;
                }
            }
        }
        steps.double_times(&mut base, 5);
    }
    table.into_boxed_slice().try_into().unwrap_or_else(|_| unreachable!("51 windows"))
}
