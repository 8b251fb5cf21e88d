//! Shared code of BLAKE2 and BLAKE3.

/// Half a round in the column form: four quarter rounds side by side, on columns or diagonals `[a b
/// c d]` of the sixteen words `v`. `schedule` says which words of the message `m` the round uses,
/// from place `at` on. For methods of a trait whose `Self` is a [`Vector`](crate::Vector).
#[doc(hidden)]
#[macro_export]
macro_rules! half_round {
    ($v:ident, $m:ident, $schedule:expr, $at:literal, $([$a:literal $b:literal $c:literal $d:literal])*) => {
        $( $v[$a] = Self::add($v[$a], $m[$schedule[$at + 2 * $a]]); )*
        $( $v[$a] = Self::add($v[$a], $v[$b]); )*
        $( $v[$d] = Self::rotate::<0>(Self::xor($v[$d], $v[$a])); )*
        $( $v[$c] = Self::add($v[$c], $v[$d]); )*
        $( $v[$b] = Self::rotate::<1>(Self::xor($v[$b], $v[$c])); )*
        $( $v[$a] = Self::add($v[$a], $m[$schedule[$at + 2 * $a + 1]]); )*
        $( $v[$a] = Self::add($v[$a], $v[$b]); )*
        $( $v[$d] = Self::rotate::<2>(Self::xor($v[$d], $v[$a])); )*
        $( $v[$c] = Self::add($v[$c], $v[$d]); )*
        $( $v[$b] = Self::rotate::<3>(Self::xor($v[$b], $v[$c])); )*
    };
}
