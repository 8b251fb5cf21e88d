//! `bulla keys policy`, `revoke` and `destroy`, and what every change of a key prints.

use crate::args::{
    Bound, KeysDestroyArgs, KeysPolicyArgs, KeysRevokeArgs, KeystoreArgs, ReportArgs, duration_text,
};
use crate::diagnostics::note_line;
use crate::error::{Error, Result};
use crate::output::Out;
use crate::store::KeySource;
use bulla_keystore::LabelOrId;
use bulla_kms::{Attestation, Code, KeyChange, KeyState, KeyUsage, Origin, RotationPolicy, Timestamp};
use std::num::NonZeroU64;
use std::time::Duration;

/// Changes a key, and prints the changed key.
pub(super) fn change(
    keystore: &KeystoreArgs,
    key: &str,
    report: ReportArgs,
    wanted: &KeyChange,
    print: impl FnOnce(&mut Out, &Attestation) -> Result<()>,
) -> Result<()> {
    let key = KeySource::existing(keystore)?.open()?.update(key, None, wanted)?;
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

/// Whether only the public key is known, so that the key verifies and does nothing else.
pub(super) fn is_public_only(key: &Attestation) -> bool {
    key.versions.iter().any(|version| version.origin == Origin::PublicOnly)
}

/// What the latest version of a key does.
pub(super) fn what_it_does(key: &Attestation) -> &'static str {
    match key.algorithm.usage() {
        KeyUsage::KeyEncapsulation => "receives keys",
        KeyUsage::KeyAgreement => "derives shared secrets",
        KeyUsage::Encryption => "encrypts",
        KeyUsage::Authentication => "makes MACs",
        _ => "signs",
    }
}

/// What a disabled key does not do.
pub(super) fn what_it_does_not(key: &Attestation) -> &'static str {
    match key.algorithm.usage() {
        KeyUsage::KeyEncapsulation => "it receives no keys",
        KeyUsage::KeyAgreement => "it derives no shared secrets",
        KeyUsage::Encryption => "it does not encrypt or decrypt",
        KeyUsage::Authentication => "it does not make or verify MACs",
        _ => "it does not sign",
    }
}

/// Refuses a key that does not encrypt values, before the work. `named` is how the user names it.
pub(super) fn check_encrypts(key: &Attestation, named: &str) -> Result<()> {
    if key.algorithm.has_usage(KeyUsage::Encryption) {
        return Ok(());
    }
    let does = what_it_does(key);
    let message =
        format!("the key {named} does not encrypt values: its algorithm is {}, which {does}", key.algorithm);
    let hint = "name another key with --key; `bulla keys create LABEL --algorithm aes-256-gcm` makes one";
    Err(Error::new(Code::KeyUsageMismatch.as_str(), message).hint(hint))
}

/// Refuses a key that will not sign, before the work that comes before a signature. `named` is how
/// the user names it.
pub(super) fn check_signs(key: &Attestation, named: &str) -> Result<()> {
    let refused = |code: Code, why: &str, hint: String| {
        Err(Error::new(code.as_str(), format!("the key {named} {why}")).hint(hint))
    };
    let another = "name another key with --key";
    match key.state {
        KeyState::PendingDestruction { after } => {
            let why = format!("does not sign: it can be destroyed after {after}");
            let keep = format!(
                "to keep it, run `bulla keys cancel-destruction {named}` and then `bulla keys enable {named}`"
            );
            return refused(Code::KeyPendingDestruction, &why, format!("{keep}; or {another}"));
        }
        KeyState::Destroyed => {
            let hint = format!("{another}; `bulla keys create LABEL` makes one");
            return refused(Code::KeyDestroyed, "was destroyed: it only verifies", hint);
        }
        KeyState::Enabled => {}
        _ => {
            let hint = format!("enable it with `bulla keys enable {named}`, or {another}");
            return refused(Code::KeyDisabled, "is disabled: it does not sign", hint);
        }
    }
    if is_public_only(key) {
        let why = "has only a public key: it only verifies";
        return refused(Code::NoPrivateKey, why, another.to_owned());
    }
    if !key.algorithm.has_usage(KeyUsage::Signature) {
        let why = format!("does not sign: its algorithm is {}, which {}", key.algorithm, what_it_does(key));
        return refused(Code::KeyUsageMismatch, &why, another.to_owned());
    }
    match LabelOrId::parse(named)?.version() {
        Some(version) if version != key.latest_version => {
            let why = format!("is an older version and does not sign; version {} signs", key.latest_version);
            refused(Code::NotLatestVersion, &why, format!("name {}", name(key)))
        }
        _ => Ok(()),
    }
}

/// What to do after a rotation, so that others can verify the new version's signatures.
pub(super) fn rotation_advice(name: &str) -> [String; 4] {
    [
        "people who have only an older public key now see \"wrong key\"; publish the new public key:"
            .to_owned(),
        format!("  bulla keys export-public {name} > FILE"),
        "or publish a statement by the older version, for `bulla verify --public-key OLD.pub --succession FILE`:"
            .to_owned(),
        format!("  bulla keys succession {name} > FILE"),
    ]
}

/// Says that the key's policy rotated it, if it did since `before`: nobody ran `bulla keys rotate`,
/// whose advice this gives.
pub(super) fn note_rotated(before: &Attestation, head: u32) -> Result<()> {
    if let Some(remark) = rotated(before, head, Timestamp::now()?) {
        note_line(&remark);
        rotation_advice(&name(before)).iter().for_each(|line| note_line(line));
    }
    Ok(())
}

/// The remark on a rotation by a policy. With an age in the policy it names the times, which show a
/// wrong clock.
fn rotated(before: &Attestation, head: u32, now: Timestamp) -> Option<String> {
    let policy = before.rotation;
    if head <= before.latest_version {
        return None;
    }
    let mut why = Vec::new();
    why.extend(policy.max_uses.map(|uses| format!("a version makes at most {uses} signatures")));
    if let (Some(age), Some(version)) = (policy.max_age_seconds, before.versions.last()) {
        let (number, created) = (version.version, version.created);
        why.push(format!(
            "a version signs for {}; version {number} was made at {created}, and the clock says {now}",
            duration_text(age.get())
        ));
    }
    // Without a policy, somebody else rotated the key at the same time, and was told.
    (!why.is_empty()).then(|| {
        let (name, why) = (name(before), why.join("; "));
        format!("the policy of {name} rotated it: version {head} signs from now on ({why})")
    })
}

/// Two machines' clocks may differ that much.
const SKEW: Duration = Duration::from_secs(5 * 60);

/// Says that the clock went back, if a version of the key was made later than it says: the times of
/// signatures, and the age at which a policy rotates the key, come from that clock.
pub(super) fn note_clock(key: &Attestation) -> Result<()> {
    if let Some(remark) = clock_went_back(key, Timestamp::now()?) {
        note_line(&remark);
    }
    Ok(())
}

fn clock_went_back(key: &Attestation, now: Timestamp) -> Option<String> {
    let version = key.versions.iter().max_by_key(|version| version.created)?;
    let ahead = version.created.unix_millis().saturating_sub(now.unix_millis());
    let (number, created) = (version.version, version.created);
    (u128::from(ahead) > SKEW.as_millis()).then(|| {
        format!(
            "the clock says {now}, and version {number} of {} was made later, at {created}: \
             the clock is wrong now or was wrong then",
            name(key)
        )
    })
}

pub(super) fn policy(args: &KeysPolicyArgs) -> Result<()> {
    let source = KeySource::existing(&args.keystore)?;
    if args.max_age.is_none() && args.max_uses.is_none() && args.minimum_version.is_none() {
        return report(args, Out::stdout(), &source.read()?.key(&args.key)?);
    }
    let keys = source.open()?;
    let mut key = keys.key(&args.key)?;
    let rotation = RotationPolicy::default()
        .max_age_seconds(changed(args.max_age, key.rotation.max_age_seconds, |age: Duration| {
            NonZeroU64::new(age.as_secs())
        }))
        .max_uses(changed(args.max_uses, key.rotation.max_uses, Some));
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
            let text = match key.algorithm.usage() {
                KeyUsage::KeyEncapsulation => "it receives no keys from now on",
                KeyUsage::KeyAgreement => "it derives no shared secrets from now on",
                KeyUsage::Encryption => "bulla does not decrypt its ciphertexts from now on",
                KeyUsage::Authentication => "bulla refuses its MACs from now on",
                _ => "bulla refuses its signatures from now on",
            };
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

/// What a version has that is secret.
fn secret_of(key: &Attestation) -> &'static str {
    if key.algorithm.usage().is_symmetric() { "secret key" } else { "private key" }
}

/// What is left of a key after its destruction.
fn after_destruction(key: &Attestation) -> &'static str {
    match key.algorithm.usage() {
        KeyUsage::KeyEncapsulation | KeyUsage::Encryption => "what was encrypted with it cannot be decrypted",
        KeyUsage::KeyAgreement => "its shared secrets cannot be derived again",
        KeyUsage::Authentication => "its MACs cannot be verified",
        _ => "its signatures still verify",
    }
}

pub(super) fn destroy(args: &KeysDestroyArgs) -> Result<()> {
    let wanted = match args.version {
        Some(version) => KeyChange::DestroyVersion(version),
        None if args.finally => KeyChange::Destroy,
        None => KeyChange::ScheduleDestruction(args.after.time()?),
    };
    let said = |out: &mut Out, key: &Attestation| match (&wanted, key.state) {
        (KeyChange::DestroyVersion(version), _) => out.line(format_args!(
            "destroyed the {} of version {version} of {}; {}",
            secret_of(key),
            name(key),
            after_destruction(key)
        )),
        (_, KeyState::PendingDestruction { after }) => {
            let not = what_it_does_not(key);
            out.line(format_args!("{} is not used ({not}), and can be destroyed after {after}", name(key)))?;
            out.line(format_args!(
                "until it is destroyed, `bulla keys cancel-destruction {}` cancels this",
                name(key)
            ))
        }
        _ => {
            let (secret, after) = (secret_of(key), after_destruction(key));
            out.line(format_args!("destroyed the {secret}s of {}; {after}", name(key)))
        }
    };
    change(&args.keystore, &args.key, args.report, &wanted, said)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulla_kms::{Keystore, NewKey, RotationPolicy};
    use std::num::NonZeroU64;

    fn key() -> Attestation {
        let keystore = Keystore::in_memory().unwrap();
        let [tenant, purpose, label] = ["local", "files", "mine"].map(|name| name.parse().unwrap());
        let new = NewKey::new(tenant, purpose, bulla_kms::Algorithm::Ed25519).label(label);
        let id = keystore.create_key(new).unwrap();
        keystore.attest(id.key_id()).unwrap()
    }

    fn later(time: Timestamp, seconds: i64) -> Timestamp {
        Timestamp::from_unix_millis(time.unix_millis().saturating_add_signed(seconds * 1000)).unwrap()
    }

    #[test]
    fn a_clock_that_went_back_is_told_and_two_machines_may_differ_a_little() {
        let key = key();
        let created = key.versions[0].created;
        for seconds in [-299, 0, 1_000_000] {
            assert_eq!(clock_went_back(&key, later(created, seconds)), None, "{seconds}");
        }
        let now = later(created, -301);
        let remark = clock_went_back(&key, now).unwrap();
        let start = format!("the clock says {now}, and version 1 of mine was made later, at {created}: ");
        assert!(remark.starts_with(&start), "{remark}");
    }

    #[test]
    fn a_rotation_by_age_shows_the_times_that_tell_a_clock_that_jumped() {
        let mut key = key();
        let created = key.versions[0].created;
        let now = later(created, 20 * 365 * 24 * 60 * 60);
        assert_eq!(rotated(&key, 2, now), None, "a key without a policy");
        key.rotation = RotationPolicy::default().max_age_seconds(NonZeroU64::new(60));
        assert_eq!(rotated(&key, 1, now), None, "no rotation");
        let remark = rotated(&key, 2, now).unwrap();
        let times = format!("version 1 was made at {created}, and the clock says {now})");
        assert!(remark.starts_with("the policy of mine rotated it: version 2 signs"), "{remark}");
        assert!(remark.ends_with(&times), "{remark}");
    }
}
