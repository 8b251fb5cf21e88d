//! The platforms that get binaries.

use anyhow::Result;
use bulla_devtools::install::{self, DebianFile, DebianTool};
use clap::{ValueEnum, builder::PossibleValue};

/// The packages of a release that have programs, and the programs' names.
pub(super) const PROGRAMS: [(&str, &str); 5] = [
    ("bulla", "bulla"),
    ("bulla-audit", "bulla-audit"),
    ("bulla-remote", "bulla-remote"),
    ("bulla-remote", "age-plugin-bulla"),
    ("bulla-server", "bulla-serve"),
];

/// A platform that gets binaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Platform {
    /// Any Linux on x86-64: the command is static.
    LinuxX86,
    /// Any Linux on AArch64: the command is static.
    LinuxArm,
    /// Debian and its like on x86-64: the command uses the system's C library, and so can load the
    /// library of a PKCS #11 device.
    DebianX86,
    /// Windows on x86-64.
    WindowsX86,
}

/// The packages that a platform's users install.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PackageFormat {
    /// `.tar.gz`
    Tar,
    /// `.zip`
    Zip,
    /// `.deb`
    Deb,
}

/// A header that ring's C code needs. Debian's compiler for AArch64 does not bring it, and the
/// compilers for x86-64 do.
const ARM_HEADER: DebianFile =
    DebianFile { path: "/usr/aarch64-linux-gnu/include/string.h", package: "libc6-dev-arm64-cross" };

impl Platform {
    pub(super) const ALL: [Self; 4] = [Self::LinuxX86, Self::LinuxArm, Self::DebianX86, Self::WindowsX86];

    /// The name of the target for the Rust compiler.
    pub(super) const fn triple(self) -> &'static str {
        match self {
            Self::LinuxX86 => "x86_64-unknown-linux-musl",
            Self::LinuxArm => "aarch64-unknown-linux-musl",
            Self::DebianX86 => "x86_64-unknown-linux-gnu",
            Self::WindowsX86 => "x86_64-pc-windows-gnu",
        }
    }

    pub(super) const fn form(self) -> PackageFormat {
        match self {
            Self::LinuxX86 | Self::LinuxArm => PackageFormat::Tar,
            Self::DebianX86 => PackageFormat::Deb,
            Self::WindowsX86 => PackageFormat::Zip,
        }
    }

    /// The features of the command. Who installs a binary cannot add one.
    pub(super) const fn features(self) -> &'static str {
        match self {
            Self::LinuxX86 | Self::LinuxArm | Self::DebianX86 => "etcd,otel",
            // The service there is for trials.
            Self::WindowsX86 => "",
        }
    }

    /// The compiler of C, for ring, which also links.
    pub(super) const fn compiler(self) -> DebianTool {
        match self {
            Self::LinuxX86 | Self::DebianX86 => DebianTool { program: "gcc", package: "gcc" },
            Self::LinuxArm => {
                DebianTool { program: "aarch64-linux-gnu-gcc", package: "gcc-aarch64-linux-gnu" }
            }
            Self::WindowsX86 => {
                DebianTool { program: "x86_64-w64-mingw32-gcc", package: "gcc-mingw-w64-x86-64-win32" }
            }
        }
    }

    /// The file name of the command.
    pub(super) const fn command(self) -> &'static str {
        match self {
            Self::WindowsX86 => "bulla.exe",
            _ => "bulla",
        }
    }

    /// The file names of the command and of the programs that it starts: they are in one folder.
    pub(super) fn programs(self) -> [String; 5] {
        let end = if self == Self::WindowsX86 { ".exe" } else { "" };
        PROGRAMS.map(|(_, program)| format!("{program}{end}"))
    }

    /// Installs what a build for it needs.
    ///
    /// # Errors
    /// The tool that is missing and cannot be installed.
    pub(super) fn prepare(self) -> Result<()> {
        install::rust_target(self.triple())?;
        install::debian(&self.compiler())?;
        if self == Self::LinuxArm {
            install::debian_file(&ARM_HEADER)?;
        }
        match self.form() {
            PackageFormat::Tar => {}
            PackageFormat::Zip => install::debian(&DebianTool { program: "zip", package: "zip" })?,
            PackageFormat::Deb => {
                install::debian(&DebianTool { program: "dpkg-deb", package: "dpkg" })?;
                install::debian(&DebianTool { program: "dpkg-shlibdeps", package: "dpkg-dev" })?;
            }
        }
        if self.features().contains("etcd") { install::protobuf() } else { Ok(()) }
    }
}

impl ValueEnum for Platform {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.triple()))
    }
}
