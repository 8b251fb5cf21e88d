//! Tests that every command has a help text.

use super::Cli;
use clap::{Command, CommandFactory as _};

/// Calls `each` with every command that a user can type, and its full name.
fn each_command(command: &Command, name: &str, each: &mut impl FnMut(&Command, &str)) {
    each(command, name);
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        each_command(sub, &format!("{name} {}", sub.get_name()), each);
    }
}

#[test]
fn the_help_of_every_command_has_examples_and_exit_statuses() {
    let mut commands = 0;
    each_command(&Cli::command(), "bulla", &mut |command, name| {
        commands += 1;
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let (_, examples) = help.split_once("Examples:\n").unwrap_or_else(|| panic!("{name}: no examples"));
        assert!(examples.contains(name), "{name}: the examples do not show it:\n{help}");
        assert!(help.contains("\n\nExit status: 0"), "{name}: no exit statuses");
        assert!(command.get_about().is_some(), "{name}: no description");
    });
    assert!(commands > 30, "{commands} commands");
}
