//! `bulla agent`: an agent of OpenSSH (draft-ietf-sshm-ssh-agent), whose private keys stay in the
//! keystore or in the service. `ssh`, `git` and `ssh-keygen` sign with them.
//!
//! The crate `ssh-agent-lib` is not used: see `docs/decisions/0350-an-agent-of-openssh.md`.

mod answers;
mod client;
mod lock;
mod message;
mod socket;

pub(super) use self::client::AgentClient;

use self::answers::{Agent, Confirmation};
use self::socket::{AgentSocket, serve};
use crate::args::AgentArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::interrupt;
use crate::output::Out;
use crate::store::KeySource;
use bulla_files::quote_for_shell;
use std::env;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{self, Command};
use std::sync::{Arc, mpsc};

pub(crate) fn run(args: &AgentArgs) -> Result<Exit> {
    let confirmation = if args.confirm { Confirmation::EachSignature } else { Confirmation::None };
    let agent = Agent::new(KeySource::existing(&args.keystore)?, args.keys.clone(), confirmation)?;
    let socket = socket(args)?;
    serve(&socket, &Arc::new(agent))?;
    match args.command.split_first() {
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            let code = run_with(command.args(arguments), &socket)?;
            drop(socket);
            // The command's own status, which `Exit` does not have.
            process::exit(code)
        }
        None => wait(args, &socket),
    }
}

/// Where the agent listens.
fn socket(args: &AgentArgs) -> Result<AgentSocket> {
    if let Some(path) = &args.socket {
        return AgentSocket::at(path);
    }
    if let Some(inherited) = AgentSocket::inherited()? {
        return Ok(inherited);
    }
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
    match runtime {
        // Each command has an agent of its own.
        Some(folder) if args.command.is_empty() => AgentSocket::at(&folder.join("bulla/agent")),
        _ => AgentSocket::temporary(),
    }
}

/// Runs a command with the agent, and returns its exit status. A signal is for the command: the
/// terminal sends it there, too.
fn run_with(command: &mut Command, socket: &AgentSocket) -> Result<i32> {
    interrupt::handle_signals_with(|| {}, || {});
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.env("SSH_AUTH_SOCK", socket.path()).status();
    let status = status.map_err(|error| Error::io("cannot be run", &error).about(name))?;
    Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()))
}

/// Says where the agent is, and waits until it is to end.
fn wait(args: &AgentArgs, socket: &AgentSocket) -> Result<Exit> {
    let (stop, stopped) = mpsc::channel();
    let end = |stop: mpsc::Sender<()>| {
        move || {
            let _ = stop.send(());
        }
    };
    // It ends with its terminal, as `ssh-agent` does in the foreground: nobody would see it.
    interrupt::handle_signals_with(end(stop.clone()), end(stop));
    let mut out = Out::stdout();
    let path = quote_for_shell(socket.path().as_os_str());
    out.line(format_args!("SSH_AUTH_SOCK={path}; export SSH_AUTH_SOCK;"))?;
    out.flush()?;
    match args.lifetime {
        // It has ended in either case.
        Some(end) => drop(stopped.recv_timeout(end.remaining()?)),
        None => drop(stopped.recv()),
    }
    Ok(Exit::Ok)
}
