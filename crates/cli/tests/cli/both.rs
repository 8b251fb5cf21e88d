//! Two homes with equal keystores, one of them served: a command must print the same and exit the
//! same in both.

use crate::serving::{Serving, settings};
use crate::support::{Done, Home};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A home with a keystore that has keys of every kind and an audit log, and files to sign.
pub(crate) fn prepared() -> Home {
    let home = Home::new();
    for args in [
        &["keystore", "init"][..],
        &["log", "init"],
        &["keys", "create", "releases"],
        &["keys", "create", "transport", "--algorithm", "x-wing"],
        &["keys", "create", "moving", "--exportable"],
        &["token", "new", "--operation", "export", "--expires", "1h", "--output", "export.token"],
    ] {
        home.run(args).exits(0);
    }
    home.write("a", "content");
    home.write("photos/1", "one");
    home.write("photos/2", "two");
    home
}

/// The same home once more.
pub(crate) fn copied(from: &Home) -> Home {
    let to = Home::new();
    copy(&from.keystore(), &to.keystore());
    copy(&from.work(), &to.work());
    to
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// The command in a home whose service it uses; it knows no keystore.
pub(crate) fn remote(home: &Home) -> Command {
    let mut command = home.command();
    command.env("BULLA_ADDR", "unix:socket").env("BULLA_KEYSTORE", home.path("none"));
    command
}

/// A service with every right for this user.
pub(crate) fn serve(home: &Home) -> Serving<'_> {
    settings(home, "");
    let text = String::from_utf8(home.read("serve.toml")).unwrap();
    home.write("serve.toml", text + "can_mint_tokens = true\n");
    Serving::start(home)
}

/// Replaces the parts that differ between two runs on equal keystores: folders, times, new ids,
/// keys and signatures.
pub(crate) struct Normal {
    ids: HashMap<String, usize>,
    home: String,
}

impl Normal {
    fn new(home: &Home) -> Self {
        let root = home.work().parent().unwrap().to_string_lossy().into_owned();
        Self { ids: HashMap::new(), home: root }
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = text.replace(&self.home, "HOME");
        // Some entries are from before the service.
        for actor in [format!("uid:{}", rustix::process::getuid().as_raw()), "me".to_owned()] {
            text = text.replace(&format!("  {actor}  "), "  ACTOR  ");
            text = text.replace(&format!("\"who\":\"{actor}\""), "\"who\":\"ACTOR\"");
        }
        let text = text.replace("HOME/home/bulla/audit-log", "LOG").replace("unix:socket", "LOG");
        let mut out = String::new();
        let mut rest = text.as_str();
        while let Some(first) = rest.chars().next() {
            let length = if is_like(rest, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") {
                let next = self.ids.len();
                out += &format!("ID{}", self.ids.entry(rest[..36].to_owned()).or_insert(next));
                36
            } else if is_like(rest, "dddd-dd-ddTdd:dd:dd.dddZ") {
                out += "TIME";
                24
            } else if is_like(rest, "timestamp:dddddddddd") {
                out += "TIMESTAMP";
                20
            } else {
                let run = |more: &[u8]| {
                    rest.bytes()
                        .take_while(|byte| byte.is_ascii_alphanumeric() || more.contains(byte))
                        .count()
                };
                let (word, base64) = (run(b""), run(b"+/"));
                let is_digest = base64 == 64 && rest[..64].bytes().all(|byte| byte.is_ascii_hexdigit());
                if base64 >= 40 && !is_digest {
                    out += "BASE64";
                    base64
                } else {
                    let length = word.max(first.len_utf8());
                    out += &rest[..length];
                    length
                }
            };
            rest = &rest[length..];
        }
        out.replace("BASE64==", "BASE64").replace("BASE64=", "BASE64")
    }
}

/// Whether a text begins like a pattern: `x` is a hexadecimal digit, `d` a decimal one.
fn is_like(text: &str, pattern: &str) -> bool {
    text.len() >= pattern.len()
        && text.bytes().zip(pattern.bytes()).all(|(byte, like)| match like {
            b'x' => byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase(),
            b'd' => byte.is_ascii_digit(),
            _ => byte == like,
        })
}

/// A command's exit status and output, in comparable form.
pub(crate) fn outcome(done: &Done, normal: &mut Normal) -> (Option<i32>, String, String) {
    (done.code, normal.text(&done.stdout), normal.text(&done.stderr))
}

/// Two homes with the same keys, one of which is served.
pub(crate) struct Both<'a> {
    here: &'a Home,
    there: &'a Home,
    pub(crate) normal_here: Normal,
    pub(crate) normal_there: Normal,
}

impl<'a> Both<'a> {
    pub(crate) fn new(here: &'a Home, there: &'a Home) -> Self {
        let (normal_here, normal_there) = (Normal::new(here), Normal::new(there));
        Self { here, there, normal_here, normal_there }
    }

    /// Runs a command here and there, which must end and print the same.
    #[track_caller]
    pub(crate) fn same(&mut self, args: &[&str], code: i32) -> Done {
        self.same_with(args, b"", code)
    }

    #[track_caller]
    pub(crate) fn same_with(&mut self, args: &[&str], input: &[u8], code: i32) -> Done {
        let here = Done::with_input(self.here.command().args(args), input);
        let there = Done::with_input(remote(self.there).args(args), input);
        let expected = outcome(&here, &mut self.normal_here);
        let found = outcome(&there, &mut self.normal_there);
        assert_eq!(found, expected, "{args:?}\nthere:\n{}{}", there.stdout, there.stderr);
        assert_eq!(here.code, Some(code), "{args:?}\n{}{}", here.stdout, here.stderr);
        there
    }

    /// Writes the same file in both homes.
    pub(crate) fn write(&self, name: &str, content: &str) {
        self.here.write(name, content);
        self.there.write(name, content);
    }
}
