//! Builds the command of one platform so that the same commit gives the same bytes, wherever it is
//! built.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use bulla_devtools::{Context, build_program, quiet};

use super::{
    archive, deb, files,
    launcher::Launcher,
    pages::Pages,
    platform::{PROGRAMS, PackageFormat, Platform},
    sbom,
    source::Source,
};

/// Builds what the platforms get, into `out`.
pub(super) fn all(context: &Context, platforms: &[Platform], out: &Path) -> Result<()> {
    let source = Source::head(context)?;
    files::empty(out)?;
    for platform in platforms {
        let work = context.target.join("dist-work");
        one(context, *platform, &source, &work, out)?;
    }
    println!("{} {}: {}", source.version, source.commit, out.display());
    Ok(())
}

/// Builds in the folder `work`, which may have an earlier build, and writes the files to publish to
/// `out`.
pub(super) fn one(
    context: &Context,
    platform: Platform,
    source: &Source,
    work: &Path,
    out: &Path,
) -> Result<()> {
    platform.prepare()?;
    fs::create_dir_all(work)?;
    let work = work.canonicalize()?;
    source.unpack(context, &work.join("source"))?;
    println!("building {} in {}", platform.triple(), work.display());
    let command = compile(context, platform, source, &work)?;
    let pages = Pages::of(&Launcher::new(context, platform, &command)?)?;
    match platform.form() {
        PackageFormat::Tar | PackageFormat::Zip => {
            archive::write(platform, source, &command, &pages, &work, out)?
        }
        PackageFormat::Deb => deb::write(source, &command, &pages, &work, out)?,
    }
    sbom::write(context, platform, source, &work, out)
}

/// Compiles the command and the programs beside it, and returns the command's path.
fn compile(context: &Context, platform: Platform, source: &Source, work: &Path) -> Result<PathBuf> {
    let triple = platform.triple();
    let compiler = platform.compiler().program;
    let variable = triple.replace('-', "_");
    let prefixes = prefixes(work)?;
    let mut cargo = context.cargo();
    cargo.current_dir(work.join("source"));
    cargo.args(["build", "--quiet", "--locked", "--profile=dist", "--target", triple]);
    cargo.args(PROGRAMS.map(|(package, _)| format!("--package={package}")));
    cargo.args(["--features", platform.features(), "--target-dir"]).arg(work.join("target"));
    cargo.env("CARGO_ENCODED_RUSTFLAGS", rust_flags(platform, &prefixes).join("\x1f"));
    cargo.env(format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase()), compiler);
    cargo.env(format!("CC_{variable}"), compiler);
    let maps: Vec<_> = prefixes.iter().map(|(from, to)| format!("-ffile-prefix-map={from}={to}")).collect();
    cargo.env(format!("CFLAGS_{variable}"), maps.join(" "));
    cargo.env("SOURCE_DATE_EPOCH", source.time.to_string());
    cargo.env("BULLA_COMMIT", &source.commit);
    let command = build_program(&mut cargo).with_context(|| format!("cannot build {triple}"))?;
    if platform == Platform::WindowsX86 {
        for program in platform.programs() {
            remove_random_names(&command.with_file_name(program))?;
        }
    }
    Ok(command)
}

/// Removes the symbols of import libraries. The compiler makes these libraries in folders with
/// random names, and `dlltool` makes symbols of the folders' names. Other symbols stay: `bulla
/// audit` finds functions by them.
fn remove_random_names(program: &Path) -> Result<()> {
    let mut objcopy = Command::new("x86_64-w64-mingw32-objcopy");
    objcopy.args(["--wildcard", "--preserve-dates"]);
    objcopy.args(["--strip-symbol", "_head_*_imports_lib", "--strip-symbol", "__*_imports_lib_iname"]);
    quiet(objcopy.arg(program))?;
    Ok(())
}

/// The folders whose names reach the program, in panics, and what stands there instead.
fn prefixes(work: &Path) -> Result<Vec<(String, &'static str)>> {
    let cargo = env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| Some(env::home_dir()?.join(".cargo"))).context("there is no CARGO_HOME")?;
    Ok(vec![(cargo.display().to_string(), "/cargo"), (work.display().to_string(), "/bulla")])
}

/// The flags of the Rust compiler. They replace those of the user's configuration.
fn rust_flags(platform: Platform, prefixes: &[(String, &str)]) -> Vec<String> {
    let mut flags: Vec<_> =
        prefixes.iter().map(|(from, to)| format!("--remap-path-prefix={from}={to}")).collect();
    if platform == Platform::WindowsX86 {
        // The linker would write the time of the build into the program.
        flags.push("-Clink-arg=-Wl,--no-insert-timestamp".to_owned());
    } else {
        // With full protection of relocations, the compiler calls each function of another crate
        // through a table, which the loader fills before `main`: tens of thousands of entries. With
        // partial protection it calls them directly. The linker then protects everything all the
        // same: docs/decisions/0295.
        flags.extend(["-Crelro-level=partial", "-Clink-arg=-Wl,-z,now"].map(str::to_owned));
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_this_machine_are_replaced() {
        let work = Path::new("/somewhere/else");
        let prefixes = prefixes(work).unwrap();
        for platform in Platform::ALL {
            let flags = rust_flags(platform, &prefixes);
            assert!(flags.contains(&"--remap-path-prefix=/somewhere/else=/bulla".to_owned()), "{platform:?}");
        }
    }

    #[test]
    fn programs_for_linux_are_linked_with_all_their_relocations_protected() {
        for platform in [Platform::LinuxX86, Platform::LinuxArm, Platform::DebianX86] {
            let flags = rust_flags(platform, &[]);
            let has = |flag: &str| flags.iter().any(|one| one == flag);
            assert!(has("-Crelro-level=partial") && has("-Clink-arg=-Wl,-z,now"), "{platform:?}");
        }
    }
}
