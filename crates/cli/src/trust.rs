//! Whose signatures count: the keys of the keystore, or the one key that was given.

use crate::args::VerifyArgs;
use crate::error::{Error, Result};
use crate::files::name::shown;
use crate::minisign;
use crate::report::{Finding, Problem};
use crate::store::Access;
use bulla_kms::transfer::{PublicFormat, import_public};
use bulla_kms::{Attestation, KeyId, NamedPublicKey, PublicKey, SignatureFile};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// No public key file is as long.
const MAX_KEY_FILE: u64 = 64 << 10;

/// The keys that a verifier trusts.
pub(crate) enum Trust {
    /// Every version of every key of the keystore.
    Keystore(Vec<Attestation>),
    /// This key alone.
    Given(Box<GivenKey>),
}

/// The key of `--public-key`.
pub(crate) struct GivenKey {
    key: PublicKey,
    /// The name that came with it, if one did.
    name: Option<KeyId>,
    minisign: minisign::KeyId,
}

impl Trust {
    /// The key of the command line or, without one, the keystore.
    pub(crate) fn new(args: &VerifyArgs) -> Result<Self> {
        match &args.public_key {
            Some(text) => Ok(Self::Given(Box::new(GivenKey::read(text)?))),
            None => Ok(Self::Keystore(Access::existing(&args.keystore)?.open()?.list()?)),
        }
    }

    /// Did a trusted key make this signature?
    pub(crate) fn check(&self, file: &SignatureFile) -> Result<(), Finding> {
        // Whether the one who wrote the file holds the private key of the public key in it: only then is the file
        // whole, and the question is whose key that is.
        let is_whole = || file.verify_with(&file.public_key).is_valid();
        let trusted = match self {
            Self::Given(given) => Ok(given.key.clone()),
            Self::Keystore(keys) => version(keys, &file.key),
        };
        match trusted {
            Ok(key) if file.verify_with(&key).is_valid() => self.check_name(file),
            Ok(key) if file.public_key != key && is_whole() => Err(Problem::WrongKey.because(format!(
                "it is signed with the public key {} as {}, and not with {key}",
                file.public_key, file.key
            ))),
            Err(finding) if is_whole() => Err(finding),
            Ok(_) | Err(_) => Err(Problem::BadSignature
                .because("the signature file was edited, or is not by the key that it names")),
        }
    }

    /// A key that came with a name must have signed under that name.
    fn check_name(&self, file: &SignatureFile) -> Result<(), Finding> {
        let Self::Given(given) = self else { return Ok(()) };
        match &given.name {
            Some(name) if *name != file.key => Err(Problem::WrongKey
                .because(format!("it is signed as {}, and the given key is {name}", file.key))),
            _ => Ok(()),
        }
    }

    /// The trusted key that a minisign signature names.
    pub(crate) fn minisign_key(&self, id: minisign::KeyId) -> Result<PublicKey, Finding> {
        match self {
            Self::Given(given) if given.minisign == id => Ok(given.key.clone()),
            Self::Given(given) => Err(Problem::WrongKey
                .because(format!("it is signed by the key {id}, and the given key is {}", given.minisign))),
            Self::Keystore(keys) => keys
                .iter()
                .flat_map(|key| &key.versions)
                .map(|version| version.public_key.clone())
                .find(|key| minisign::KeyId::of(key) == id)
                .ok_or_else(|| unknown_key(&format!("the minisign key {id}"))),
        }
    }

    /// The key as its owner calls it.
    pub(crate) fn name(&self, id: &KeyId) -> String {
        let label = match self {
            Self::Given(_) => None,
            Self::Keystore(keys) => {
                keys.iter().find(|key| key.key == *id.family()).and_then(|key| key.label.as_ref())
            }
        };
        match label {
            Some(label) => format!("{label} v{}", id.version()),
            None => id.to_string(),
        }
    }
}

fn version(keys: &[Attestation], id: &KeyId) -> Result<PublicKey, Finding> {
    let key = keys.iter().find(|key| key.key == *id.family()).ok_or_else(|| unknown_key(&id.to_string()))?;
    let version = key.versions.iter().find(|version| version.version == id.version());
    version.map(|version| version.public_key.clone()).ok_or_else(|| {
        Problem::UnknownVersion
            .because(format!("it is signed by {id}, and the keystore's newest is v{}", key.head))
    })
}

fn unknown_key(name: &str) -> Finding {
    Problem::UnknownKey
        .because(format!("it is signed by {name}, which is not in the keystore; see --public-key"))
}

/// Reads a public key as `--public-key` takes it: a file, or the text itself.
pub(crate) fn public_key(text: &str) -> Result<PublicKey> {
    Ok(GivenKey::read(text)?.key)
}

impl GivenKey {
    /// The key, unless it came with the name of another one.
    pub(crate) fn for_id(&self, id: &KeyId) -> Option<PublicKey> {
        self.name.as_ref().is_none_or(|name| name == id).then(|| self.key.clone())
    }

    /// Reads a public key: a file, or the text itself, in a form of bulla, minisign, PEM, OpenSSH or JSON Web Keys.
    pub(crate) fn read(text: &str) -> Result<Self> {
        let path = Path::new(text);
        if !path.exists() {
            return Self::parse(text).map_err(|reason| {
                Error::new("invalid_public_key", format!("no such file, and no public key either: {reason}"))
                    .about(shown(path))
                    .hint("`bulla keys export-public` prints a public key")
            });
        }
        let mut content = String::new();
        let read = |file: File| file.take(MAX_KEY_FILE).read_to_string(&mut content);
        match File::open(path).and_then(read) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidData => content.clear(),
            Err(error) => return Err(Error::io("cannot read the public key", &error).about(shown(path))),
        }
        Self::parse(&content).map_err(|reason| Error::new("invalid_public_key", reason).about(shown(path)))
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
        let named = minisign::NamedKey::parse(text).map_err(neither)?;
        Ok(Self { key: named.key, name: None, minisign: named.id })
    }

    fn new(key: PublicKey, name: Option<KeyId>) -> Self {
        Self { minisign: minisign::KeyId::of(&key), key, name }
    }
}
