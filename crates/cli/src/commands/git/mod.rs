//! git signs and verifies through bulla: `bulla git setup`, and what `ssh-keygen -Y` does for git.
//!
//! git's setting `gpg.ssh.program` names bulla itself: see
//! `docs/decisions/0364-git-starts-bulla-itself.md`.

mod settings;
mod setup;
mod ssh_keygen;

pub(crate) use self::ssh_keygen::{answer, is_asked};

use crate::args::{GitArgs, GitCommand};
use crate::error::Result;
use crate::exit::Exit;

pub(crate) fn run(args: &GitArgs) -> Result<Exit> {
    match &args.command {
        GitCommand::Setup(args) => setup::run(args),
    }
}
