//! The trusted keys: the keystore's keys, or the given keys and the keys that they vouch for.

use crate::args::{SignatureFormat, TrustArgs};
use crate::error::{Error, Result};
use crate::findings::{Finding, Problem, Signed};
use crate::ssh_trust::SshTrust;
use crate::store::{BundleTrust, KeySource, KnownKeys, remote_functions};
use bulla_files::escape_path;
use bulla_formats::minisign::{KeyNumber, NumberedKey, UNTRUSTED};
use bulla_formats::sigstore::{BundleSigner, SigstoreBundle};
use bulla_formats::ssh::{SshKey, SshSignature, SshSigner};
use bulla_formats::{Evidence, EvidenceError, MessageKey};
use bulla_kms::succession::follow;
use bulla_kms::transfer::{PublicFormat, import_public};
use bulla_kms::{
    Algorithm, Attestation, KeyVersionId, NamedPublicKey, PublicKey, SignatureFile, Succession,
    VersionAttestation, VersionState,
};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The maximum length of a file with public keys.
const MAX_KEY_FILE: u64 = 1 << 20;
/// The maximum length of a text that an error repeats: of the name of a file, and of no private key
/// of another program.
const LONGEST_SHOWN: usize = 60;
/// The maximum length of a file with statements: enough for a hundred with the longest signatures.
const MAX_STATEMENTS: u64 = 8 << 20;

/// Whose signatures a verifier accepts.
pub(crate) struct Trust {
    keys: TrustedKeys,
    ssh: SshTrust,
    bundles: Option<Box<dyn BundleTrust>>,
    /// Whether only bundles of Sigstore count, because logs have to vouch for them.
    only_bundles: bool,
}

/// The keys that a verifier trusts.
enum TrustedKeys {
    /// Every version of every key of the keystore or the service, except the versions that it
    /// refuses.
    Keystore(KnownKeys),
    /// Only these keys.
    Given(GivenKeys),
}

/// The keys of `--public-key`.
#[derive(Default)]
struct GivenKeys {
    ours: Vec<GivenKey>,
    /// Keys of OpenSSH whose algorithms only that format has here.
    ssh: Vec<SshKey>,
}

/// A key of `--public-key`, or one that such a key vouches for.
pub struct GivenKey {
    key: PublicKey,
    /// The name that came with it, if any.
    name: Option<KeyVersionId>,
    number: KeyNumber,
}

/// Adds a hint to an error of opening the keystore: the public keys are encrypted in it, so it must
/// be opened. A user who cannot open it now can verify with exported keys.
fn name_the_other_way(error: Error) -> Error {
    match error.code() {
        "no_passphrase" => error.hint(
            "name a file with the passphrase: --passphrase-file FILE; or verify without the keystore: \
             run `bulla keys export-public > FILE` once, then use --public-key FILE",
        ),
        _ => error,
    }
}

impl Trust {
    /// The keys from the command line or, without any, the keystore.
    pub(crate) fn new(args: &TrustArgs) -> Result<Self> {
        let bundles = match args.bundles.is_given() {
            true => Some(remote_functions()?.bundle_trust(&args.bundles)?),
            false => None,
        };
        let ssh = SshTrust::new(args)?;
        let keys = match args.needs_keystore() {
            true => {
                let source = KeySource::existing(&args.keystore).map_err(name_the_other_way)?;
                TrustedKeys::Keystore(KnownKeys::new(source.read()?))
            }
            false => TrustedKeys::Given(GivenKeys::new(args)?),
        };
        Ok(Self { keys, ssh, bundles, only_bundles: args.bundles.trusted_root.is_some() })
    }

    /// Refuses formats without logs if the user wants logs. Otherwise, whoever stole a key would
    /// choose such a format.
    pub(crate) fn admit(&self, format: SignatureFormat) -> Result<(), Finding> {
        match format {
            SignatureFormat::Sigstore | SignatureFormat::Oms => Ok(()),
            _ if !self.only_bundles => Ok(()),
            other => Err(Problem::WrongKey.because(format!(
                "it is a signature of the format {}, and --trusted-root wants a bundle of Sigstore",
                other.name()
            ))),
        }
    }

    /// Checks that a trusted key made this signature.
    pub(crate) fn check(&self, file: &SignatureFile) -> Result<(), Finding> {
        self.admit(SignatureFormat::Bulla)?;
        // Check first that the public key in the file made the signature. Only then is the file
        // intact, and the question is whose key that is.
        if !file.verify_with(&file.public_key).is_valid() {
            return Err(Problem::BadSignature
                .because("somebody edited the signature file, or another key than the named one made it"));
        }
        match &self.keys {
            TrustedKeys::Given(keys) => check_given(&keys.ours, file),
            TrustedKeys::Keystore(keys) => match version(keys, &file.key)? {
                key if key == file.public_key => Ok(()),
                key => Err(Problem::WrongKey.because(format!(
                    "it is signed with the public key {} as {}, but that key version has the public key {key}",
                    file.public_key, file.key
                ))),
            },
        }
    }

    /// The trusted key that a signature of minisign or signify names.
    pub(crate) fn numbered_key(
        &self,
        number: KeyNumber,
        format: SignatureFormat,
    ) -> Result<PublicKey, Finding> {
        self.admit(format)?;
        // Keys of other algorithms have numbers too, and some have signatures of the same length,
        // but these formats do not have them.
        let is_it = |key: &PublicKey| key.algorithm() == Algorithm::Ed25519;
        match &self.keys {
            TrustedKeys::Given(keys) => {
                let keys = &keys.ours;
                match keys.iter().find(|given| given.number == number && is_it(&given.key)) {
                    Some(given) => Ok(given.key.clone()),
                    None => {
                        let given: Vec<_> = keys.iter().map(|given| given.number.to_string()).collect();
                        Err(Problem::WrongKey
                            .because(format!("it is signed by the key {number}, {}", instead(&given))))
                    }
                }
            }
            TrustedKeys::Keystore(keys) => {
                let is_named = |key: &PublicKey| is_it(key) && KeyNumber::of(key) == number;
                let unknown = || unknown_key(&format!("the {} key {number}", format.name()));
                let (_, version) = find_version(keys, is_named)?.ok_or_else(unknown)?;
                version.public_key.ok_or_else(unknown)
            }
        }
    }

    /// Who made a signature of OpenSSH, if that is somebody whom the flags or the keystore trust.
    /// Whether the signature is valid is another question.
    pub(crate) fn ssh_signer(&self, signature: &SshSignature) -> Result<Signed, Finding> {
        self.admit(SignatureFormat::Ssh)?;
        self.ssh.check(signature)?;
        let key = signature.signer().key();
        let by = format!("the key {}", key.fingerprint());
        let mut signed = Signed::new(SignatureFormat::Ssh, key.fingerprint(), by);
        match &self.keys {
            TrustedKeys::Given(keys) if keys.has(signature.signer()) => Ok(signed),
            TrustedKeys::Given(keys) => match self.ssh.principal(signature)? {
                Some(principal) => {
                    signed.by = escape_path(Path::new(&principal));
                    signed.principal = Some(principal);
                    Ok(signed)
                }
                None => {
                    let given: Vec<_> = keys.ours.iter().filter_map(GivenKey::fingerprint).collect();
                    let ssh = keys.ssh.iter().map(SshKey::fingerprint);
                    let given: Vec<_> = given.into_iter().chain(ssh).collect();
                    let reason = match signature.signer() {
                        SshSigner::Key(_) => {
                            format!("it is signed by the key {}, {}", signed.key, instead(&given))
                        }
                        _ => "it is signed by a certificate: its authority must be in a list of --allowed-signers"
                            .to_owned(),
                    };
                    Err(Problem::WrongKey.because(reason))
                }
            },
            TrustedKeys::Keystore(keys) => {
                let found = match (signature.signer(), key.public_key()) {
                    (SshSigner::Key(_), Some(wanted)) => find_version(keys, |key| *key == wanted)?,
                    _ => None,
                };
                let unknown = || unknown_key(&format!("the key {}", signed.key));
                let (_, version) = found.ok_or_else(unknown)?;
                signed.by = self.name(&version.id);
                Ok(signed)
            }
        }
    }

    /// Who made a signature of bulla, which [`Trust::check`] accepted.
    pub(crate) fn signed(&self, file: &SignatureFile) -> Signed {
        Signed {
            signed_at: Some(file.signed_at.to_string()),
            comment: file.comment.to_string(),
            name: file.name.as_ref().map(ToString::to_string),
            ..Signed::new(SignatureFormat::Bulla, file.key.to_string(), self.name(&file.key))
        }
    }

    /// Who made a bundle of Sigstore, and what else vouches for it. `covered` is what
    /// [`SigstoreBundle::coverage`] names, and None for a bundle with an envelope; `verifies` says
    /// whether its signature is one of a key.
    pub(crate) fn bundle_signer(
        &self,
        format: SignatureFormat,
        bundle: &SigstoreBundle,
        covered: Option<&[u8]>,
        verifies: impl Fn(MessageKey<'_>) -> bool,
    ) -> Result<Signed, Finding> {
        if bundle.signer() == BundleSigner::Certificate {
            let Some(trust) = &self.bundles else {
                return Err(Problem::UnknownKey.because(
                    "it was made under a certificate: say which count with --trusted-root and \
                     --certificate-identity, or with --certificate-chain",
                ));
            };
            let evidence = trust.verify_certificate(bundle, covered).map_err(refused)?;
            return Ok(with_evidence(Signed::new(format, String::new(), String::new()), bundle, evidence));
        }
        let found = RefCell::new(None);
        let signed = self.message_signer(format, |key| {
            let is_signer = verifies(key);
            if let (true, Some(trust)) = (is_signer, &self.bundles) {
                *found.borrow_mut() = trust.verify_key(bundle, key, covered);
            }
            is_signer
        })?;
        let evidence = found.into_inner().transpose().map_err(refused)?;
        Ok(with_evidence(signed, bundle, evidence.unwrap_or_default()))
    }

    /// The trusted key that made a signature of DSSE, Sigstore or JWS. Such a signature names its
    /// key at most by a hint that is nothing to trust, so each key is tried.
    pub(crate) fn message_signer(
        &self,
        format: SignatureFormat,
        verifies: impl Fn(MessageKey<'_>) -> bool,
    ) -> Result<Signed, Finding> {
        self.admit(format)?;
        let signed = |key: String, by: String| Signed::new(format, key, by);
        match &self.keys {
            TrustedKeys::Given(keys) => {
                if let Some(given) = keys.ours.iter().find(|given| verifies(MessageKey::Kms(&given.key))) {
                    let name = given.name.as_ref().map_or_else(|| given.key.to_string(), ToString::to_string);
                    return Ok(signed(
                        name.clone(),
                        given.name.as_ref().map_or(format!("the key {name}"), |_| name),
                    ));
                }
                if let Some(key) = keys.ssh.iter().find(|key| verifies(MessageKey::Ssh(key))) {
                    return Ok(signed(key.fingerprint(), format!("the key {}", key.fingerprint())));
                }
                Err(Problem::WrongKey
                    .because("no given key made the signature, or somebody edited what it covers"))
            }
            TrustedKeys::Keystore(keys) => match find_version(keys, |key| verifies(MessageKey::Kms(key)))? {
                Some((_, version)) => Ok(signed(version.id.to_string(), self.name(&version.id))),
                None => Err(Problem::UnknownKey.because(
                    "no key of the keystore made the signature, or somebody edited what it covers; \
                         see --public-key",
                )),
            },
        }
    }

    /// Whether a key version with this id is trusted.
    pub(crate) fn has_version(&self, id: &str) -> bool {
        let Ok(id) = id.parse::<KeyVersionId>() else { return false };
        match &self.keys {
            TrustedKeys::Given(keys) => keys.ours.iter().any(|given| given.name.as_ref() == Some(&id)),
            TrustedKeys::Keystore(keys) => version(keys, &id).is_ok(),
        }
    }

    /// The owner's name for the key.
    fn name(&self, id: &KeyVersionId) -> String {
        let label = match &self.keys {
            TrustedKeys::Given(_) => None,
            // The key was read when its signature was checked.
            TrustedKeys::Keystore(keys) => keys.key(id.key_id()).ok().flatten().and_then(|key| key.label),
        };
        match label {
            Some(label) => format!("{label} v{}", id.version()),
            None => id.to_string(),
        }
    }
}

/// Adds what vouches for a bundle.
fn with_evidence(mut signed: Signed, bundle: &SigstoreBundle, evidence: Evidence) -> Signed {
    signed.verified = evidence.parts();
    signed.not_verified = bundle.unverified(&evidence);
    signed.signed_at = evidence.time.map(|time| time.to_string());
    if let Some(certificate) = evidence.certificate {
        let shown = |text: &str| escape_path(Path::new(text));
        let identity = shown(&certificate.identity);
        signed.key = certificate.fingerprint;
        signed.issuer = certificate.issuer.as_deref().map(shown);
        signed.by = match &signed.issuer {
            Some(issuer) => format!("{identity}, issuer {issuer}"),
            None => identity.clone(),
        };
        signed.principal = Some(identity);
    }
    signed
}

/// The finding about a bundle that nothing vouches for.
fn refused(error: EvidenceError) -> Finding {
    let problem = match error {
        EvidenceError::Changed(_) => Problem::Changed,
        EvidenceError::WrongSigner(_) => Problem::WrongKey,
        EvidenceError::Expired(_) => Problem::Expired,
        _ => Problem::BadSignature,
    };
    problem.because(error.to_string())
}

impl GivenKeys {
    fn new(args: &TrustArgs) -> Result<Self> {
        let mut given = Self::default();
        for text in &args.public_key {
            for key in GivenKey::read_all(text)? {
                match key {
                    AnyKey::Ours(key) => given.ours.push(key),
                    AnyKey::Ssh(key) => given.ssh.push(key),
                }
            }
        }
        let mut statements = Vec::new();
        for path in &args.succession {
            statements.append(&mut read_statements(path)?);
        }
        let follow = |key: &GivenKey| follow(&key.key, key.name.as_ref(), &statements);
        let found: Vec<_> = given.ours.iter().flat_map(follow).collect();
        given.ours.extend(found.into_iter().map(|named| GivenKey::new(named.public_key, Some(named.key))));
        Ok(given)
    }

    /// Whether one of the keys signed. A certificate says more than a key, so it needs a list of
    /// allowed signers.
    fn has(&self, signer: &SshSigner) -> bool {
        let SshSigner::Key(key) = signer else { return false };
        let ours = key.public_key();
        self.ssh.contains(key) || self.ours.iter().any(|given| Some(&given.key) == ours.as_ref())
    }
}

/// The version of the keystore's keys whose public key is the one that is looked for, if the
/// keystore accepts it.
fn find_version(
    keys: &KnownKeys,
    is_it: impl Fn(&PublicKey) -> bool,
) -> Result<Option<(Attestation, VersionAttestation)>, Finding> {
    for key in keys.all()? {
        let version = key.versions.iter().find(|one| one.public_key.as_ref().is_some_and(&is_it));
        if let Some(version) = version.cloned() {
            check_usable(&key, &version)?;
            return Ok(Some((key, version)));
        }
    }
    Ok(None)
}

/// Checks that one of the given keys made an intact signature.
fn check_given(keys: &[GivenKey], file: &SignatureFile) -> Result<(), Finding> {
    let same: Vec<_> = keys.iter().filter(|given| given.key == file.public_key).collect();
    // A key that came with a name must have signed under that name.
    if same.iter().any(|given| given.name.as_ref().is_none_or(|name| *name == file.key)) {
        return Ok(());
    }
    if same.is_empty() {
        let given: Vec<_> = keys.iter().map(|given| given.key.to_string()).collect();
        let reason = format!(
            "it is signed with the public key {} as {}, {}",
            file.public_key,
            file.key,
            instead(&given)
        );
        let is_newer =
            |name: &KeyVersionId| name.key_id() == file.key.key_id() && name.version() < file.key.version();
        let hint = match keys.iter().filter_map(|given| given.name.as_ref()).any(is_newer) {
            true => {
                ", an older version of that key; pass the owner's `bulla keys succession` with --succession"
            }
            false => "",
        };
        return Err(Problem::WrongKey.because(reason + hint));
    }
    let names: Vec<_> = same.iter().filter_map(|given| Some(given.name.as_ref()?.to_string())).collect();
    Err(Problem::WrongKey.because(format!("it is signed as {}, {}", file.key, instead(&names))))
}

/// The end of a sentence about a key that is not one of the given ones.
fn instead(given: &[String]) -> String {
    match given {
        [one] => format!("and the given key is {one}"),
        many => format!("and none of the {} given keys matches", many.len()),
    }
}

/// Reads statements of succession. Each must be valid.
fn read_statements(path: &Path) -> Result<Vec<Succession>> {
    let about = |error: Error| error.about(escape_path(path));
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_STATEMENTS + 1).read_to_end(&mut text));
    read.map_err(|error| about(Error::io("cannot read the statements", &error)))?;
    if text.len() as u64 > MAX_STATEMENTS {
        let message =
            format!("is too long: a file of succession statements has at most {MAX_STATEMENTS} bytes");
        return Err(about(Error::new("file_too_large", message)));
    }
    let statements = Succession::parse_all(&text).map_err(|error| about(error.into()))?;
    match statements.iter().position(|one| !one.verify().is_valid()) {
        None => Ok(statements),
        Some(place) => {
            let message =
                format!("somebody edited statement {}, or another key than the named one made it", place + 1);
            Err(about(Error::new("bad_statement", message)))
        }
    }
}

/// The public key of a version, if the keystore has and accepts it.
fn version(keys: &KnownKeys, id: &KeyVersionId) -> Result<PublicKey, Finding> {
    let key = keys.key(id.key_id())?.ok_or_else(|| unknown_key(&id.to_string()))?;
    let version = key.versions.iter().find(|version| version.version == id.version()).ok_or_else(|| {
        Problem::UnknownVersion.because(format!(
            "it is signed by {id}, but the keystore's latest version is v{}",
            key.latest_version
        ))
    })?;
    check_usable(&key, version)?;
    version.public_key.clone().ok_or_else(|| {
        Problem::UnknownKey.because(format!("it names {id}, and keys of {} do not sign", key.algorithm))
    })
}

/// Refuses versions whose signatures are no longer accepted.
pub(crate) fn check_usable(key: &Attestation, version: &VersionAttestation) -> Result<(), Finding> {
    if version.state == VersionState::Revoked {
        return Err(Problem::WrongKey.because(format!("it is signed by {}, which was revoked", version.id)));
    }
    if version.version < key.minimum_version {
        let least = key.minimum_version;
        return Err(Problem::WrongKey
            .because(format!("it is signed by {}, but the key's minimum version is v{least}", version.id)));
    }
    Ok(())
}

fn unknown_key(name: &str) -> Finding {
    Problem::UnknownKey
        .because(format!("it is signed by {name}, which is not in the keystore; see --public-key"))
}

/// Reads a public key in the forms of `--public-key`: a file, or the text itself.
pub fn public_key(text: &str) -> Result<PublicKey> {
    Ok(GivenKey::read(text)?.key)
}

/// A key of `--public-key`.
enum AnyKey {
    Ours(GivenKey),
    /// A key of OpenSSH of another algorithm.
    Ssh(SshKey),
}

impl GivenKey {
    /// The key's fingerprint in OpenSSH, if it has keys of this algorithm.
    fn fingerprint(&self) -> Option<String> {
        SshKey::of(&self.key).ok().map(|key| key.fingerprint())
    }

    /// The key, unless it came with another key's name.
    pub fn for_id(&self, id: &KeyVersionId) -> Option<PublicKey> {
        self.name.as_ref().is_none_or(|name| name == id).then(|| self.key.clone())
    }

    /// Reads the only public key of a file, or the text itself.
    pub fn read(text: &str) -> Result<Self> {
        let mut keys = Self::read_all(text)?;
        match (keys.pop(), keys.len()) {
            (Some(AnyKey::Ours(key)), 0) => Ok(key),
            (Some(AnyKey::Ssh(key)), 0) => {
                let message =
                    format!("is a key of {}, which only signatures of OpenSSH have", key.algorithm());
                Err(Error::new("invalid_public_key", message).about(escape_path(Path::new(text))))
            }
            (_, more) => {
                let message = format!("contains {} public keys; give a file with one", more + 1);
                Err(Error::new("invalid_public_key", message).about(escape_path(Path::new(text))))
            }
        }
    }

    /// Reads public keys from a file, or from the text itself, in the formats of bulla, minisign,
    /// PEM, OpenSSH or JSON Web Keys.
    fn read_all(text: &str) -> Result<Vec<AnyKey>> {
        let path = Path::new(text);
        let about = |error: Error| error.about(escape_path(path));
        if !path.exists() {
            return Self::parse_all(text).map_err(|reason| {
                let message = format!("is neither a file nor a public key: {reason}");
                // It may be a private key, which no log should have.
                let is_name = text.len() <= LONGEST_SHOWN && !text.contains(['\n', '{']);
                let shown = if is_name { escape_path(path) } else { "the given text".to_owned() };
                Error::new("invalid_public_key", message)
                    .about(shown)
                    .hint("`bulla keys export-public` prints a public key")
            });
        }
        let mut content = String::new();
        let read = |file: File| file.take(MAX_KEY_FILE + 1).read_to_string(&mut content);
        match File::open(path).and_then(read) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidData => content.clear(),
            Err(error) => return Err(about(Error::io("cannot read the public key", &error))),
        }
        // Cutting off a long list would silently lose keys.
        if content.len() as u64 > MAX_KEY_FILE {
            let message = format!("is too long: a file of public keys has at most {MAX_KEY_FILE} bytes");
            return Err(about(Error::new("file_too_large", message)));
        }
        Self::parse_all(&content).map_err(|reason| about(Error::new("invalid_public_key", reason)))
    }

    /// Reads consecutive keys, with or without empty lines in between.
    fn parse_all(text: &str) -> Result<Vec<AnyKey>, String> {
        let mut keys = Vec::new();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let (key, after) = rest.split_at(first_key(rest));
            keys.push(Self::parse_any(key)?);
            rest = after.trim_start();
        }
        // An empty text gets the error of a single key.
        if keys.is_empty() { Self::parse(text).map(|key| vec![AnyKey::Ours(key)]) } else { Ok(keys) }
    }

    /// Also reads keys of OpenSSH whose algorithms only that format has here.
    fn parse_any(text: &str) -> Result<AnyKey, String> {
        if text.starts_with("ecdsa-sha2-") || text.starts_with("ssh-rsa ") {
            let key = SshKey::parse(text.trim_end()).map_err(|error| error.to_string())?;
            return Ok(match key.public_key() {
                Some(key) => AnyKey::Ours(Self::new(key, None)),
                None => AnyKey::Ssh(key),
            });
        }
        if text.starts_with("-----BEGIN PUBLIC KEY")
            && let Ok(key) = SshKey::from_pem(text)
        {
            // Where the keystore knows RSA, its own signature files have such keys.
            return Ok(match Self::parse(text) {
                Ok(ours) if ours.key.algorithm().is_rsa() => AnyKey::Ours(ours),
                _ => AnyKey::Ssh(key),
            });
        }
        Self::parse(text).map(AnyKey::Ours)
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with("bulla ") {
            let named: NamedPublicKey = text.parse().map_err(|error: bulla_kms::KmsError| error.message)?;
            return Ok(Self::new(named.public_key, Some(named.key)));
        }
        let line = text.trim_end();
        let known =
            [("-----BEGIN ", PublicFormat::Pem), ("ssh-", PublicFormat::OpenSsh), ("{", PublicFormat::Jwk)];
        if let Some((_, format)) = known.into_iter().find(|(start, _)| text.starts_with(start)) {
            let key = import_public(text.as_bytes(), format, None).map_err(|error| error.message)?;
            return Ok(Self::new(key, None));
        }
        if line.contains(':') && !line.contains(' ') {
            return Ok(Self::new(line.parse().map_err(|error: bulla_kms::KmsError| error.message)?, None));
        }
        // The base64 of 32 bytes has 44 characters.
        if line.len() == 44 {
            return Ok(Self::new(line.parse().map_err(|error: bulla_kms::KmsError| error.message)?, None));
        }
        let neither = |_| "it is neither a public key of bulla nor one of minisign".to_owned();
        let numbered = NumberedKey::parse(text).map_err(neither)?;
        Ok(Self { key: numbered.key, name: None, number: numbered.number })
    }

    fn new(key: PublicKey, name: Option<KeyVersionId>) -> Self {
        Self { number: KeyNumber::of(&key), key, name }
    }
}

/// The length of the first key in a list of keys.
fn first_key(text: &str) -> usize {
    let lines = |count| text.split_inclusive('\n').take(count).map(str::len).sum();
    if text.starts_with("bulla ") || text.starts_with(UNTRUSTED) {
        return lines(2);
    }
    if text.starts_with("-----BEGIN ") {
        let before_end = text.split_inclusive('\n').take_while(|line| !line.starts_with("-----END ")).count();
        return lines(before_end + 1);
    }
    // A JSON Web Key has one line, or takes the rest of the text.
    if text.starts_with('{') && !text.lines().next().is_some_and(|line| line.trim_end().ends_with('}')) {
        return text.len();
    }
    lines(1)
}
