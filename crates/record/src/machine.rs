//! Describes this machine for records.

use std::fs;

/// The description of a machine. Unknown fields are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The architecture by Rust's name.
    pub arch: String,
    /// The processor's own name, or else the name of the architecture.
    pub cpu: String,
    /// On x86, for example `AuthenticAMD`.
    pub vendor: String,
    /// x86: the family.
    pub family: Option<u32>,
    /// x86: the model within the family.
    pub model: Option<u32>,
    /// On AArch64: implementer and part, for example `0x41/0xd40`.
    pub part: String,
    /// [`features`].
    pub features: Vec<String>,
}

impl Machine {
    /// The machine that this process runs on.
    pub fn this() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Self::described(std::env::consts::ARCH, &info, features())
    }

    /// A description from the text of `/proc/cpuinfo`: x86-64 and AArch64 (`model name`), POWER
    /// (`cpu`), s390x (`processor 0: version = ...`).
    fn described(arch: &str, info: &str, features: Vec<String>) -> Self {
        let value = |key: &str| {
            let mut lines = info.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned())
        };
        let number = |key: &str| value(key).and_then(|text| text.parse().ok());
        let cpu = ["model name", "cpu", "processor 0"].into_iter().find_map(value);
        let part = value("CPU implementer").zip(value("CPU part"));
        Self {
            arch: arch.to_owned(),
            cpu: cpu.unwrap_or_else(|| arch.to_owned()),
            vendor: value("vendor_id").unwrap_or_default(),
            family: number("cpu family"),
            model: number("model"),
            part: part.map(|(implementer, part)| format!("{implementer}/{part}")).unwrap_or_default(),
            features,
        }
    }
}

/// The processor's own name if Linux reports it; otherwise the name of the architecture.
pub fn cpu() -> String {
    Machine::this().cpu
}

/// The average number of running processes in the last minute; 0 if the system does not report it.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}

macro_rules! detected {
    ($detect:ident: $($name:tt)*) => {{
        let mut features = Vec::new();
        $( if std::arch::$detect!($name) { features.push($name.to_owned()); } )*
        features
    }};
}

/// The processor's features that our kernels or a peer's need, and those that identify a lane.
#[cfg(target_arch = "x86_64")]
pub fn features() -> Vec<String> {
    detected!(is_x86_feature_detected:
        "ssse3" "sse4.1" "avx" "avx2" "bmi1" "bmi2" "adx" "avx512f" "avx512vl" "avx512bw" "avx512dq" "avx512ifma" "avx512vbmi"
        "avx512vbmi2" "avx512fp16" "gfni")
}

/// The processor's features that our kernels or a peer's need.
#[cfg(target_arch = "aarch64")]
pub fn features() -> Vec<String> {
    detected!(is_aarch64_feature_detected: "neon" "sha3" "sve" "sve2")
}

/// The processor's features that our kernels or a peer's need: Rust can detect none here.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn features() -> Vec<String> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_described() {
        let of = |arch, info| Machine::described(arch, info, vec![]);
        let amd = of(
            "x86_64",
            "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n",
        );
        assert_eq!(
            (amd.cpu.as_str(), amd.vendor.as_str(), amd.family, amd.model),
            ("AMD EPYC", "AuthenticAMD", Some(25), Some(17))
        );
        let arm = of("aarch64", "CPU implementer\t: 0x41\nCPU part\t: 0xd40\n");
        assert_eq!((arm.cpu.as_str(), arm.part.as_str()), ("aarch64", "0x41/0xd40"));
        assert_eq!(of("powerpc64", "processor\t: 0\ncpu\t\t: POWER10\n").cpu, "POWER10");
        assert_eq!(
            of("s390x", "processor 0: version = FF,  machine = 3931\n").cpu,
            "version = FF,  machine = 3931"
        );
        assert!(!cpu().is_empty() && load() >= 0.0);
    }
}
