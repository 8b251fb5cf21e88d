//! Tests that every command has a help text, and that long command lines mean what short ones do.

use super::{CheckArgs, Cli, Command, MANY_WORDS, SingleCommand, SumArgs, names_at_end};
use bulla_command::tree::CommandTree;
use clap::{ArgAction, CommandFactory as _, Parser as _};
use std::ffi::OsString;
use std::path::PathBuf;

#[test]
fn the_help_of_every_command_has_examples_and_exit_statuses() {
    let tree = CommandTree::of(&Cli::command());
    assert_eq!(tree.missing_help("bulla"), Vec::<String>::new());
    assert!(tree.count() > 30, "{} commands", tree.count());
}

#[test]
fn no_flag_of_the_commands_with_many_names_has_more_values_than_one() {
    for command in [SingleCommand::<SumArgs>::command(), SingleCommand::<CheckArgs>::command()] {
        for flag in command.get_arguments().filter(|argument| !argument.is_positional()) {
            let most = flag.get_num_args().map_or(1, |range| range.max_values());
            assert!(most <= 1 || !matches!(flag.get_action(), ArgAction::Set | ArgAction::Append), "{flag}");
        }
    }
}

/// The files, and whether two of the flags are set.
fn meaning(cli: Cli) -> (Vec<PathBuf>, bool, Option<u64>) {
    match cli.command {
        Command::Sum(args) => (args.files, args.zero, args.length),
        Command::Check(args) => (args.files, args.zero, Some(args.seek)),
        _ => panic!("another command"),
    }
}

#[test]
fn a_long_command_line_means_what_a_short_one_does() {
    let names: Vec<_> = (0..MANY_WORDS).map(|index| format!("name{index}")).collect();
    for words in [
        &["sum"][..],
        &["sum", "-z"],
        &["sum", "a", "-z", "b"],
        &["sum", "--length", "5"],
        &["sum", "-l5", "a"],
        &["sum", "-z", "--", "-l", "5"],
        &["sum", "a", "-"],
        &["sum", "-", "b", "c"],
        &["check", "--seek", "7", "a"],
        &["check", "-z"],
    ] {
        let whole = || ["bulla"].iter().chain(words).copied().chain(names.iter().map(String::as_str));
        let expected = meaning(Cli::try_parse_from(whole()).unwrap_or_else(|error| panic!("{error}")));
        let mut left: Vec<_> = whole().map(OsString::from).collect();
        assert!(names_at_end(&mut left).len() + 1 >= names.len(), "{words:?}");
        let found = Cli::parse_single(whole().map(OsString::from).collect());
        assert_eq!(meaning(found.expect("a command line")), expected, "{words:?}");
    }
    let wrong = ["bulla", "sum", "--wrong"].iter().copied().chain(names.iter().map(String::as_str));
    assert!(Cli::parse_single(wrong.map(OsString::from).collect()).is_none());
}

#[test]
fn a_command_alone_refuses_what_all_commands_refuse() {
    for words in [
        &["bulla", "sum", "--version"][..],
        &["bulla", "sum", "--help"],
        &["bulla", "verify"],
        &["bulla", "sign", "a", "--wrong"],
        &["bulla", "keys"],
        &["bulla"],
    ] {
        assert!(Cli::parse_single(words.iter().map(OsString::from).collect()).is_none(), "{words:?}");
        assert!(Cli::try_parse_from(words).is_err(), "{words:?}");
    }
    let verify = ["bulla", "verify", "--color", "never", "a", "-p", "key"];
    assert!(Cli::parse_single(verify.map(OsString::from).to_vec()).is_some());
}
