//! Tells the crate two things about its build:
//! - `unoptimized`: without optimization, secrets reach deeper into the stack, and more of it is
//!   wiped.
//! - `lanes`: there are vectors to compute with, or their model. They need the standard library.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(unoptimized, lanes)");
    if var("OPT_LEVEL").is_ok_and(|level| level == "0") {
        println!("cargo::rustc-cfg=unoptimized");
    }
    let is_x86_64 = var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64");
    let has_sse2 = var("CARGO_CFG_TARGET_FEATURE")
        .is_ok_and(|features| features.split(',').any(|feature| feature == "sse2"));
    let has_std = var("CARGO_FEATURE_STD").is_ok();
    if has_std && is_x86_64 && has_sse2 || var("CARGO_FEATURE_SCALAR_MODEL").is_ok() {
        println!("cargo::rustc-cfg=lanes");
    }
}
