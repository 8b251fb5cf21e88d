//! What the audit log says of changes of keys.

use std::num::{NonZeroU32, NonZeroU64};

use bulla_kms::approval::ApprovalRule;
use bulla_kms::{KeyChange, RotationPolicy, Timestamp};

use crate::audit_log::{by_hand, place};

/// Also a change that was refused, with the reason.
#[test]
fn every_change_of_a_key_is_recorded_under_its_own_name() {
    let place = place(by_hand());
    let (keystore, key) = (&place.keystore, place.key.key_id());
    keystore.rotate(key).unwrap();
    let first = NonZeroU32::MIN;
    let now = Timestamp::now().unwrap();
    let later = Timestamp::from_unix_millis(now.unix_millis() + 60_000).unwrap();
    // Nobody approves by this rule.
    let rule = ApprovalRule::new(NonZeroU32::MIN, Vec::new(), NonZeroU64::MIN);
    let changes = [
        (KeyChange::Label(None), "label ok"),
        (KeyChange::MinimumSigningVersion(1), "minimum_signing_version invalid_argument"),
        (KeyChange::Rotation(RotationPolicy::default()), "rotation_policy ok"),
        (KeyChange::DeletionAllowed(true), "deletion_allowed ok"),
        (KeyChange::AllowBackup, "allow_backup ok"),
        (KeyChange::Certificates { version: first, chain: vec![vec![0x30, 0]] }, "certificates ok"),
        (KeyChange::SshAuthority(None), "ssh_authority ok"),
        (KeyChange::X509Authority(None), "certificate_authority ok"),
        (KeyChange::Approval(rule), "approval_rule invalid_argument"),
        (KeyChange::Revoke(first), "revoke ok"),
        (KeyChange::DestroyVersion(first), "destroy_version ok"),
        (KeyChange::MinimumVersion(first.saturating_add(1)), "minimum_version ok"),
        (KeyChange::Disable, "disable ok"),
        (KeyChange::Enable, "enable ok"),
        (KeyChange::CancelDestruction, "restore invalid_argument"),
        (KeyChange::ScheduleDestruction(later), "schedule_destruction ok"),
        (KeyChange::Destroy, "destroy destruction_not_due"),
        (KeyChange::CancelDestruction, "restore ok"),
        (KeyChange::ScheduleDestruction(now), "schedule_destruction ok"),
        (KeyChange::Destroy, "destroy ok"),
        (KeyChange::CancelDestruction, "restore key_destroyed"),
    ];
    let before = place.log.entries().unwrap().len();
    for (change, _) in &changes {
        let _ = keystore.update(key, None, change);
    }
    let entries = place.log.entries().unwrap().split_off(before);
    let told: Vec<_> = entries
        .iter()
        .map(|entry| format!("{} {}", entry.operation.as_str(), entry.result.as_str()))
        .collect();
    assert_eq!(told, changes.map(|(_, expected)| expected));
    assert!(entries.iter().all(|entry| entry.key.is_some() && entry.digest().is_none()));
}
