//! A program's command line as data, so that another program can show it as a part of its own: in
//! completions and manual pages, `bulla serve` looks like every command of `bulla`, although
//! `bulla-serve` defines it.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgAction, Command, ValueHint};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;

/// The first argument that makes a program print its command line as JSON.
pub const DESCRIBE: &str = "--bulla-describe";

/// The names, help texts and flags of a command and of the commands below it.
#[derive(Debug, Serialize, Deserialize)]
pub struct CommandTree {
    name: String,
    about: Option<String>,
    long_about: Option<String>,
    after_help: Option<String>,
    is_hidden: bool,
    needs_command: bool,
    aliases: Vec<String>,
    arguments: Vec<Argument>,
    commands: Vec<CommandTree>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Argument {
    id: String,
    short: Option<char>,
    long: Option<String>,
    aliases: Vec<String>,
    help: Option<String>,
    long_help: Option<String>,
    heading: Option<String>,
    values: Option<Values>,
    environment: Option<String>,
    is_repeated: bool,
    is_required: bool,
    is_global: bool,
    is_hidden: bool,
}

/// The values that an argument takes.
#[derive(Debug, Serialize, Deserialize)]
struct Values {
    names: Vec<String>,
    /// The only values, each with its help.
    possible: Vec<(String, Option<String>)>,
    defaults: Vec<String>,
    hides_defaults: bool,
    are_paths: bool,
}

impl CommandTree {
    /// The tree of a command that was not built yet.
    #[must_use]
    pub fn of(command: &Command) -> Self {
        Self {
            name: command.get_name().to_owned(),
            about: command.get_about().map(ToString::to_string),
            long_about: command.get_long_about().map(ToString::to_string),
            after_help: command.get_after_help().map(ToString::to_string),
            is_hidden: command.is_hide_set(),
            needs_command: command.is_subcommand_required_set(),
            aliases: command.get_visible_aliases().map(str::to_owned).collect(),
            arguments: command.get_arguments().map(Argument::of).collect(),
            commands: command.get_subcommands().map(Self::of).collect(),
        }
    }

    /// The command again, under another name: for help and completions, and not for parsing.
    #[must_use]
    pub fn into_command(self, name: &str) -> Command {
        let mut command = Command::new(name.to_owned())
            .hide(self.is_hidden)
            .subcommand_required(self.needs_command)
            .visible_aliases(self.aliases)
            .args(self.arguments.into_iter().map(Argument::into_arg));
        command = match self.about {
            Some(text) => command.about(text),
            None => command,
        };
        command = match self.long_about {
            Some(text) => command.long_about(text),
            None => command,
        };
        command = match self.after_help {
            Some(text) => command.after_help(text),
            None => command,
        };
        command.subcommands(self.commands.into_iter().map(|tree| {
            let name = tree.name.clone();
            tree.into_command(&name)
        }))
    }

    /// What a reader misses in the help of these commands: each has a description, examples that
    /// show it, and its exit statuses. `name` is the whole name that a user types.
    #[must_use]
    pub fn missing_help(&self, name: &str) -> Vec<String> {
        let mut missing = Vec::new();
        let help = self.after_help.as_deref().unwrap_or_default();
        let examples = help.split_once("Examples:\n").map_or("", |(_, examples)| examples);
        if !examples.contains(name) {
            missing.push(format!("{name}: no examples that show it"));
        }
        if !help.contains("\n\nExit status: 0") {
            missing.push(format!("{name}: no exit statuses"));
        }
        if self.about.is_none() {
            missing.push(format!("{name}: no description"));
        }
        for command in &self.commands {
            missing.extend(command.missing_help(&format!("{name} {}", command.name)));
        }
        missing
    }

    /// The number of these commands.
    #[must_use]
    pub fn count(&self) -> usize {
        1 + self.commands.iter().map(Self::count).sum::<usize>()
    }
}

impl Argument {
    fn of(arg: &Arg) -> Self {
        let takes_values = arg.get_action().takes_values();
        let text = |value: &OsStr| value.to_string_lossy().into_owned();
        let possible =
            |value: &PossibleValue| (value.get_name().to_owned(), value.get_help().map(ToString::to_string));
        let values = || Values {
            names: arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect(),
            possible: arg.get_possible_values().iter().map(possible).collect(),
            defaults: arg.get_default_values().iter().map(|value| text(value)).collect(),
            hides_defaults: arg.is_hide_default_value_set(),
            are_paths: matches!(
                arg.get_value_hint(),
                ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath
            ),
        };
        Self {
            id: arg.get_id().to_string(),
            short: arg.get_short(),
            long: arg.get_long().map(str::to_owned),
            aliases: arg.get_visible_aliases().unwrap_or_default().into_iter().map(str::to_owned).collect(),
            help: arg.get_help().map(ToString::to_string),
            long_help: arg.get_long_help().map(ToString::to_string),
            heading: arg.get_help_heading().map(str::to_owned),
            values: takes_values.then(values),
            environment: arg.get_env().map(text),
            is_repeated: matches!(arg.get_action(), ArgAction::Append | ArgAction::Count)
                || arg.get_num_args().is_some_and(|range| range.max_values() > 1),
            is_required: arg.is_required_set(),
            is_global: arg.is_global_set(),
            is_hidden: arg.is_hide_set(),
        }
    }

    fn into_arg(self) -> Arg {
        let is_flag = self.short.is_some() || self.long.is_some();
        let mut arg = Arg::new(self.id)
            .short(self.short)
            .visible_aliases(self.aliases)
            .required(self.is_required)
            .global(self.is_global)
            .hide(self.is_hidden);
        arg = match self.long {
            Some(long) => arg.long(long),
            None => arg,
        };
        arg = match self.heading {
            Some(heading) => arg.help_heading(heading),
            None => arg,
        };
        arg = match self.help {
            Some(text) => arg.help(text),
            None => arg,
        };
        arg = match self.long_help {
            Some(text) => arg.long_help(text),
            None => arg,
        };
        arg = match self.environment {
            Some(name) => arg.env(name).hide_env_values(true),
            None => arg,
        };
        match self.values {
            Some(values) => values.give_to(arg, is_flag, self.is_repeated),
            None if self.is_repeated => arg.action(ArgAction::Count),
            None => arg.action(ArgAction::SetTrue),
        }
    }
}

impl Values {
    fn give_to(self, arg: Arg, is_flag: bool, is_repeated: bool) -> Arg {
        let mut arg = arg
            .action(if is_repeated { ArgAction::Append } else { ArgAction::Set })
            .default_values(self.defaults)
            .hide_default_value(self.hides_defaults);
        if !self.names.is_empty() {
            arg = arg.value_names(self.names);
        }
        if is_repeated && !is_flag {
            arg = arg.num_args(1..);
        }
        if self.are_paths {
            arg = arg.value_hint(ValueHint::AnyPath);
        }
        if self.possible.is_empty() {
            return arg;
        }
        let possible = |(name, help): (String, Option<String>)| match help {
            Some(help) => PossibleValue::new(name).help(help),
            None => PossibleValue::new(name),
        };
        arg.value_parser(PossibleValuesParser::new(self.possible.into_iter().map(possible)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::path::PathBuf;

    /// Count the letters of files
    ///
    /// Every letter counts once.
    #[derive(Parser)]
    #[command(name = "sample", after_help = "Examples:\n  sample a.txt\n\nExit status: 0 counted.")]
    struct Sample {
        /// The files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// When to use color
        #[arg(long, global = true, value_enum, default_value_t = crate::color::ColorWhen::Auto)]
        color: crate::color::ColorWhen,
        /// Say less
        ///
        /// Twice: say nothing.
        #[arg(short, long, action = ArgAction::Count, help_heading = "Output")]
        quiet: u8,
        /// Where to look
        #[arg(long, value_name = "DIR", env = "SAMPLE_DIR", hide_env_values = true)]
        folder: Option<PathBuf>,
        #[command(subcommand)]
        command: Option<SampleCommand>,
    }

    #[derive(clap::Subcommand)]
    enum SampleCommand {
        /// Print the alphabet
        Alphabet,
    }

    #[test]
    fn a_command_that_traveled_as_json_has_the_same_help() {
        let command = <Sample as clap::CommandFactory>::command();
        let json = serde_json::to_string(&CommandTree::of(&command)).unwrap();
        let tree: CommandTree = serde_json::from_str(&json).unwrap();
        assert_eq!(tree.count(), 2);
        let help = |mut command: Command| command.render_long_help().to_string();
        assert_eq!(help(tree.into_command("sample")), help(command));
    }

    #[test]
    fn a_command_without_examples_or_exit_statuses_is_noticed() {
        let tree = CommandTree::of(&<Sample as clap::CommandFactory>::command());
        let missing = tree.missing_help("sample");
        assert_eq!(
            missing,
            ["sample alphabet: no examples that show it", "sample alphabet: no exit statuses"]
        );
    }
}
