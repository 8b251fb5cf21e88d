//! `bulla keys policy`, `revoke` and `destroy`.

use super::key_change::{change, name};
use crate::args::{Bound, KeysDestroyArgs, KeysPolicyArgs, KeysRevokeArgs, duration_text};
use crate::error::Result;
use crate::output::Out;
use crate::store::KeySource;
use bulla_kms::{Attestation, KeyChange, KeyState, RotationPolicy};
use std::num::NonZeroU64;
use std::time::Duration;

pub(super) fn policy(args: &KeysPolicyArgs) -> Result<()> {
    let source = KeySource::existing(&args.keystore)?;
    if args.max_age.is_none() && args.max_uses.is_none() && args.minimum_version.is_none() {
        return report(args, Out::stdout(), &source.read()?.key(&args.key)?);
    }
    let keys = source.open()?;
    let mut key = keys.key(&args.key)?;
    let rotation = RotationPolicy {
        max_age_seconds: changed(args.max_age, key.rotation.max_age_seconds, |age: Duration| {
            NonZeroU64::new(age.as_secs())
        }),
        max_uses: changed(args.max_uses, key.rotation.max_uses, Some),
    };
    let before = key.revision;
    // Each change is compared with the revision that was read, so that no other change is lost.
    if rotation != key.rotation {
        key = keys.update(&args.key, Some(key.revision), &KeyChange::Rotation(rotation))?;
    }
    if let Some(minimum) = args.minimum_version {
        key = keys.update(&args.key, Some(key.revision), &KeyChange::MinimumVersion(minimum))?;
    }
    drop(keys);
    let out = if key.revision == before { Out::stdout() } else { Out::after("the policy was changed") };
    report(args, out, &key)
}

fn report(args: &KeysPolicyArgs, mut out: Out, key: &Attestation) -> Result<()> {
    if args.report.json {
        out.json(key)?;
    } else if !args.report.quiet {
        print(&mut out, key)?;
    }
    out.flush()
}

fn changed<T, U>(bound: Option<Bound<T>>, old: Option<U>, new: impl Fn(T) -> Option<U>) -> Option<U> {
    match bound {
        None => old,
        Some(Bound::None) => None,
        Some(Bound::At(value)) => new(value),
    }
}

fn print(out: &mut Out, key: &Attestation) -> Result<()> {
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "none".to_owned());
    let age = key.rotation.max_age_seconds.map(|age| duration_text(age.get()));
    let uses = key.rotation.max_uses.map(|uses| format!("{uses} signatures per version"));
    out.line(format_args!("key              {}", name(key)))?;
    out.line(format_args!("maximum age      {}", or_none(age)))?;
    out.line(format_args!("maximum uses     {}", or_none(uses)))?;
    out.line(format_args!("minimum version  {}", key.minimum_version))
}

pub(super) fn revoke(args: &KeysRevokeArgs) -> Result<()> {
    let source = KeySource::existing(&args.keystore)?;
    let keys = source.open()?;
    let mut out = Out::stdout();
    let mut revoked = None;
    for version in &args.versions {
        let key = keys.update(&args.key, None, &KeyChange::Revoke(*version))?;
        let label = name(&key);
        out.note_done(format!("version {version} of {label} was revoked"));
        if !args.report.json && !args.report.quiet {
            let text = "bulla refuses its signatures from now on";
            out.line(format_args!("revoked version {version} of {label}: {text}"))?;
        }
        revoked = Some(key);
    }
    drop(keys);
    if let (Some(key), true) = (revoked, args.report.json) {
        out.json(&key)?;
    }
    out.flush()
}

pub(super) fn destroy(args: &KeysDestroyArgs) -> Result<()> {
    let wanted = match args.version {
        Some(version) => KeyChange::DestroyVersion(version),
        None if args.finally => KeyChange::Destroy,
        None => KeyChange::ScheduleDestruction(args.after.time()?),
    };
    let said = |out: &mut Out, key: &Attestation| match (&wanted, key.state) {
        (KeyChange::DestroyVersion(version), _) => out.line(format_args!(
            "destroyed the private key of version {version} of {}; its signatures still verify",
            name(key)
        )),
        (_, KeyState::PendingDestruction { after }) => {
            out.line(format_args!("{} does not sign, and can be destroyed after {after}", name(key)))?;
            out.line(format_args!(
                "until it is destroyed, `bulla keys cancel-destruction {}` cancels this",
                name(key)
            ))
        }
        _ => {
            out.line(format_args!("destroyed the private keys of {}; its signatures still verify", name(key)))
        }
    };
    change(&args.keystore, &args.key, args.report, &wanted, said)
}
