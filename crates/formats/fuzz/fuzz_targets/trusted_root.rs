//! Bundles with certificates, log entries and timestamps, trusted roots and chains of certificates:
//! reading and verifying them never panics, and nobody but the signers of the seeds is believed.
#![no_main]

use std::sync::LazyLock;

use bulla_formats::sigstore::{BundleSigner, SigstoreBundle};
use bulla_formats::trusted_root::{CertificateChain, ExpiredCertificates, TrustedRoot, WantedSigner};
use bulla_formats::{ContentHasher, MessageKey};
use bulla_kms::transfer::{PublicFormat, import_public};
use bulla_kms::{PublicKey, Timestamp};
use libfuzzer_sys::fuzz_target;

const CONTENT: &[u8] = include_bytes!("../../tests/vectors/logged-key");
const BUNDLE: &[u8] =
    include_bytes!("../../tests/vectors/signed-package-2.1.0-hb0f4dca_0.conda.sigstore.json");
const TILED_CONTENT: &[u8] = include_bytes!("../../tests/vectors/tiled-log");
const TILED: &[u8] = include_bytes!("../../tests/vectors/tiled-log.attested.sigstore.json");
const MODEL: &[u8] = include_bytes!("../../tests/vectors/model.certified.sig");

static ROOT: LazyLock<TrustedRoot> = LazyLock::new(|| {
    TrustedRoot::parse(include_bytes!("../../tests/vectors/trusted_root.json")).expect("it is one")
});
static STAGING: LazyLock<TrustedRoot> = LazyLock::new(|| {
    TrustedRoot::parse(include_bytes!("../../tests/vectors/trusted_root_staging.json")).expect("it is one")
});
static AUTHORITIES: LazyLock<CertificateChain> = LazyLock::new(|| {
    CertificateChain::parse(include_bytes!("../../tests/vectors/authority.pem")).expect("it is one")
});
static KEY: LazyLock<PublicKey> = LazyLock::new(|| {
    let pem = include_bytes!("../../tests/vectors/logged-key.pub");
    import_public(pem, PublicFormat::Pem, None).expect("it is one")
});

fn wanted() -> WantedSigner {
    let identity =
        "https://github.com/prefix-dev/sigstore-example/.github/workflows/action.yaml@refs/heads/main";
    let issuer = "https://token.actions.githubusercontent.com";
    WantedSigner { identity: identity.to_owned(), issuer: issuer.to_owned() }
}

fn payload(bundle: &SigstoreBundle) -> Option<&[u8]> {
    bundle.envelope().map(|envelope| envelope.payload())
}

/// What is verified of a bundle is what its signer signed.
fn verify(bytes: &[u8], root: &TrustedRoot, authorities: &CertificateChain) {
    let Ok(bundle) = SigstoreBundle::parse(bytes) else { return };
    let now = Timestamp::from_unix_millis(1_800_000_000_000).expect("it is a time");
    let mut hasher = ContentHasher::new(bundle.coverage());
    hasher.update(CONTENT);
    let covered = hasher.finish().expect("the content is short");
    let covered = match bundle.envelope() {
        Some(_) => None,
        None => Some(&covered[..]),
    };
    if bundle.signer() == BundleSigner::Key {
        let _ = root.verify_key(&bundle, MessageKey::Kms(&KEY), covered);
        assert!(root.verify_certificate(&bundle, &wanted(), covered).is_err());
        return;
    }
    assert!(root.verify_key(&bundle, MessageKey::Kms(&KEY), covered).is_err());
    if root.verify_certificate(&bundle, &wanted(), covered).is_ok() {
        let signed = SigstoreBundle::parse(BUNDLE).expect("it is one");
        assert_eq!(payload(&bundle), payload(&signed));
    }
    if authorities.verify(&bundle, covered, ExpiredCertificates::Accept, now).is_ok() {
        let signed = SigstoreBundle::parse(MODEL).expect("it is one");
        assert_eq!(payload(&bundle), payload(&signed));
    }
}

/// A bundle with an entry of a log of the second version.
fn verify_tiled(bytes: &[u8]) {
    let Ok(bundle) = SigstoreBundle::parse(bytes) else { return };
    let mut hasher = ContentHasher::new(bundle.coverage());
    hasher.update(TILED_CONTENT);
    let covered = hasher.finish().expect("the content is short");
    let covered = bundle.envelope().is_none().then_some(&covered[..]);
    let wanted = WantedSigner {
        identity: "jku@goto.fi".to_owned(),
        issuer: "https://github.com/login/oauth".to_owned(),
    };
    if let Ok(evidence) = STAGING.verify_certificate(&bundle, &wanted, covered) {
        let signed = SigstoreBundle::parse(TILED).expect("it is one");
        assert!(bundle.envelope().is_none() || payload(&bundle) == payload(&signed));
        assert!(evidence.log_entries > 0 && evidence.timestamps > 0 && evidence.time.is_some());
    }
}

fuzz_target!(|bytes: &[u8]| {
    match bytes.split_first() {
        Some((b'b', bundle)) => verify(bundle, &ROOT, &AUTHORITIES),
        Some((b's', bundle)) => verify_tiled(bundle),
        Some((b'r', root)) => {
            if let Ok(root) = TrustedRoot::parse(root) {
                let bundle = SigstoreBundle::parse(BUNDLE).expect("it is one");
                let _ = root.verify_certificate(&bundle, &wanted(), None);
            }
        }
        Some((b'c', chain)) => {
            if let Ok(chain) = CertificateChain::parse(chain) {
                verify(MODEL, &ROOT, &chain);
            }
        }
        _ => {}
    }
});
