//! The hash functions of `bulla sum` and `bulla check`, on the command line.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

pub(crate) use bulla_sums::Algorithm;

/// The parser of hash functions, which knows their names.
pub(crate) fn parser() -> impl TypedValueParser<Value = Algorithm> {
    let value = |algorithm: Algorithm| {
        let help = match algorithm {
            Algorithm::Blake3 => "As b3sum prints it",
            Algorithm::Blake2b => "As b2sum prints it",
            Algorithm::Blake2s => "BLAKE2 for 32-bit machines",
            Algorithm::Blake2bp => "BLAKE2b with four leaves side by side",
            Algorithm::Blake2sp => "BLAKE2s with eight leaves side by side",
            Algorithm::Sha256 => "As sha256sum prints it",
            Algorithm::Sha512 => "As sha512sum prints it",
        };
        PossibleValue::new(algorithm.name()).help(help)
    };
    PossibleValuesParser::new(Algorithm::ALL.iter().copied().map(value))
        .map(|name| Algorithm::by_tag(&name).expect("the parser takes only these names"))
}
