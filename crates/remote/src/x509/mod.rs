//! `bulla x509` and `bulla keys csr`: requests for X.509 certificates, and certificates that keys
//! sign. The keystore that has the key asks its policy, wherever it is.

mod args;

pub(crate) use self::args::{X509Cli, X509Command};

use self::args::{X509CaArgs, X509PolicyArgs, X509SignArgs};
use bulla_cli::file::atomic;
use bulla_cli::keystore::LocalKeystore;
use bulla_cli::remote::{KeySource, Keys, KeysCsrArgs, ReportArgs, duration_text};
use bulla_command::error::{Error, Result};
use bulla_command::exit::Exit;
use bulla_command::output::{JsonPath, Out};
use bulla_files::{escape_path, escape_text};
use bulla_formats::FormatError;
use bulla_formats::x509::{AlternativeNames, AuthorityCertificate, CertificateRequest, NewCertificate};
use bulla_kms::prehash::HashFunction;
use bulla_kms::{
    Algorithm, KeyChange, KeyVersionId, PublicKey, Timestamp, X509Authority, X509CertificateKind, X509Usage,
    generate_random,
};
use serde::Serialize;
use std::fs::File;
use std::io::Read as _;
use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;

/// How long before now a certificate begins: clocks differ.
const SKEW_SECONDS: u64 = 300;
/// The most bytes of a file with a request or a certificate.
const MAX_FILE_LEN: u64 = 64 << 10;

pub(crate) fn run(command: &X509Command) -> Result<Exit> {
    match command {
        X509Command::Policy(args) => policy(args),
        X509Command::Ca(args) => own_certificate(args),
        X509Command::Sign(args) => sign(args),
    }?;
    Ok(Exit::Ok)
}

/// Shows the policy of an authority, or changes it.
fn policy(args: &X509PolicyArgs) -> Result<()> {
    let local = LocalKeystore::existing(&args.keystore)?;
    let keystore = local.open()?;
    let key = keystore.attest(bulla_keystore::find_key(&keystore, &args.key)?.key_id())?;
    let new = new_policy(args)?;
    let mut out = Out::stdout();
    if new.is_some() || args.remove {
        keystore.update(&key.key, Some(key.revision), &KeyChange::X509Authority(new))?;
        out = Out::after("the policy was changed");
    }
    let policy = keystore.x509_authority(&key.key)?;
    drop(keystore);
    if args.report.json {
        #[derive(Serialize)]
        struct Line<'a> {
            key: String,
            policy: Option<&'a X509Authority>,
        }
        out.json(&Line { key: key.key.to_string(), policy: policy.as_ref() })?;
    } else if !args.report.quiet {
        print_policy(&mut out, &args.key, policy.as_ref())?;
    }
    out.flush()
}

/// The policy that the flags describe, if there are any.
fn new_policy(args: &X509PolicyArgs) -> Result<Option<X509Authority>> {
    let X509PolicyArgs { usages, authority, dns, ip, email, uri, subjects, max_life, .. } = args;
    let lists = [dns, ip, email, uri, subjects];
    let is_empty = usages.is_empty() && !authority && lists.iter().all(|names| names.is_empty());
    let Some(max_life) = max_life else {
        if is_empty {
            return Ok(None);
        }
        return Err(Error::new("usage", "a policy has --max-life, --usage or --authority, and a name"));
    };
    let leaf = (!usages.is_empty()).then_some(X509CertificateKind::Leaf);
    let kinds = leaf.into_iter().chain(authority.then_some(X509CertificateKind::Authority)).collect();
    let seconds = NonZeroU64::new(max_life.as_secs());
    let seconds = seconds.ok_or_else(|| Error::new("usage", "--max-life: it must be longer than 0s"))?;
    let mut policy = X509Authority::new(kinds, seconds);
    policy.dns_names.clone_from(dns);
    policy.ip_addresses.clone_from(ip);
    policy.email_addresses.clone_from(email);
    policy.uris.clone_from(uri);
    policy.subjects.clone_from(subjects);
    policy.usages = usages.iter().copied().map(X509Usage::from).collect();
    Ok(Some(policy))
}

fn print_policy(out: &mut Out, name: &str, policy: Option<&X509Authority>) -> Result<()> {
    let Some(policy) = policy else {
        return out.line(format_args!("the key {name} has no policy: it is no authority of X.509"));
    };
    let kinds = policy.kinds.iter().map(|kind| match kind {
        X509CertificateKind::Leaf => "servers, programs and people",
        X509CertificateKind::Authority => "authorities",
    });
    let usages = policy.usages.iter().map(|usage| match usage {
        X509Usage::ServerAuth => "server-auth",
        X509Usage::ClientAuth => "client-auth",
        X509Usage::CodeSigning => "code-signing",
        X509Usage::EmailProtection => "email-protection",
        _ => "time-stamping",
    });
    let usages: Vec<_> = usages.map(str::to_owned).collect();
    out.line(format_args!("certificates for  {}", kinds.collect::<Vec<_>>().join(" and ")))?;
    out.line(format_args!("longest life      {}", duration_text(policy.max_life_seconds.get())))?;
    for (what, names) in [
        ("usages", &usages),
        ("DNS names", &policy.dns_names),
        ("IP addresses", &policy.ip_addresses),
        ("mail addresses", &policy.email_addresses),
        ("URIs", &policy.uris),
        ("subjects", &policy.subjects),
    ] {
        let listed = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        out.line(format_args!("{what:<16}  {}", escape_text(&listed)))?;
    }
    Ok(())
}

/// A key that signs requests or certificates, by its latest version.
struct SigningKey<'a> {
    source: &'a KeySource,
    version: KeyVersionId,
    public_key: PublicKey,
}

/// Why a request or a certificate was not signed.
struct NotSigned(Error);

impl From<FormatError> for NotSigned {
    fn from(error: FormatError) -> Self {
        Self(Error::new("not_signed", error.to_string()))
    }
}

impl<'a> SigningKey<'a> {
    fn find(source: &'a KeySource, name: &str) -> Result<Self> {
        let key = source.read()?.key(name)?;
        let latest = key.versions.last();
        let latest = latest.and_then(|version| Some((version.id.clone(), version.public_key.clone()?)));
        let (version, public_key) =
            latest.ok_or_else(|| Error::new("no_public_key", "has no public key").about(name))?;
        let algorithm = public_key.algorithm();
        if algorithm != Algorithm::Ed25519 && !algorithm.is_ecdsa() && !algorithm.is_rsa() {
            let message = format!("is a {algorithm} key; certificates are for Ed25519, ECDSA and RSA keys");
            return Err(Error::new("unsupported_algorithm", message)
                .about(name)
                .hint("`bulla keys create LABEL --algorithm ecdsa-p256` makes one"));
        }
        Ok(Self { source, version, public_key })
    }

    fn sign(&self, message: &[u8], hash: Option<HashFunction>) -> std::result::Result<Vec<u8>, NotSigned> {
        let version = self.version.to_string();
        let sign = |keys: Box<dyn Keys + '_>| match hash {
            None => keys.sign(&version, message),
            Some(hash) => keys.sign_hashed(&version, message, hash),
        };
        let signed = self.source.open_to_sign(&version).and_then(sign);
        signed.map(|signature| signature.bytes).map_err(NotSigned)
    }

    /// An error for a key of this machine that is no authority: it would sign anything.
    fn check_policy(&self, name: &str) -> Result<()> {
        let KeySource::Local(local) = self.source else { return Ok(()) };
        if local.open()?.x509_authority(self.version.key_id())?.is_some() {
            return Ok(());
        }
        let message = format!("the key {name} has no policy: it is no authority of X.509");
        let hint = format!(
            "set one with `bulla x509 policy {name} --dns '*.example.org' --usage server-auth --max-life 90d`"
        );
        Err(Error::new("no_policy", message).hint(hint))
    }
}

/// Writes a request for a certificate of a key.
pub(crate) fn request(args: &KeysCsrArgs) -> Result<()> {
    let target = Target::new(&args.report, args.output.as_deref(), PemKind::Request)?;
    let source = KeySource::existing(&args.keystore)?;
    let key = SigningKey::find(&source, &args.key)?;
    let names = AlternativeNames {
        dns: args.names.dns.clone(),
        ip: args.names.ip.clone(),
        email: args.names.email.clone(),
        uri: args.names.uri.clone(),
    };
    let sign = |message: &[u8], hash| key.sign(message, hash);
    let text = CertificateRequest::sign(&key.public_key, &args.subject, &names, sign);
    let text = text.map_err(|NotSigned(error)| error)?;
    #[derive(Serialize)]
    struct Line<'a> {
        request: JsonPath,
        key: String,
        subject: &'a str,
        names: Vec<String>,
    }
    let line = |path: &Path| Line {
        request: path.into(),
        key: key.version.to_string(),
        subject: &args.subject,
        names: names.texts(),
    };
    target.write(&text, line, |path| format!("{path}: request for a certificate of {}", args.key))
}

/// A certificate for the report.
#[derive(Serialize)]
struct CertificateLine<'a> {
    certificate: JsonPath,
    authority: String,
    kind: X509CertificateKind,
    serial: String,
    subject: &'a str,
    names: Vec<String>,
    not_after: Timestamp,
}

/// Makes the certificate of an authority, signed by its own key.
fn own_certificate(args: &X509CaArgs) -> Result<()> {
    let target = Target::new(&args.report, args.output.as_deref(), PemKind::Certificate)?;
    let source = KeySource::existing(&args.keystore)?;
    let key = SigningKey::find(&source, &args.key)?;
    key.check_policy(&args.key)?;
    let (life, not_after) = life(args.valid_for)?;
    let new = NewCertificate::authority(random()?, life, args.path_length);
    let text = new.sign_own(&args.subject, &key.public_key, |message, hash| key.sign(message, hash));
    let text = text.map_err(|NotSigned(error)| error)?;
    let line = |path: &Path| CertificateLine {
        certificate: path.into(),
        authority: key.version.to_string(),
        kind: X509CertificateKind::Authority,
        serial: new.serial(),
        subject: &args.subject,
        names: Vec::new(),
        not_after,
    };
    let subject = escape_text(&args.subject).into_owned();
    target.write(&text, line, |path| {
        format!("{path}: certificate of the authority {subject}, until {not_after}")
    })
}

/// Signs the certificate that a request asks for.
fn sign(args: &X509SignArgs) -> Result<()> {
    let target = Target::new(&args.report, args.output.as_deref(), PemKind::Certificate)?;
    let request = read(&args.request, "invalid_request", CertificateRequest::parse)?;
    let authority = read(&args.ca_certificate, "invalid_certificate", AuthorityCertificate::parse)?;
    let source = KeySource::existing(&args.keystore)?;
    let key = SigningKey::find(&source, &args.ca)?;
    if !authority.is_of(&key.public_key) {
        let message = format!("is not the certificate of the key {}", key.version);
        return Err(Error::new("wrong_key", message)
            .about(escape_path(&args.ca_certificate))
            .hint("after a rotation, the new version needs a certificate of its own: `bulla x509 ca`"));
    }
    key.check_policy(&args.ca)?;
    let (life, not_after) = life(args.valid_for)?;
    let usages: Vec<_> = args.usages.iter().copied().map(X509Usage::from).collect();
    let (new, kind) = match args.authority {
        true => (NewCertificate::authority(random()?, life, 0), X509CertificateKind::Authority),
        false => (NewCertificate::leaf(random()?, life, &usages), X509CertificateKind::Leaf),
    };
    let by = |message: &[u8], hash| key.sign(message, hash);
    let text = new.sign(&request, &authority, &key.public_key, by);
    let text = text.map_err(|NotSigned(error)| error)?;
    let subject = request.subject();
    let line = |path: &Path| CertificateLine {
        certificate: path.into(),
        authority: key.version.to_string(),
        kind,
        serial: new.serial(),
        subject: &subject,
        names: request.names().texts(),
        not_after,
    };
    let (serial, names) = (new.serial(), named(&subject, request.names()));
    target.write(&text, line, |path| format!("{path}: certificate {serial} for {names}, until {not_after}"))
}

/// The names of a certificate in one line.
fn named(subject: &str, names: &AlternativeNames) -> String {
    let subject = (!subject.is_empty()).then(|| subject.to_owned());
    let all: Vec<_> = subject.into_iter().chain(names.texts()).collect();
    escape_text(&all.join(", ")).into_owned()
}

/// From when on, and until when, a certificate is valid: seconds since 1970, and the end again.
fn life(valid_for: Duration) -> Result<((u64, u64), Timestamp)> {
    if valid_for.is_zero() {
        return Err(Error::new("usage", "--valid-for: it must be longer than 0s"));
    }
    let now = Timestamp::now()?.unix_millis() / 1000;
    let end = now.saturating_add(valid_for.as_secs());
    let not_after = Timestamp::from_unix_millis(end.saturating_mul(1000))?;
    Ok(((now.saturating_sub(SKEW_SECONDS), end), not_after))
}

fn random() -> Result<[u8; 16]> {
    let mut bytes = [0; 16];
    generate_random(&mut bytes)?;
    Ok(bytes)
}

fn read<T>(
    path: &Path,
    code: &'static str,
    parse: impl FnOnce(&[u8]) -> std::result::Result<T, FormatError>,
) -> Result<T> {
    let about = |error: Error| error.about(escape_path(path));
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_FILE_LEN + 1).read_to_end(&mut bytes));
    read.map_err(|error| about(Error::io("cannot read", &error)))?;
    parse(&bytes).map_err(|error| about(Error::new(code, error.to_string())))
}

/// What is written in PEM.
#[derive(Clone, Copy)]
enum PemKind {
    Request,
    Certificate,
}

impl PemKind {
    fn name(self) -> &'static str {
        match self {
            Self::Request => "a request for a certificate",
            Self::Certificate => "a certificate",
        }
    }

    /// How such a file begins.
    fn beginning(self) -> &'static [u8] {
        match self {
            Self::Request => b"-----BEGIN CERTIFICATE REQUEST-----",
            Self::Certificate => b"-----BEGIN CERTIFICATE-----",
        }
    }
}

/// Where a text in PEM goes, and what is reported of it.
struct Target<'a> {
    report: &'a ReportArgs,
    path: Option<&'a Path>,
}

impl<'a> Target<'a> {
    /// # Errors
    /// There is another file than one with such a content, or JSON has nowhere to go.
    fn new(report: &'a ReportArgs, path: Option<&'a Path>, kind: PemKind) -> Result<Self> {
        match path {
            Some(path) => {
                atomic::check_replaceable(path, kind.name(), |found| found.starts_with(kind.beginning()))?
            }
            None if report.json => {
                let message = format!("with --json, {} cannot go to standard output", kind.name());
                return Err(Error::new("usage", message).hint("name a file with --output"));
            }
            None => {}
        }
        Ok(Self { report, path })
    }

    fn write<L: Serialize>(
        &self,
        text: &str,
        line: impl FnOnce(&Path) -> L,
        told: impl FnOnce(&str) -> String,
    ) -> Result<()> {
        let Some(path) = self.path else {
            let mut out = Out::stdout();
            out.bytes(text.as_bytes())?;
            return out.flush();
        };
        atomic::write(path, |file| file.write_all(text.as_bytes()))?;
        let mut out = Out::after(format!("{} was written", escape_path(path)));
        if self.report.json {
            out.json(&line(path))?;
        } else if !self.report.quiet {
            out.line(told(&escape_path(path)))?;
        }
        out.flush()
    }
}
