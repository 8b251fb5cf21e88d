//! The gate on the machine code of the kernels for x86-64: rules for the code as users build it,
//! and budgets.

use std::{
    path::Path,
    process::{Command, Output},
    sync::LazyLock,
};

use bulla_lab::code::{
    budget,
    image::{self, Image, Units},
    kernels::{self, Kernel},
};

/// One build of the libraries, and the kernels found in it.
struct Built {
    images: Vec<Image>,
    kernels: Vec<Kernel>,
}

impl Built {
    fn with(units: Units) -> Self {
        let files = image::libraries(units).unwrap();
        let images: Vec<_> = files.iter().map(|file| Image::read(file).unwrap()).collect();
        let kernels = images.iter().flat_map(|image| kernels::find(image).unwrap()).collect();
        Self { images, kernels }
    }

    /// The messages of `fault` about each kernel.
    fn faults(&self, fault: impl Fn(&Kernel) -> Vec<String>) -> Vec<String> {
        let faults = |kernel: &Kernel| -> Vec<String> {
            fault(kernel).iter().map(|fault| format!("{}: {fault}", kernel.name())).collect()
        };
        self.kernels.iter().flat_map(faults).collect()
    }
}

static DEFAULT: LazyLock<Built> = LazyLock::new(|| Built::with(Units::Default));
static ONE_UNIT: LazyLock<Built> = LazyLock::new(|| Built::with(Units::One));

/// Fails with one line for each fault, below what they are faults of.
fn none(claim: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{claim}\n  {}\n", faults.join("\n  "));
}

fn calls(kernel: &Kernel) -> Vec<String> {
    kernel.forbidden_calls().into_iter().map(|callee| format!("calls {callee}")).collect()
}

#[test]
fn kernels_call_nothing() {
    none("a function was not inlined into a kernel", &DEFAULT.faults(calls));
}

#[test]
fn kernels_of_one_unit_call_nothing() {
    none("with codegen-units = 1 a function was not inlined into a kernel", &ONE_UNIT.faults(calls));
}

#[test]
fn kernels_have_only_instructions_of_their_set() {
    for built in [&DEFAULT, &ONE_UNIT] {
        none("a CPU with this set and no more would stop at", &built.faults(Kernel::foreign_instructions));
    }
}

#[test]
fn everything_else_runs_on_every_cpu() {
    for built in [&DEFAULT, &ONE_UNIT] {
        let outside: Vec<_> = built.images.iter().flat_map(kernels::foreign_outside).collect();
        none("vector code outside the kernels", &outside);
    }
}

#[test]
fn kernels_use_their_wide_registers() {
    none(
        "a kernel computes in narrow registers",
        &DEFAULT.faults(|kernel| kernel.narrow().into_iter().collect()),
    );
}

#[test]
fn kernels_are_within_their_budgets() {
    let breaches = budget::breaches(&DEFAULT.kernels, &budget::read().unwrap());
    none(&format!("if it should be so, record it: {}", budget::COMMAND), &breaches);
}

fn kernels_code(file: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bulla-lab")).arg("kernels-code").arg(file).output().unwrap()
}

#[test]
fn the_program_prints_what_the_gate_reads() {
    for file in image::libraries(Units::Default).unwrap() {
        let printed = kernels_code(&file);
        let found = kernels::find(&Image::read(&file).unwrap()).unwrap();
        assert_eq!(String::from_utf8(printed.stdout).unwrap(), kernels::table(&found));
    }
}

#[test]
fn every_library_is_read() {
    for library in &kernels::LIBRARIES {
        let of_it = DEFAULT.kernels.iter().filter(|kernel| kernel.library.package == library.package);
        assert!(of_it.count() >= library.sets.len(), "{}", library.package);
    }
}

#[test]
fn files_without_kernels_are_refused() {
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    for file in [text.as_path(), Path::new("no such file")] {
        let refused = kernels_code(file);
        assert!(!refused.status.success() && refused.stdout.is_empty());
        assert!(String::from_utf8(refused.stderr).unwrap().contains(&*file.to_string_lossy()));
    }
}
