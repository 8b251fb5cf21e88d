//! `bulla version`: the version, and how this program was built.

use crate::args::VersionArgs;
use crate::error::Result;
use crate::exit::Exit;
use crate::output::Out;
use bulla_blake3::kernel;
use serde::Serialize;

/// The features of `bulla-kms` that this program is built with.
const FEATURES: &str = "mldsa, mlkem, pkcs11, slhdsa, soft-seal, tokens, transfer, with-metrics";

/// The output of `--json`.
#[derive(Serialize)]
struct Build {
    version: &'static str,
    /// The commit that a release was built from.
    commit: Option<&'static str>,
    features: Vec<&'static str>,
    /// The kernel of BLAKE3 on this machine.
    kernel: &'static str,
}

pub(crate) fn run(args: &VersionArgs) -> Result<Exit> {
    let build = Build {
        version: env!("CARGO_PKG_VERSION"),
        commit: option_env!("BULLA_COMMIT"),
        features: FEATURES.split(", ").collect(),
        kernel: kernel::active().name(),
    };
    let mut out = Out::stdout();
    if args.json {
        out.json(&build)?;
        out.flush()?;
        return Ok(Exit::Ok);
    }
    out.line(format_args!("bulla {}", build.version))?;
    if args.verbose {
        out.line(format_args!("commit    {}", build.commit.unwrap_or("unknown")))?;
        out.line(format_args!("features  {FEATURES}"))?;
        out.line(format_args!("kernel    {}", build.kernel))?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::FEATURES;

    #[test]
    fn the_features_are_those_of_the_manifest() {
        let manifest = include_str!("../../Cargo.toml");
        let kms = manifest.lines().find(|line| line.starts_with("bulla-kms = ")).unwrap();
        let list = kms.split_once("features = [").unwrap().1.split(']').next().unwrap();
        assert_eq!(list.replace('"', ""), FEATURES);
    }
}
