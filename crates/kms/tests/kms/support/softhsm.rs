//! A token of SoftHSM in a temporary folder.
//!
//! SoftHSM reads where its tokens are from a variable, once in a process. So each test is started
//! again as a process with that variable, and has its tokens for itself.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use bulla_kms::pkcs11::{DeviceConfig, PinSource};

use super::child::again;

/// Where Debian's package softhsm2 has the library.
pub(crate) const MODULE: &str = "/usr/lib/softhsm/libsofthsm2.so";
pub(crate) const LABEL: &str = "bulla test";
pub(crate) const PIN: &str = "a pin of 14 ch";

/// How often SoftHSM 2.6.1 may die in a test: it does so now and then when several threads use it,
/// and when the process ends (its issues 635 and 688). A test that fails is not repeated.
const ATTEMPTS: usize = 3;

const FOLDER: &str = "BULLA_KMS_TEST_SOFTHSM";
const CONFIGURATION: &str = "SOFTHSM2_CONF";

/// The folder of the tokens.
pub(crate) struct Hsm(PathBuf);

/// Runs `body`, the test of that whole name, with one token.
pub(crate) fn with_token(test: &str, body: impl FnOnce(&Hsm)) {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return body(&Hsm(folder.into()));
    }
    for _ in 0..ATTEMPTS {
        let output = with_new_token(test);
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        match output.status.signal() {
            Some(signal) => eprintln!("{test}: SoftHSM died of signal {signal}\n{}\n{}", said[0], said[1]),
            None => {
                let passed = output.status.success() && said[0].contains("1 passed");
                return assert!(passed, "{}\n{}", said[0], said[1]);
            }
        }
    }
    panic!("{test}: SoftHSM died {ATTEMPTS} times");
}

/// Starts the test again, with one token.
fn with_new_token(test: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let hsm = Hsm(folder.path().to_owned());
    fs::create_dir(hsm.tokens()).unwrap();
    let tokens = hsm.tokens().display().to_string();
    let configuration =
        format!("directories.tokendir = {tokens}\nobjectstore.backend = file\nlog.level = ERROR\n");
    fs::write(hsm.configuration(), configuration).unwrap();
    hsm.make_token(LABEL);
    again(test).env(FOLDER, folder.path()).env(CONFIGURATION, hsm.configuration()).output().unwrap()
}

impl Hsm {
    fn tokens(&self) -> PathBuf {
        self.0.join("tokens")
    }

    fn configuration(&self) -> PathBuf {
        self.0.join("softhsm2.conf")
    }

    /// A place for other files of the test.
    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    /// Makes another token.
    pub(crate) fn make_token(&self, label: &str) {
        let output = Command::new("softhsm2-util")
            .args(["--init-token", "--free", "--label", label, "--pin", PIN, "--so-pin", "87654321"])
            .env(CONFIGURATION, self.configuration())
            .output()
            .expect("softhsm2-util is there: it is in Debian's package softhsm2");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Takes all tokens away.
    pub(crate) fn remove(&self) {
        fs::rename(self.tokens(), self.0.join("removed")).unwrap();
    }

    /// Puts them back.
    pub(crate) fn put_back(&self) {
        fs::rename(self.0.join("removed"), self.tokens()).unwrap();
    }

    pub(crate) fn config(&self) -> DeviceConfig {
        DeviceConfig::new(MODULE, LABEL, PinSource::Given(PIN.into()))
    }
}
