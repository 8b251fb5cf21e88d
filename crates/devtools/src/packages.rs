//! The packages of the system that tests need: their names on Debian, on Fedora, and for Homebrew.

use std::collections::BTreeSet;

use crate::install::on_path;

/// Says that `package` is missing. [`missing_packages`] reads it.
pub(crate) fn missing(wanted: &str, package: &str) -> String {
    format!("{wanted} is missing: {INSTALL}{package}")
}

/// Stands before the name of a package that is missing.
const INSTALL: &str = "install the package ";

/// The packages, by their names on Debian, that a text calls missing: of this program, or of one
/// that it started.
pub fn missing_packages(text: &str) -> impl Iterator<Item = &str> {
    text.split(INSTALL).skip(1).filter_map(|rest| rest.split([':', ';', ' ', '\n']).next())
}

/// A system with packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackageSystem {
    /// Debian, and what is made from it.
    Debian,
    /// Fedora.
    Fedora,
    /// Homebrew, on macOS.
    Homebrew,
}

/// Packages whose name is not the same everywhere: on Debian, on Fedora, for Homebrew. An empty
/// name: there is none.
const NAMES: [[&str; 3]; 35] = [
    ["binutils-aarch64-linux-gnu", "binutils-aarch64-linux-gnu", ""],
    ["etcd-client", "etcd", "etcd"],
    ["etcd-server", "etcd", "etcd"],
    ["g++", "gcc-c++", "gcc"],
    ["g++-aarch64-linux-gnu", "gcc-c++-aarch64-linux-gnu", ""],
    ["gcc-aarch64-linux-gnu", "gcc-aarch64-linux-gnu", ""],
    ["gcc-mingw-w64-x86-64-win32", "mingw64-gcc", "mingw-w64"],
    ["gcc-powerpc64le-linux-gnu", "gcc-powerpc64le-linux-gnu", ""],
    ["gcc-riscv64-linux-gnu", "gcc-riscv64-linux-gnu", ""],
    ["gcc-s390x-linux-gnu", "gcc-s390x-linux-gnu", ""],
    ["libc6-dev-arm64-cross", "", ""],
    ["libc6-dev-ppc64el-cross", "", ""],
    ["libc6-dev-riscv64-cross", "", ""],
    ["libc6-dev-s390x-cross", "", ""],
    ["gnutls-bin", "gnutls-utils", "gnutls"],
    ["libengine-pkcs11-openssl", "openssl-pkcs11", "libp11"],
    ["libprotobuf-dev", "protobuf-devel", "protobuf"],
    ["llvm-19", "llvm", "llvm"],
    ["nodejs", "nodejs", "node"],
    ["npm", "nodejs-npm", "node"],
    ["openssh-client", "openssh-clients", "openssh"],
    ["openssl", "openssl", "openssl@3"],
    ["pkg-config", "pkgconf-pkg-config", "pkgconf"],
    ["protobuf-compiler", "protobuf-compiler", "protobuf"],
    ["python3", "python3", "python"],
    ["python3-venv", "python3", "python"],
    ["qemu-user", "qemu-user", ""],
    ["softhsm2", "softhsm", "softhsm"],
    ["strace", "strace", ""],
    ["systemd", "systemd", ""],
    ["valgrind", "valgrind", ""],
    ["wine64", "wine-core", "wine-stable"],
    ["nghttp2-client", "nghttp2", "nghttp2"],
    ["dpkg-dev", "dpkg-dev", "dpkg"],
    ["gcc", "gcc", "gcc"],
];

impl PackageSystem {
    /// That of this machine, by the programs that it has.
    pub fn of_this_machine() -> Self {
        let systems = [(Self::Debian, "apt-get"), (Self::Fedora, "dnf"), (Self::Homebrew, "brew")];
        systems.into_iter().find(|(_, program)| on_path(program)).map_or(Self::Debian, |(system, _)| system)
    }

    /// The name of a Debian package here, if there is one.
    fn name(self, package: &str) -> Option<&str> {
        let names = NAMES.iter().find(|names| names[0] == package);
        let name = names.map_or(package, |names| names[self as usize]);
        (!name.is_empty()).then_some(name)
    }

    /// The command that installs these packages, which have their names on Debian. Packages that
    /// this system lacks are in a comment at its end.
    pub fn command(self, packages: &BTreeSet<String>) -> String {
        let install = match self {
            Self::Debian => "sudo apt-get install -y --no-install-recommends",
            Self::Fedora => "sudo dnf install -y",
            Self::Homebrew => "brew install",
        };
        let names: BTreeSet<_> = packages.iter().filter_map(|package| self.name(package)).collect();
        let absent: Vec<_> =
            packages.iter().filter(|package| self.name(package).is_none()).map(String::as_str).collect();
        let mut command = install.to_owned();
        names.iter().for_each(|name| command.push_str(&format!(" {name}")));
        if !absent.is_empty() {
            command.push_str(&format!(" # not here: {}", absent.join(" ")));
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_that_is_missing_is_read_from_the_text_that_says_so() {
        let text = format!("a: {}; b: {}: exit status 1", missing("age", "age"), missing("nm", "binutils"));
        assert_eq!(missing_packages(&text).collect::<Vec<_>>(), ["age", "binutils"]);
        assert_eq!(missing_packages("nothing is missing").count(), 0);
    }

    #[test]
    fn one_command_installs_what_is_missing_on_each_system() {
        let packages = ["age", "etcd-client", "etcd-server", "valgrind"].map(str::to_owned).into();
        for (system, command) in [
            (
                PackageSystem::Debian,
                "sudo apt-get install -y --no-install-recommends age etcd-client etcd-server valgrind",
            ),
            (PackageSystem::Fedora, "sudo dnf install -y age etcd valgrind"),
            (PackageSystem::Homebrew, "brew install age etcd # not here: valgrind"),
        ] {
            assert_eq!(system.command(&packages), command);
        }
    }
}
