//! One signature with all lanes.

use super::halved::Steps;
use super::lanes::LaneEngine;
use super::machine::EightMachine;
use crate::generic::halving::Halved;
use crate::generic::one_element::{Decoded, Decoding, OneElement};
use crate::generic::pair::{Pair, Row};
use crate::generic::single::{BaseRows, EMPTY_OWN_ROWS, Factors, TABLES};
use crate::lanes::EightLanes;

impl<V: EightLanes + 'static, M: EightMachine<V>> Steps for LaneEngine<V, M> {
    fn decode(&self, words: &[[u64; 4]; 2]) -> [Decoded; 2] {
        let decoding = Decoding::new(words);
        let mut powers = [OneElement::ZERO; 2];
        self.machine.root_powers(&self.machine.splat(0), &decoding.uv7, &mut powers);
        decoding.finish(&powers)
    }

    fn is_neutral(&self, points: &[[OneElement; 2]; 2], halved: &Halved, base: &[u64; 4]) -> bool {
        let (mut rows, mut neutral) = (EMPTY_OWN_ROWS, false);
        let like = self.machine.splat(0);
        self.machine.fill_own_rows(&Pair::from_affine(like, points), &mut rows);
        let factors = Factors::new(halved, base);
        self.machine.is_neutral(&like, &factors, &rows, self.base_rows(), &mut neutral);
        neutral
    }
}

impl<V: EightLanes + 'static, M: EightMachine<V>> LaneEngine<V, M> {
    /// The multiples of the base point.
    pub(super) fn base_rows(&self) -> &BaseRows {
        self.base_rows.get_or_init(|| {
            let mut rows: Box<BaseRows> =
                vec![[Row::NEUTRAL; 129]; TABLES].into_boxed_slice().try_into().expect("all tables");
            self.machine.fill_base_rows(&self.machine.splat(0), &mut rows);
            rows
        })
    }
}
