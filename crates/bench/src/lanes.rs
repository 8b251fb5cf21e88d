//! `cargo xtask lanes`: shows the lane of this machine, and checks that it has the lane's kernels
//! and dispatch.

use std::process::{Command, ExitCode};

use anyhow::Result;
use bulla_devtools::{Context, quiet};
use bulla_record::lane::{self, Machine};

use crate::{
    bench::harness::{Kernel, build_laboratory},
    model,
};

/// The arguments of `cargo xtask lanes`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cargo xtask lanes\n  cargo xtask lanes --list\n  cargo xtask lanes --model\n\n\
    Exit status: 0 this machine has the kernels of its lane and chooses the first of them, 1 it does not."
)]
pub(crate) struct Args {
    /// List all lanes instead
    #[arg(long)]
    list: bool,
    /// Print the model's prediction for the lanes that cannot be measured here, ours and the
    /// official crate
    #[arg(long, conflicts_with = "list")]
    model: bool,
}

/// Prints the lane, the kernels and the dispatch.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.list {
        for lane in lane::all()? {
            println!("{:<16} {}", lane.name, lane.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let machine = Machine::this();
    let lane = lane::of(&machine)?;
    let context = Context::find()?;
    if args.model {
        print!("{}", model::table(&context, &lane.name)?);
        return Ok(ExitCode::SUCCESS);
    }
    println!("machine   {} ({})", machine.cpu, machine.arch);
    println!("features  {}", machine.features.join(" "));
    println!("lane      {}: {}", lane.name, lane.about);
    let laboratory = build_laboratory(&context, &Kernel::Default)?;
    let listed = quiet(Command::new(&laboratory).args(["kernels", "oneshot"]))?;
    let has: Vec<&str> = listed.lines().collect();
    for kernel in &lane.kernels {
        println!(
            "kernel    {kernel:<16} {}",
            if has.contains(&kernel.as_str()) { "there" } else { "MISSING" }
        );
    }
    for extra in has.iter().filter(|kernel| !lane.kernels.iter().any(|wanted| wanted == *kernel)) {
        println!("kernel    {extra:<16} not asked for by lab/lanes.toml");
    }
    println!("\n{}", quiet(Command::new(&laboratory).arg("dispatch"))?.trim_end());
    let is_right = has.first() == lane.kernels.first().map(String::as_str).as_ref()
        && lane.kernels.iter().all(|kernel| has.contains(&kernel.as_str()));
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
