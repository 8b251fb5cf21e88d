//! Runs a built command, on this processor or in an emulator.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;
use bulla_devtools::{
    Context,
    install::{self, DebianTool},
    quiet, wine,
};

use super::platform::Platform;

/// A command, and what runs it.
#[derive(Debug)]
pub(super) struct Launcher {
    /// The emulator, if this machine does not run the command itself.
    emulator: Option<&'static str>,
    environment: Vec<(&'static str, String)>,
    command: PathBuf,
}

impl Launcher {
    /// Installs the emulator if it is missing.
    ///
    /// # Errors
    /// It cannot be installed.
    pub(super) fn new(context: &Context, platform: Platform, command: &Path) -> Result<Self> {
        let (mut emulator, mut environment) = (None, Vec::new());
        match platform {
            Platform::LinuxX86 | Platform::DebianX86 => {}
            Platform::LinuxArm => {
                install::debian(&DebianTool { program: "qemu-aarch64", package: "qemu-user" })?;
                emulator = Some("qemu-aarch64");
            }
            Platform::WindowsX86 => {
                environment.extend(wine::environment(&wine::prepare(context)?));
                emulator = Some(wine::WINE.path);
            }
        }
        Ok(Self { emulator, environment, command: command.to_owned() })
    }

    /// The command without arguments, for its whole environment: what a user has set must not
    /// count.
    pub(super) fn start(&self, folder: &Path) -> Command {
        let mut command = match self.emulator {
            Some(emulator) => {
                let mut command = Command::new(emulator);
                command.arg(&self.command);
                command
            }
            None => Command::new(&self.command),
        };
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BULLA_"))
        {
            command.env_remove(name);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(folder);
        command
    }

    /// The text that it prints on its standard output.
    ///
    /// # Errors
    /// It fails.
    pub(super) fn says<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Result<String> {
        quiet(self.start(Path::new(".")).args(arguments))
    }
}
