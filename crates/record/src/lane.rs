//! Lanes: the classes of machines in `lab/lanes.toml`, this machine, and its lane.

use std::{collections::BTreeSet, fs};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

/// A class of machines. The file says what each field means.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lane {
    /// Its name in records and limits.
    pub name: String,
    /// A description in one line.
    pub about: String,
    /// The architecture; none means any.
    pub arch: Option<String>,
    vendor: Option<String>,
    family: Option<u32>,
    #[serde(default)]
    models: Vec<(u32, u32)>,
    #[serde(default)]
    parts: Vec<String>,
    #[serde(default)]
    machines: Vec<String>,
    /// The fewest and the most processors of the machine; none means any number.
    cores: Option<(u32, u32)>,
    /// The lane whose limits hold for suites that use one thread.
    pub one_thread: Option<String>,
    /// The features that the processor must have.
    #[serde(default)]
    pub features: Vec<String>,
    /// The BLAKE3 kernels that the machine must have; the first is the one that detection must
    /// choose.
    pub kernels: Vec<String>,
    /// The number of 64-bit additions per cycle that a core does alone, measured.
    pub additions: Option<f64>,
    /// The processor for `llvm-mca`.
    pub model: Option<String>,
    /// The shapes that the dispatch must choose for one input: `FROM SHAPE`, where FROM is the
    /// smallest number of bytes. Empty if they are not specified.
    #[serde(default)]
    pub oneshot: Vec<String>,
}

/// All lanes, in the order of the file.
///
/// # Errors
/// The file is malformed.
pub fn all() -> Result<Vec<Lane>> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        lane: Vec<Lane>,
    }
    let File { lane } = toml::from_str(include_str!("../../../lab/lanes.toml")).context("lab/lanes.toml")?;
    let names: BTreeSet<_> = lane.iter().map(|lane| &lane.name).collect();
    ensure!(names.len() == lane.len(), "lab/lanes.toml: two lanes of one name");
    Ok(lane)
}

/// The lane of `machine`: the first one that fits.
///
/// # Errors
/// `lab/lanes.toml` is malformed, or no lane fits.
pub fn of(machine: &Machine) -> Result<Lane> {
    let fits = all()?.into_iter().find(|lane| lane.fits(machine));
    fits.with_context(|| format!("lab/lanes.toml has no lane for this machine: {machine:?}"))
}

/// The lane with this name.
///
/// # Errors
/// There is no such lane; the error lists the existing ones.
pub fn named(name: &str) -> Result<Lane> {
    let lanes = all()?;
    let names: Vec<_> = lanes.iter().map(|lane| lane.name.clone()).collect();
    let found = lanes.into_iter().find(|lane| lane.name == name);
    found.with_context(|| format!("no lane {name}; there are: {}", names.join(", ")))
}

impl Lane {
    fn fits(&self, machine: &Machine) -> bool {
        let is =
            |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        is(&self.arch, &machine.arch)
            && is(&self.vendor, &machine.vendor)
            && self.family.is_none_or(|family| machine.family == Some(family))
            && (self.models.is_empty()
                || machine
                    .model
                    .is_some_and(|model| self.models.iter().any(|(a, b)| (*a..=*b).contains(&model))))
            && (self.parts.is_empty() || self.parts.contains(&machine.part))
            && self.cores.is_none_or(|(fewest, most)| (fewest..=most).contains(&machine.cores))
            && (self.machines.is_empty()
                || self.machines.iter().any(|name| machine.cpu.starts_with(name.as_str())))
            && self.features.iter().all(|feature| machine.features.contains(feature))
    }
}

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
    /// The processors that this process may use; 0 if unknown.
    pub cores: u32,
    /// [`cpu_features`].
    pub features: Vec<String>,
}

impl Machine {
    /// The machine that this process runs on.
    pub fn this() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Self { cores: cores(), ..Self::described(std::env::consts::ARCH, &info, cpu_features()) }
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
            cores: 0,
            features,
        }
    }
}

/// The number of processors that this process may use: a container may have fewer than the machine.
pub fn cores() -> u32 {
    std::thread::available_parallelism().map_or(0, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}

/// The processor's own name if Linux reports it; otherwise the name of the architecture.
pub fn cpu_name() -> String {
    Machine::this().cpu
}

/// The average number of running processes in the last minute; 0 if the system does not report it.
pub fn load_average() -> f64 {
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
pub fn cpu_features() -> Vec<String> {
    detected!(is_x86_feature_detected:
        "ssse3" "sse4.1" "avx" "avx2" "bmi1" "bmi2" "adx" "avx512f" "avx512vl" "avx512bw" "avx512dq" "avx512ifma" "avx512vbmi"
        "avx512vbmi2" "avx512fp16" "gfni")
}

/// The processor's features that our kernels or a peer's need.
#[cfg(target_arch = "aarch64")]
pub fn cpu_features() -> Vec<String> {
    detected!(is_aarch64_feature_detected: "neon" "sha3" "sve" "sve2")
}

/// The processor's features that our kernels or a peer's need: Rust can detect none here.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn cpu_features() -> Vec<String> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    const AVX512: &str = "avx2 bmi1 bmi2 ssse3 sse4.1 avx512f avx512vl avx512bw avx512dq";

    fn x86(vendor: &str, family: u32, model: u32, features: &str) -> Machine {
        Machine {
            arch: "x86_64".into(),
            vendor: vendor.into(),
            family: Some(family),
            model: Some(model),
            features: features.split_whitespace().map(str::to_owned).collect(),
            ..Machine::default()
        }
    }

    fn lane(machine: &Machine) -> String {
        of(machine).unwrap().name
    }

    #[test]
    fn known_machines_have_their_lane() {
        for (vendor, family, model, expected) in [
            ("AuthenticAMD", 25, 17, "amd-zen4"),
            ("AuthenticAMD", 25, 97, "amd-zen4"),
            ("AuthenticAMD", 26, 2, "amd-zen5"),
            ("GenuineIntel", 6, 106, "intel-icl"),
        ] {
            assert_eq!(lane(&x86(vendor, family, model, AVX512)), expected);
        }
        // The last number was seen under a hypervisor: it belongs to another processor.
        for model in [143, 207, 167] {
            let features = format!("{AVX512} avx512fp16");
            assert_eq!(lane(&x86("GenuineIntel", 6, model, &features)), "intel-spr");
        }
        let arm = |part: &str| Machine {
            arch: "aarch64".into(),
            part: part.into(),
            features: vec!["neon".into()],
            ..Machine::default()
        };
        assert_eq!(
            (lane(&arm("0x41/0xd40")), lane(&arm("0x41/0xd4f"))),
            ("graviton3".into(), "graviton4".into())
        );
        let other =
            |arch: &str, cpu: &str| Machine { arch: arch.into(), cpu: cpu.into(), ..Machine::default() };
        assert_eq!(lane(&other("powerpc64", "POWER10 (architected), altivec supported")), "ibm-power10");
        assert_eq!(
            (lane(&other("s390x", "IBM/S390")), lane(&other("wasm32", ""))),
            ("ibm-s390x".into(), "wasm".into())
        );
    }

    #[test]
    fn the_number_of_processors_chooses_among_lanes_of_one_processor() {
        let intel = x86("GenuineIntel", 6, 143, &format!("{AVX512} avx512fp16"));
        let of = |cores| lane(&Machine { cores, ..intel.clone() });
        assert_eq!(
            [2, 8, 9, 16, 17].map(of).map(|name| name == "intel-spr-16"),
            [false, false, true, true, false]
        );
        assert_eq!((of(0), of(2)), ("intel-spr".into(), "intel-spr".into()));
    }

    #[test]
    fn a_lane_takes_the_limits_of_one_thread_from_a_lane_that_exists() {
        for name in all().unwrap().into_iter().filter_map(|lane| lane.one_thread) {
            assert_eq!(named(&name).unwrap().one_thread, None, "{name}");
        }
    }

    #[test]
    fn unknown_machines_have_a_lane_by_their_features() {
        assert_eq!(lane(&x86("GenuineIntel", 6, 85, AVX512)), "x86_64-avx512");
        assert_eq!(lane(&x86("AuthenticAMD", 25, 1, "avx2 bmi1 bmi2 ssse3 sse4.1")), "x86_64-avx2");
        assert_eq!(lane(&x86("Another", 6, 1, "ssse3 sse4.1")), "x86_64-sse4.1");
        assert_eq!(lane(&x86("Another", 6, 1, "")), "x86_64");
        assert_eq!(lane(&Machine { arch: "riscv64".into(), ..Machine::default() }), "other");
    }

    #[test]
    fn a_known_machine_whose_features_are_switched_off_is_not_its_lane() {
        assert_eq!(lane(&x86("AuthenticAMD", 25, 17, "avx2 bmi1 bmi2 ssse3 sse4.1")), "x86_64-avx2");
    }

    #[test]
    fn this_machine_has_a_lane() {
        let lane = of(&Machine::this()).unwrap();
        assert!(!lane.kernels.is_empty() && named(&lane.name).is_ok());
        assert!(named("no-such-lane").unwrap_err().to_string().contains("amd-zen4"));
    }
}

#[cfg(test)]
mod machine_tests {
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
        assert!(!cpu_name().is_empty() && load_average() >= 0.0);
    }
}
