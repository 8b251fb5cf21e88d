//! The manual pages and the completions, as the built command prints them.

use anyhow::{Context as _, Result, ensure};

use super::launcher::Launcher;

/// The shells, and the file that each reads.
const SHELLS: [(&str, &str); 4] =
    [("bash", "bulla.bash"), ("zsh", "_bulla"), ("fish", "bulla.fish"), ("powershell", "bulla.ps1")];

/// The pages and completions that a command prints about itself.
#[derive(Debug)]
pub(super) struct Pages {
    /// The names and contents of the manual pages, such as `bulla-keys-new.1`.
    pub(super) manual: Vec<(String, String)>,
    /// The names and contents of the completions.
    pub(super) completions: Vec<(&'static str, String)>,
}

impl Pages {
    /// Asks the command.
    ///
    /// # Errors
    /// It fails.
    pub(super) fn of(command: &Launcher) -> Result<Self> {
        let mut manual = Vec::new();
        let mut open = vec![Vec::new()];
        while let Some(path) = open.pop() {
            let page = command.says(["man"].into_iter().chain(path.iter().map(String::as_str)))?;
            let name = ["bulla"].into_iter().chain(path.iter().map(String::as_str)).collect::<Vec<_>>();
            let name = name.join("-");
            for child in children(&name, &page) {
                open.push(path.iter().cloned().chain([child]).collect());
            }
            manual.push((format!("{name}.1"), page));
        }
        manual.sort();
        ensure!(manual.len() > 1, "the manual of bulla names no command");
        let completions = SHELLS.map(|(shell, file)| {
            command
                .says(["completions", shell])
                .map(|text| (file, text))
                .with_context(|| format!("completions for {shell}"))
        });
        Ok(Self { manual, completions: completions.into_iter().collect::<Result<_>>()? })
    }
}

/// The commands below `name` that its manual page lists: lines such as `bulla\-sign(1)`.
fn children(name: &str, page: &str) -> Vec<String> {
    let start = format!("{name}-");
    let plain = |line: &str| line.replace('\\', "");
    let child = |line: String| Some(line.strip_prefix(&start)?.strip_suffix("(1)")?.to_owned());
    let names = page.lines().map(plain).filter_map(child);
    // `help` only repeats the others.
    names.filter(|name| name != "help" && !name.contains(' ')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_the_commands_below_it() {
        let page = ".TP\nbulla\\-audit\\-log(1)\nRecord\n.TP\nbulla\\-help(1)\nHelp\n.TP\nbulla\\-keys(1)\nsee bulla\\-keys(1)\n";
        assert_eq!(children("bulla", page), ["audit-log", "keys"]);
        assert!(children("bulla-keys", page).is_empty());
    }
}
