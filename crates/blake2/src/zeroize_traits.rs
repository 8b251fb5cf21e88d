//! Clearing of secrets.

use crate::variant::Variant;
use crate::{Hash, Params, State};
use zeroize::Zeroize;

impl<V: Variant> Zeroize for Hash<V> {
    fn zeroize(&mut self) {
        self.bytes.as_mut().zeroize();
    }
}

/// Clears the key, and all other parameters: afterwards they are the defaults.
impl<V: Variant> Zeroize for Params<V> {
    fn zeroize(&mut self) {
        self.key_block.as_mut().zeroize();
        *self = Self::new();
    }
}

/// Clears the key and the input. Afterwards the state is a new one.
impl<V: Variant<Word: Zeroize>> Zeroize for State<V> {
    fn zeroize(&mut self) {
        self.block.as_mut().zeroize();
        self.words.iter_mut().for_each(Zeroize::zeroize);
        *self = Self::new();
    }
}
