//! What this machine is, as records say it.

use std::fs;

/// What the processor calls itself, where Linux tells; else the name of the architecture.
pub fn cpu() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    named_in(&info).unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// By the words of x86-64 and AArch64 (`model name`), POWER (`cpu`), s390x (`processor 0: version = ...`).
fn named_in(info: &str) -> Option<String> {
    let value = |key: &str| {
        let lines = info.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned()).next()
    };
    value("model name").or_else(|| value("cpu")).or_else(|| value("processor 0"))
}

/// The average number of running processes over the last minute; 0 where the system does not tell.
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

/// Those features of the processor that kernels of ours or of a peer ask for.
#[cfg(target_arch = "x86_64")]
pub fn features() -> Vec<String> {
    detected!(is_x86_feature_detected:
        "ssse3" "sse4.1" "avx" "avx2" "bmi1" "bmi2" "adx" "avx512f" "avx512vl" "avx512bw" "avx512dq" "avx512ifma" "avx512vbmi"
        "avx512vbmi2" "gfni")
}

/// Those features of the processor that kernels of ours or of a peer ask for.
#[cfg(target_arch = "aarch64")]
pub fn features() -> Vec<String> {
    detected!(is_aarch64_feature_detected: "neon" "sha3" "sve" "sve2")
}

/// Those features of the processor that kernels of ours or of a peer ask for; Rust cannot ask for any here.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn features() -> Vec<String> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_named() {
        assert_eq!(named_in("processor\t: 0\nmodel name\t: AMD EPYC\n").as_deref(), Some("AMD EPYC"));
        assert_eq!(named_in("processor\t: 0\ncpu\t\t: POWER10\n").as_deref(), Some("POWER10"));
        assert_eq!(
            named_in("processor 0: version = FF,  machine = 3931\n").as_deref(),
            Some("version = FF,  machine = 3931")
        );
        assert_eq!(named_in(""), None);
        assert!(!cpu().is_empty() && load() >= 0.0);
    }
}
