//! A `bulla serve` that runs, for those who ask it something.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

use anyhow::{Context as _, Result, bail};
use bulla_devtools::quiet;

/// A folder with a keystore, before a service runs on it.
pub(super) struct Prepared<'a> {
    bulla: &'a Path,
    folder: PathBuf,
}

impl<'a> Prepared<'a> {
    /// Makes a keystore in an empty folder.
    pub(super) fn new(bulla: &'a Path, folder: PathBuf) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let prepared = Self { bulla, folder };
        prepared.run(&["keystore", "init"])?;
        Ok(prepared)
    }

    /// Runs the command `bulla` on the keystore.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<String> {
        quiet(Command::new(self.bulla).args(arguments).arg("--keystore").arg(self.keystore()))
    }

    pub(super) fn keystore(&self) -> PathBuf {
        self.folder.join("keystore")
    }

    /// A file in the folder, beside the keystore.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The command that serves the keystore.
    pub(super) fn serve_command(&self) -> Command {
        let mut serve = Command::new(self.bulla);
        serve.args(["serve", "--keystore"]).arg(self.keystore());
        serve
    }

    /// Starts the service, with a token that permits these operations.
    pub(super) fn serve(&self, operations: &[&str]) -> Result<Serving> {
        self.serve_with(operations, &[])
    }

    /// Does the same with settings, by the names of their variables.
    pub(super) fn serve_with(&self, operations: &[&str], settings: &[(&str, &str)]) -> Result<Serving> {
        let mut new = vec!["token", "new", "--expires", "1h", "--holder", "clients"];
        new.extend(operations.iter().flat_map(|operation| ["--operation", operation]));
        let token = self.run(&new)?.trim().to_owned();
        let mut serve = self.serve_command();
        serve.args(["--listen", "127.0.0.1:0"]).envs(settings.iter().copied());
        Serving::start(&mut serve, token)
    }
}

/// A service with its address, and a token that it knows.
pub(super) struct Serving {
    process: Child,
    pub(super) address: String,
    pub(super) token: String,
}

impl Serving {
    /// Starts a service with a keystore in memory, where every caller may do everything.
    pub(super) fn development(bulla: &Path) -> Result<Self> {
        Self::start(Command::new(bulla).args(["serve", "--dev", "--listen", "127.0.0.1:0"]), String::new())
    }

    fn start(serve: &mut Command, token: String) -> Result<Self> {
        let (mut service, [address]) = Self::listening_at(serve)?;
        (service.address, service.token) = (address, token);
        Ok(service)
    }

    /// Starts a service that listens at N addresses, and returns them in the order of its settings.
    pub(super) fn listening_at<const N: usize>(serve: &mut Command) -> Result<(Self, [String; N])> {
        let process =
            serve.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().context("cannot start bulla serve")?;
        let mut service = Self { process, address: String::new(), token: String::new() };
        let addresses = service.addresses(N)?;
        let addresses = addresses.try_into().ok().context("the service listens elsewhere, too")?;
        Ok((service, addresses))
    }

    /// The addresses that the service logs when it listens.
    fn addresses(&mut self, count: usize) -> Result<Vec<String>> {
        let errors = self.process.stderr.take().context("the service has no standard error")?;
        let mut lines = BufReader::new(errors).lines();
        let (mut addresses, mut said) = (Vec::new(), Vec::new());
        for line in lines.by_ref() {
            let line = line?;
            if let Some((_, address)) = line.split_once("listening on ") {
                addresses.push(address.split('"').next().unwrap_or_default().to_owned());
                if addresses.len() == count {
                    // What it says later must not fill the pipe.
                    thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("{line}")));
                    return Ok(addresses);
                }
            }
            said.push(line);
        }
        bail!("bulla serve ended: {}", said.join("; "))
    }

    /// Tells a client where the service is, and its token, as clients of Vault and ours are told.
    pub(super) fn named_in<'a>(&self, client: &'a mut Command) -> &'a mut Command {
        client.env("VAULT_ADDR", &self.address).env("VAULT_TOKEN", &self.token);
        client.env("BULLA_ADDR", &self.address).env("BULLA_TOKEN", &self.token)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

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
