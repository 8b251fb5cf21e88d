//! `cargo xtask dist semver`: whether the version says what a release changes for callers of the
//! libraries.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::{
    Context,
    install::{self, CargoTool},
    quiet,
};

const SEMVER_CHECKS: CargoTool = CargoTool { name: "cargo-semver-checks", version: "0.51.0" };

/// Compares the libraries of HEAD with those of the release before it. Without such a release, it
/// says so.
///
/// # Errors
/// A change needs a higher version; or the history is not here.
pub(super) fn run(context: &Context) -> Result<()> {
    let Some(tag) = earlier(context)? else {
        println!("semver: no commit before HEAD has a tag v*, so there is no release to compare with");
        return Ok(());
    };
    println!("semver: compared with {tag}");
    let program = install::cargo_tool(context, &SEMVER_CHECKS)?;
    // Documentation is made with all features.
    install::protobuf()?;
    let mut check = Command::new(program);
    check.args(["semver-checks", "--workspace", "--baseline-rev", &tag]).current_dir(&context.root);
    let status = check.status().context("cannot start cargo-semver-checks")?;
    ensure!(status.success(), "the version must say what changed since {tag}: cargo-semver-checks: {status}");
    Ok(())
}

/// The newest release before HEAD.
fn earlier(context: &Context) -> Result<Option<String>> {
    let git = |args: &[&str]| quiet(Command::new("git").args(args).current_dir(&context.root));
    let shallow = git(&["rev-parse", "--is-shallow-repository"])?;
    ensure!(shallow.trim() == "false", "the tags are not all here: `git fetch --unshallow --tags` gets them");
    let tags =
        git(&["tag", "--list", "v[0-9]*", "--merged=HEAD", "--no-contains=HEAD", "--sort=-version:refname"])?;
    Ok(tags.lines().next().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    fn git(folder: &Path, args: &[&str]) {
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        quiet(Command::new("git").args(who).args(args).current_dir(folder)).unwrap();
    }

    #[test]
    fn the_release_before_head_is_found() {
        let folder = std::env::temp_dir().join(format!("bulla-xtask-semver-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let context = Context::new(folder.clone(), folder.clone());
        let commit = || git(&folder, &["commit", "--quiet", "--allow-empty", "--message=a"]);
        git(&folder, &["init", "--quiet"]);
        commit();
        // The release itself has none before it, and tags of other packages are none.
        git(&folder, &["tag", "v0.9.0"]);
        git(&folder, &["tag", "go/v9.0.0"]);
        assert_eq!(earlier(&context).unwrap(), None);
        commit();
        assert_eq!(earlier(&context).unwrap().as_deref(), Some("v0.9.0"));
        git(&folder, &["tag", "v0.10.0"]);
        commit();
        assert_eq!(earlier(&context).unwrap().as_deref(), Some("v0.10.0"));
        let shallow = folder.join("shallow");
        let from = format!("file://{}", folder.display());
        git(&folder, &["clone", "--quiet", "--depth=1", &from, "shallow"]);
        assert!(earlier(&Context::new(shallow.clone(), shallow)).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
