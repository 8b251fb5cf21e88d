//! What the agent does with each request.

use super::lock::Lock;
use super::message::{Answer, Identity, Request, Signed, Use, signed_by_openssh};
use crate::commands::ssh_keys::{SshSigningKey, is_for_users, name_of};
use crate::diagnostics::note_line;
use crate::error::{Error, Result};
use crate::store::KeySource;
use bulla_kms::prehash::HashFunction;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Who is asked before a key signs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Confirmation {
    /// Nobody.
    None,
    /// The user, by the program of `SSH_ASKPASS`, each time.
    EachSignature,
}

/// The agent.
pub(super) struct Agent {
    keys: Mutex<KeySource>,
    /// The names of the keys that it offers; if it is empty, all keys that OpenSSH can use.
    names: Vec<String>,
    confirmation: Confirmation,
    lock: Lock,
    /// What it offered last: a client asks for a signature right after that.
    last_offered: Mutex<Vec<SshSigningKey>>,
}

impl Agent {
    /// # Errors
    /// A key does not exist, does not sign, or has an algorithm that OpenSSH does not have; the
    /// keys cannot be read.
    pub(super) fn new(keys: KeySource, names: Vec<String>, confirmation: Confirmation) -> Result<Self> {
        let (keys, lock, last_offered) = (Mutex::new(keys), Lock::default(), Mutex::default());
        let agent = Self { keys, names, confirmation, lock, last_offered };
        agent.offered()?;
        Ok(agent)
    }

    /// The answer to a request on a connection of this use, which the request may change. What goes
    /// wrong is reported on standard error: the protocol knows only failure.
    pub(super) fn answer(&self, request: &[u8], used: &mut Use) -> Vec<u8> {
        let answer = match Request::parse(request) {
            Some(Request::Identities) if self.lock.is_locked() => Ok(Answer::Identities(Vec::new())),
            Some(Request::Identities) => self.identities(),
            Some(Request::Sign { .. }) if self.lock.is_locked() => Ok(Answer::Failure),
            Some(Request::Sign { key, data, rsa_hash }) => self.sign(&key, &data, rsa_hash, *used),
            Some(Request::Bind(by)) => {
                // What follows on a forwarded connection comes from the server: it cannot take this
                // back.
                if by == Use::Forwarded {
                    *used = by;
                }
                Ok(Answer::Success)
            }
            Some(Request::Lock(passphrase)) => Ok(Answer::of(self.lock.lock(&passphrase))),
            Some(Request::Unlock(passphrase)) => Ok(Answer::of(self.lock.unlock(&passphrase))),
            None => Ok(Answer::Failure),
        };
        answer
            .unwrap_or_else(|error| {
                error.print();
                Answer::Failure
            })
            .to_bytes()
    }

    fn identities(&self) -> Result<Answer> {
        let offered = self.offered()?.into_iter();
        let identity =
            |offered: SshSigningKey| Identity { key: offered.key.blob().to_vec(), comment: offered.name };
        Ok(Answer::Identities(offered.map(identity).collect()))
    }

    /// The keys that the agent offers now: keys rotate, and others are made.
    fn offered(&self) -> Result<Vec<SshSigningKey>> {
        let source = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = source.read()?;
        let all = if self.names.is_empty() {
            keys.list()?
                .iter()
                .filter(|key| is_for_users(key))
                .filter_map(|key| SshSigningKey::of(key, &name_of(key)).ok())
                .collect()
        } else {
            self.names
                .iter()
                .map(|name| SshSigningKey::of(&keys.key(name)?, name))
                .collect::<Result<Vec<_>>>()?
        };
        self.last_offered.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&all);
        Ok(all)
    }

    /// The key with these bytes, if the agent offers it.
    fn find(&self, key: &[u8]) -> Result<Option<SshSigningKey>> {
        let is_it = |offered: &SshSigningKey| offered.key.blob() == key;
        let last = self
            .last_offered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .find(|one| is_it(one))
            .cloned();
        match last {
            Some(offered) => Ok(Some(offered)),
            None => Ok(self.offered()?.into_iter().find(is_it)),
        }
    }

    fn sign(&self, key: &[u8], data: &[u8], rsa_hash: Option<HashFunction>, used: Use) -> Result<Answer> {
        let Some(offered) = self.find(key)? else { return Ok(Answer::Failure) };
        if let Some(refusal) = self.refusal(&offered, data, used) {
            note_line(&refusal);
            return Ok(Answer::Failure);
        }
        if offered.is_rsa() && rsa_hash.is_none() {
            let name = &offered.name;
            note_line(&format!(
                "somebody asked the key {name} of RSA for a signature by SHA-1, which is broken"
            ));
            return Ok(Answer::Failure);
        }
        let id = offered.version.key_id().to_string();
        let source = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = rsa_hash.unwrap_or(HashFunction::Sha512);
        let (version, blob) = offered.sign(&*source.open_to_sign(&id)?, &id, data, hash)?;
        if version != offered.version {
            let message = "has rotated since OpenSSH asked for its keys";
            return Err(Error::new("wrong_version", message).about(offered.name).hint("connect again"));
        }
        Ok(Answer::Signature(blob))
    }

    /// Why a key does not sign this data, if it does not.
    fn refusal(&self, offered: &SshSigningKey, data: &[u8], used: Use) -> Option<String> {
        let name = &offered.name;
        let confirmed = self.confirmation == Confirmation::EachSignature;
        match signed_by_openssh(data) {
            None => Some(format!("somebody asked the key {name} to sign what OpenSSH does not sign")),
            Some(Signed::Content) if used == Use::Forwarded && !confirmed => Some(format!(
                "a server to which the agent is forwarded asked the key {name} to sign a file or a commit; \
                 with --confirm you can permit it"
            )),
            Some(_) if confirmed && !is_confirmed(offered, used) => {
                Some(format!("nobody confirmed a signature with the key {name}"))
            }
            Some(_) => None,
        }
    }
}

/// Asks the user by the program that OpenSSH asks, too. Without an answer it is a no.
fn is_confirmed(offered: &SshSigningKey, used: Use) -> bool {
    let program = std::env::var_os("SSH_ASKPASS").unwrap_or_else(|| "ssh-askpass".into());
    let by = match used {
        Use::Here => "",
        Use::Forwarded => " by a server to which the agent is forwarded",
    };
    let question = format!(
        "Allow the use of the key {}{by}?\nKey fingerprint {}.",
        offered.name,
        offered.key.fingerprint()
    );
    let asked = Command::new(&program)
        .arg(question)
        .env("SSH_ASKPASS_PROMPT", "confirm")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    match asked {
        Ok(output) => {
            let answer = String::from_utf8_lossy(&output.stdout).trim().to_ascii_lowercase();
            output.status.success() && (answer.is_empty() || answer == "yes")
        }
        Err(error) => {
            let message = format!("cannot be started to ask for a confirmation: {error}");
            let error = Error::new("askpass_missing", message).about(program.to_string_lossy());
            error
                .hint("install a program that asks, such as ssh-askpass, or name one in SSH_ASKPASS")
                .print();
            false
        }
    }
}
