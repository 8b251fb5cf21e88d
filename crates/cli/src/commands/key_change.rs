//! Changes a key, and prints the result.

use crate::args::{KeystoreArgs, ReportArgs};
use crate::error::Result;
use crate::output::Out;
use crate::store::Holder;
use bulla_kms::{Attestation, KeyChange};

/// Changes a key, and prints the changed key.
pub(super) fn change(
    keystore: &KeystoreArgs,
    key: &str,
    report: ReportArgs,
    wanted: &KeyChange,
    print: impl FnOnce(&mut Out, &Attestation) -> Result<()>,
) -> Result<()> {
    let key = Holder::existing(keystore)?.open()?.update(key, None, wanted)?;
    print_changed(&key, report, &format!("{} was changed", name(&key)), print)
}

pub(super) fn print_changed(
    key: &Attestation,
    report: ReportArgs,
    done: &str,
    print: impl FnOnce(&mut Out, &Attestation) -> Result<()>,
) -> Result<()> {
    let mut out = Out::after(done);
    if report.json {
        out.json(key)?;
    } else if !report.quiet {
        print(&mut out, key)?;
    }
    out.flush()
}

/// A key by its label, or by its id if it has none.
pub(super) fn name(key: &Attestation) -> String {
    match &key.label {
        Some(label) => label.to_string(),
        None => key.key.to_string(),
    }
}
