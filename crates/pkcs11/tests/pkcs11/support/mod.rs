//! A running service and a token of SoftHSM with the same keys.
//!
//! A module is initialized once in a process, and reads where its tokens are from variables. So
//! each test is started again as a process of its own, with these variables.

pub(crate) mod codes;
pub(crate) mod raw;

use bulla_testing::serving::{Serving, settings};
use bulla_testing::{Done, Home, program};
use raw::Module;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Where Debian's package softhsm2 has the library.
const SOFTHSM: &str = "/usr/lib/softhsm/libsofthsm2.so";
const SOFTHSM_PIN: &str = "1234";
/// The token of SoftHSM, and the slot of ours that needs a PIN.
pub(crate) const TOKEN: &str = "bulla test";
/// The slot that reads its token from a file.
pub(crate) const OPEN: &str = "bulla open";
/// The slot whose token is for the key `p256` alone.
pub(crate) const ONE: &str = "bulla one";

const FOLDER: &str = "BULLA_PKCS11_TEST";
/// Where SoftHSM, and where we read the settings.
const SOFTHSM_CONFIG: &str = "SOFTHSM2_CONF";
pub(crate) const CONFIG: &str = "BULLA_PKCS11_CONFIG";

/// What a module does.
const OPERATIONS: [&str; 10] = [
    "sign",
    "verify",
    "read",
    "create",
    "destroy",
    "encrypt",
    "decrypt",
    "mac",
    "verify_mac",
    "derive_shared_secret",
];

/// The keys of both: their labels, what makes them, and the algorithms' names in the service.
pub(crate) const KEYS: [(&str, &[&str]); 4] = [
    ("ed", &["-algorithm", "ed25519"]),
    ("p256", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]),
    ("p384", &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"]),
    ("rsa", &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]),
];

/// Our module: cargo builds it beside this program, and the test command keeps it with the
/// programs.
pub(crate) fn module_path() -> String {
    const NAME: &str = "libbulla_pkcs11.so";
    match std::env::var_os("BULLA_TEST_PROGRAMS") {
        Some(_) => program(NAME),
        None => {
            let test = std::env::current_exe().expect("this program");
            test.with_file_name(NAME).into_os_string().into_string().expect("a plain name")
        }
    }
}

/// Runs `body`, the test of that whole name, in a process of its own, with a folder for SoftHSM.
pub(crate) fn apart(test: &str, body: impl FnOnce(&TestFolder)) {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return body(&TestFolder::new(folder.into()));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut again = Command::new(std::env::current_exe().expect("this program"));
    again.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(FOLDER, folder.path());
    let place = |name| folder.path().join(name);
    again.env(SOFTHSM_CONFIG, place("softhsm2.conf")).env(CONFIG, place("pkcs11.toml"));
    let done = Done::of(&mut again);
    assert!(
        done.code == Some(0) && done.stdout.contains("1 passed"),
        "{:?}\n{}\n{}",
        done.output.status,
        done.stdout,
        done.stderr
    );
}

/// The folder with the settings of both modules, and a home for the service.
pub(crate) struct TestFolder {
    folder: PathBuf,
    pub(crate) home: Home,
}

/// One module with a token to test.
pub(crate) struct Token {
    pub(crate) module: Module,
    pub(crate) pin: String,
}

impl TestFolder {
    fn new(folder: PathBuf) -> Self {
        let place = Self { folder, home: Home::new() };
        for (key, arguments) in KEYS {
            let mut openssl = place.home.program("openssl");
            openssl.arg("genpkey").args(arguments).args(["-out", &format!("{key}.pem")]);
            Done::of(&mut openssl).exits(0);
        }
        place
    }

    /// A place for programs, which load the modules themselves.
    pub(crate) fn in_this_process() -> (TempDir, Self) {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Self::new(folder.path().to_owned());
        (folder, place)
    }

    /// A token of SoftHSM with the keys.
    pub(crate) fn softhsm(&self) -> Token {
        let tokens = self.folder.join("tokens");
        std::fs::create_dir(&tokens).expect("a folder");
        let config = self.folder.join("softhsm2.conf");
        let tokens = tokens.display();
        let text =
            format!("directories.tokendir = {tokens}\nobjectstore.backend = file\nlog.level = ERROR\n");
        std::fs::write(&config, text).expect("the settings are written");
        let util = |arguments: &[&str]| {
            let mut command = self.home.program("softhsm2-util");
            command.args(arguments).args(["--pin", SOFTHSM_PIN]).env(SOFTHSM_CONFIG, &config);
            Done::of(&mut command).exits(0)
        };
        util(&["--init-token", "--free", "--label", TOKEN, "--so-pin", "56789"]);
        for (number, (key, _)) in KEYS.iter().enumerate() {
            let (file, id) = (format!("{key}.pem"), format!("{number:02}"));
            util(&["--import", &file, "--token", TOKEN, "--label", key, "--id", &id]);
        }
        Token { module: Module::load(Path::new(SOFTHSM)), pin: SOFTHSM_PIN.to_owned() }
    }

    /// A service with the keys, and settings of our module for it.
    pub(crate) fn service(&self) -> (Serving<'_>, Token) {
        let home = &self.home;
        home.run(["keystore", "init"]).exits(0);
        settings(home, "");
        // The command has no RSA, and no other curve. While the service runs, nobody else has the
        // keystore, and a token for one key is made by the keystore.
        let (here, there) = KEYS.split_at(2);
        here.iter().for_each(|(key, _)| self.import(key, &[]));
        let token = self.token(&OPERATIONS, &[]);
        home.write_secret("token", &token);
        home.write_secret("token-one", self.token(&OPERATIONS, &["--key", "p256"]));
        home.write_secret("token-reads", self.token(&["read"], &[]));
        let serving = Serving::start(home);
        there.iter().for_each(|(key, _)| self.import(key, &["--server", "unix:socket"]));
        let url = format!("unix:{}", home.path("socket").display());
        let file = |name| home.path(name).display().to_string();
        let text = format!(
            "[[slot]]\nlabel = {TOKEN:?}\nurl = {url:?}\n\n\
            [[slot]]\nlabel = {OPEN:?}\nurl = {url:?}\ntoken_file = {:?}\n\n\
            [[slot]]\nlabel = {ONE:?}\nurl = {url:?}\ntoken_file = {:?}\n",
            file("token"),
            file("token-one"),
        );
        std::fs::write(self.folder.join("pkcs11.toml"), text).expect("the settings are written");
        (serving, Token { module: Module::load(Path::new(&module_path())), pin: token })
    }

    fn import(&self, key: &str, more: &[&str]) {
        let file = format!("{key}.pem");
        // An Ed25519 key signs messages, and never digests.
        let digests = if key == "ed" { &[][..] } else { &["--signs-digests"] };
        self.home.run([&["keys", "import", key, &file], digests, more].concat()).exits(0);
    }

    /// A token of the service that permits these operations.
    fn token(&self, operations: &[&str], more: &[&str]) -> String {
        let mut arguments = vec!["token", "new", "--expires", "1h"];
        arguments.extend(operations.iter().flat_map(|operation| ["--operation", operation]));
        arguments.extend(more);
        self.home.run(arguments).exits(0).stdout.trim().to_owned()
    }

    /// Our settings' file.
    pub(crate) fn config(&self) -> PathBuf {
        self.folder.join("pkcs11.toml")
    }
}
