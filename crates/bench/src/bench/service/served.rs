//! A running service, on a processor of its own.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::{Context, build_program, quiet};
use serde_json::{Value, json};

use super::{
    cases::{KEYS, Way, label},
    load::Caller,
};

/// The processor of the service; the load has the next one.
pub(super) const SERVICE: &str = "0";
pub(super) const LOAD: &str = "1";

/// The command, built for speed.
pub(super) struct Built {
    pub(super) program: PathBuf,
    pub(super) folder: PathBuf,
}

impl Built {
    pub(super) fn new(context: &Context) -> Result<Self> {
        Self::with(context, &[])
    }

    /// A command with keystores in etcd.
    pub(super) fn with_etcd(context: &Context) -> Result<Self> {
        Self::with(context, &["--features", "bulla-server/etcd"])
    }

    fn with(context: &Context, features: &[&str]) -> Result<Self> {
        let mut build = context.cargo();
        build.args(["build", "--profile", "dist", "-p", "bulla", "-p", "bulla-remote", "-p", "bulla-server"]);
        build.args(features);
        Ok(Self::of(context, build_program(&mut build)?))
    }

    /// A command that was built before.
    pub(super) fn of(context: &Context, program: PathBuf) -> Self {
        Self { program, folder: context.target.join("bench-service") }
    }
}

/// A service that runs until it is dropped.
pub(super) struct Served {
    process: Child,
    pub(super) address: String,
    /// The address for TLS.
    pub(super) tls_address: String,
    pub(super) token: String,
    /// Where requests are written for the programs that make the load.
    pub(super) folder: PathBuf,
}

impl Served {
    /// A new keystore with its keys and a token for them, and a service over it.
    pub(super) fn start(built: &Built, way: Way) -> Result<Self> {
        let folder = built.folder.join(way.name());
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let keystore = folder.join(KEYSTORE);
        let bulla = |arguments: &[&str]| {
            quiet(Command::new(&built.program).args(arguments).env("BULLA_KEYSTORE", &keystore))
        };
        bulla(&["keystore", "init"])?;
        bulla(&["keys", "create", ISSUER, "--purpose", "jwt-issuer"])?;
        if matches!(way, Way::AtCheckpoints | Way::Grouped) {
            bulla(&["log", "init"])?;
        }
        let operations = OPERATIONS.iter().flat_map(|operation| ["--operation", operation]);
        let token =
            bulla(&["token", "new", "--expires", "1d"].into_iter().chain(operations).collect::<Vec<_>>())?;
        let (address, tls_address) = (free_address()?, free_address()?);
        fs::write(folder.join(CONFIG), settings(&folder, way, &address, &tls_address)?)?;
        let process = spawn(built, &folder)?;
        let served = Self { process, address, tls_address, token: token.trim().to_owned(), folder };
        served.wait()?;
        for key in 0..KEYS {
            served.post("/api/v1/keys", &json!({ "label": label(key) }))?;
        }
        Ok(served)
    }

    /// Stops the service and starts it again. Returns the time from the start to the first answer
    /// to a request to sign.
    pub(super) fn restart(&mut self, built: &Built) -> Result<Duration> {
        quiet(Command::new("kill").arg(self.process.id().to_string()))?;
        self.process.wait()?;
        let start = Instant::now();
        self.process = spawn(built, &self.folder)?;
        let sign = format!("/api/v1/keys/{}/sign", label(0));
        while self.post(&sign, &json!({ "message": "" })).is_err() {
            ensure!(start.elapsed() < Duration::from_secs(60), "the service does not answer");
            thread::sleep(Duration::from_millis(5));
        }
        Ok(start.elapsed())
    }

    /// The process of the service: `taskset` has become it.
    pub(super) fn process(&self) -> u32 {
        self.process.id()
    }

    fn wait(&self) -> Result<()> {
        let start = Instant::now();
        while TcpStream::connect(&self.address).is_err() {
            ensure!(start.elapsed() < Duration::from_secs(30), "the service does not listen");
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// The service's answer to one request.
    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value> {
        Caller::of(&self.address, &self.token)?.post(path, body)
    }

    /// A JWT for the role. The service itself is its issuer, and fetches the keys from itself.
    pub(super) fn jwt(&self) -> Result<Value> {
        let claims = json!({ "sub": "load", "aud": ISSUER });
        let path = format!("/api/v1/keys/{ISSUER}/sign-jwt");
        Ok(self.post(&path, &json!({ "claims": claims }))?["jwt"].clone())
    }

    /// The memory that the service holds, in MB.
    pub(super) fn memory(&self) -> Result<f64> {
        used_memory(self.process.id())
    }
}

/// What the token permits.
const OPERATIONS: [&str; 6] = ["sign", "verify", "create", "encrypt", "decrypt", "mac"];

/// The label of the key that signs JWTs, which is also the audience, and the role for them.
const ISSUER: &str = "issuer";
pub(super) const ROLE: &str = "load";

/// The names of the configuration and the keystore in the folder of a service.
const CONFIG: &str = "serve.toml";
const KEYSTORE: &str = "keystore";

fn spawn(built: &Built, folder: &Path) -> Result<Child> {
    let mut command = Command::new("taskset");
    command.args(["-c", SERVICE]).arg(&built.program).args(["serve", "--config"]).arg(folder.join(CONFIG));
    command.env("BULLA_KEYSTORE", folder.join(KEYSTORE)).stdin(Stdio::null()).stderr(Stdio::null());
    command.spawn().context("cannot start taskset")
}

pub(super) fn free_address() -> Result<String> {
    Ok(format!("127.0.0.1:{}", TcpListener::bind("127.0.0.1:0")?.local_addr()?.port()))
}

/// The configuration of the service, with a new certificate beside it.
fn settings(folder: &Path, way: Way, address: &str, tls_address: &str) -> Result<String> {
    let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
    let mut openssl = Command::new("openssl");
    openssl.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]);
    openssl.args(["-subj", "/CN=localhost", "-out"]).arg(&certificate).arg("-keyout").arg(&key);
    quiet(&mut openssl)?;
    let durability = if way == Way::AtCheckpoints { "at-checkpoints" } else { "grouped" };
    let issuer = format!("http://{address}");
    let logins = format!(
        "[jwt]\nissuer = \"{issuer}\"\n[[jwt.key]]\ntenant = \"local\"\nlabel = \"{ISSUER}\"\n\
         audiences = [\"{ISSUER}\"]\nmax_lifetime_seconds = 3600\n\
         [[issuer]]\nname = \"self\"\nissuer = \"{issuer}\"\njwks_url = \"{issuer}/.well-known/jwks.json\"\n\
         [[role]]\nname = \"{ROLE}\"\nissuer = \"self\"\naudiences = [\"{ISSUER}\"]\nsubjects = [\"load\"]\n\
         tenant = \"local\"\noperations = [\"sign\"]\n"
    );
    Ok(format!(
        "[service]\nthreads = 1\n[audit]\ndurability = \"{durability}\"\n[[listen]]\naddress = \"{address}\"\n\
         [[listen]]\naddress = \"{tls_address}\"\ntls = {{ certificate = {certificate:?}, key = {key:?} }}\n\
         {logins}"
    ))
}

impl Drop for Served {
    fn drop(&mut self) {
        // It is measured and holds nothing that matters.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn proc_file(process: u32, file: &str) -> PathBuf {
    ["/proc", &process.to_string(), file].iter().collect()
}

/// The memory that a process holds, in MB.
pub(super) fn used_memory(process: u32) -> Result<f64> {
    let status = fs::read_to_string(proc_file(process, "status"))?;
    Ok(number_in(&status, "VmRSS:")? / 1000.0)
}

/// The most memory that a process ever held, in MB.
pub(super) fn max_used_memory(process: u32) -> Result<f64> {
    let status = fs::read_to_string(proc_file(process, "status"))?;
    Ok(number_in(&status, "VmHWM:")? / 1000.0)
}

/// The bytes that a process has written, and that the system has passed on to a disk.
pub(super) fn written_bytes(process: u32) -> Result<f64> {
    number_in(&fs::read_to_string(proc_file(process, "io"))?, "write_bytes:")
}

/// The seconds for which the threads of a process have computed. Those of threads that have ended
/// are not in it.
///
/// `/proc/PID/stat` has them too, but counts hundredths of a second: an idle node uses fewer.
pub(super) fn cpu_seconds(process: u32) -> Result<f64> {
    let mut nanoseconds = 0.0;
    for thread in fs::read_dir(proc_file(process, "task"))? {
        // A thread may end meanwhile.
        let Ok(text) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        nanoseconds += text.split(' ').next().and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    }
    Ok(nanoseconds / 1e9)
}

/// The number in the line that begins with `name`.
fn number_in(text: &str, name: &str) -> Result<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let digits = line.and_then(|line| line.split_whitespace().next());
    digits.and_then(|digits| digits.parse().ok()).with_context(|| format!("no {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{process, time::Instant};

    #[test]
    fn this_process_has_memory_and_computes() {
        let this = process::id();
        assert!(used_memory(this).unwrap() > 0.1);
        assert!(max_used_memory(this).unwrap() >= used_memory(this).unwrap() / 2.0);
        let before = cpu_seconds(this).unwrap();
        let start = Instant::now();
        while start.elapsed().as_millis() < 50 {}
        assert!(cpu_seconds(this).unwrap() > before);
        assert!(written_bytes(this).unwrap() >= 0.0);
    }

    #[test]
    fn a_number_is_the_first_word_after_its_name() {
        assert_eq!(number_in("a: 1\nVmRSS:\t 512 kB\n", "VmRSS:").unwrap(), 512.0);
        assert!(number_in("VmRSS:\tmuch\n", "VmRSS:").is_err());
    }
}
