//! File names as text, by the short names of the programs: for people, and for a shell.

pub use bulla_files::{
    escape_path as shown, escape_text as visible, is_deceptive, quote_for_shell as shell_word,
};
