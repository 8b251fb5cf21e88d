//! A `bulla serve` with TLS for the tests of clients, and the certificates that it and they use.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use bulla_devtools::quiet;

use super::serving::{Prepared, Serving};

/// The host in the service's addresses.
const HOST: &str = "127.0.0.1";

/// A service that listens at three addresses: with a good certificate, with that of another host,
/// and with one that has expired.
pub(super) struct ServingTls {
    _service: Serving,
    folder: PathBuf,
}

impl ServingTls {
    /// Starts a service that knows a client by its certificate `client.pem`.
    ///
    /// The files in the folder of [`ServingTls::named_in`] are: `addresses.json`, with the
    /// addresses `good`, `other-host` and `expired`; `authority.pem`, which issued all
    /// certificates; `other-authority.pem`, which issued none; and the client certificates
    /// `client.pem` and `expired-client.pem`, with their keys `client.key` and
    /// `expired-client.key`.
    pub(super) fn start(prepared: &Prepared<'_>) -> Result<Self> {
        let folder = prepared.path("tls");
        fs::create_dir(&folder)?;
        authority(&folder, "other-authority")?;
        authority(&folder, "authority")?;
        certify(&folder, "good", HOST, Until::Tomorrow)?;
        certify(&folder, "other-host", "127.0.0.2", Until::Tomorrow)?;
        certify(&folder, "expired", HOST, Until::Yesterday)?;
        certify(&folder, "client", HOST, Until::Tomorrow)?;
        certify(&folder, "expired-client", HOST, Until::Yesterday)?;
        let listeners = ["good", "other-host", "expired"];
        let listen: String = listeners.iter().map(|name| listener(&folder, name)).collect();
        let client = digest(&folder.join("client.pem"))?;
        let identity =
            format!("[[caller]]\nname = \"client\"\ntenant = \"local\"\ncertificate_sha256 = \"{client}\"\n");
        let settings = prepared.path("serve.toml");
        fs::write(&settings, listen + &identity)?;
        let (service, addresses) =
            Serving::listening_at::<3>(prepared.serve_command().arg("--config").arg(settings))?;
        let addresses: serde_json::Map<_, _> =
            listeners.iter().map(|&name| name.to_owned()).zip(addresses.map(Into::into)).collect();
        fs::write(folder.join("addresses.json"), serde_json::Value::from(addresses).to_string())?;
        Ok(Self { _service: service, folder })
    }

    /// Tells a client's test where the files are.
    pub(super) fn named_in<'a>(&self, client: &'a mut Command) -> &'a mut Command {
        client.env("BULLA_TLS", &self.folder)
    }
}

fn listener(folder: &Path, name: &str) -> String {
    let path = |name: String| folder.join(name);
    let (certificate, key) = (path(format!("{name}.pem")), path(format!("{name}.key")));
    let clients = path("authority.pem".to_owned());
    format!(
        "[[listen]]\naddress = \"{HOST}:0\"\ntls = {{ certificate = {certificate:?}, key = {key:?}, client_ca = {clients:?} }}\n"
    )
}

#[derive(Clone, Copy)]
enum Until {
    Yesterday,
    Tomorrow,
}

/// Makes an authority in `NAME.pem` and `NAME.key`.
fn authority(folder: &Path, name: &str) -> Result<()> {
    let mut openssl = request(folder, name);
    openssl.args(["-x509", "-days", "2", "-subj", &format!("/CN={name}"), "-out", &format!("{name}.pem")]);
    openssl.args([
        "-addext",
        "basicConstraints=critical,CA:TRUE",
        "-addext",
        "keyUsage=critical,keyCertSign",
    ]);
    quiet(&mut openssl).map(|_| ())
}

/// Has the authority issue a certificate for a host, which a server and a client may use, in
/// `NAME.pem` and `NAME.key`.
fn certify(folder: &Path, name: &str, host: &str, until: Until) -> Result<()> {
    let (csr, extensions) = (format!("{name}.csr"), format!("{name}.ext"));
    quiet(request(folder, name).args(["-subj", &format!("/CN={name}"), "-out", &csr]))?;
    fs::write(
        folder.join(&extensions),
        format!(
            "subjectAltName=IP:{host}\nbasicConstraints=critical,CA:FALSE\nextendedKeyUsage=serverAuth,clientAuth\n"
        ),
    )?;
    let days = match until {
        Until::Yesterday => "-1",
        Until::Tomorrow => "1",
    };
    let mut openssl = Command::new("openssl");
    openssl.current_dir(folder).args(["x509", "-req", "-in", &csr, "-extfile", &extensions]);
    openssl.args(["-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial"]);
    openssl.args(["-days", days, "-out", &format!("{name}.pem")]);
    quiet(&mut openssl).map(|_| ())
}

/// `openssl req` with a new key in `NAME.key`.
fn request(folder: &Path, name: &str) -> Command {
    let mut openssl = Command::new("openssl");
    openssl.current_dir(folder).args([
        "req",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
    ]);
    openssl.args(["-keyout", &format!("{name}.key")]);
    openssl
}

/// The SHA-256 of a certificate, as the service's settings name it.
fn digest(certificate: &Path) -> Result<String> {
    let said = quiet(
        Command::new("openssl").args(["x509", "-noout", "-fingerprint", "-sha256", "-in"]).arg(certificate),
    )?;
    let (_, digits) = said.trim().split_once('=').context("openssl prints no fingerprint")?;
    Ok(digits.replace(':', "").to_ascii_lowercase())
}
