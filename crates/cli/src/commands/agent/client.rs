//! Asks an agent of OpenSSH for signatures, as `ssh-keygen` does.

use super::message::{
    IDENTITIES_ANSWER, MAX_LEN, REQUEST_IDENTITIES, RSA_SHA2_512, SIGN_REQUEST, SIGN_RESPONSE,
};
use crate::error::{Error, Result};
use bulla_formats::ssh::SshKey;
use ssh_encoding::{Decode as _, Encode as _};
use std::env;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;

/// A connection to an agent.
pub(crate) struct AgentClient(UnixStream);

impl AgentClient {
    /// The agent that SSH_AUTH_SOCK names, if there is one.
    pub(crate) fn of_variable() -> Option<Self> {
        let path = env::var_os("SSH_AUTH_SOCK").filter(|path| !path.is_empty())?;
        UnixStream::connect(path).ok().map(Self)
    }

    /// Whether the agent has a key. An agent that does not answer has none.
    pub(crate) fn has(&mut self, key: &SshKey) -> bool {
        let answer = self.ask(&[REQUEST_IDENTITIES]);
        answer.ok().and_then(|answer| is_offered(&answer, key.blob())).unwrap_or(false)
    }

    /// Asks for a signature by a key that the agent has.
    ///
    /// # Errors
    /// The agent refuses, or does not answer.
    pub(crate) fn sign(&mut self, key: &SshKey, data: &[u8]) -> Result<Vec<u8>> {
        let refused = || {
            Error::new("agent_refused", "the agent of SSH_AUTH_SOCK has the key, and did not sign")
                .hint("see what the agent prints; or unset SSH_AUTH_SOCK, so that bulla signs without it")
        };
        // Agents sign with RSA keys by SHA-1, unless they are asked for better.
        let flags = if key.algorithm() == "ssh-rsa" { RSA_SHA2_512 } else { 0 };
        let mut request = vec![SIGN_REQUEST];
        let encoded = key.blob().encode(&mut request).and_then(|()| data.encode(&mut request));
        encoded.and_then(|()| flags.encode(&mut request)).map_err(|_| refused())?;
        let answer = self.ask(&request).map_err(|error| Error::io("the agent does not answer", &error))?;
        let (kind, mut rest) = answer.split_first().ok_or_else(refused)?;
        match Vec::<u8>::decode(&mut rest) {
            Ok(signature) if *kind == SIGN_RESPONSE => Ok(signature),
            _ => Err(refused()),
        }
    }

    /// Sends a message, and returns the answer.
    fn ask(&mut self, message: &[u8]) -> io::Result<Vec<u8>> {
        let length = u32::try_from(message.len()).map_err(|_| ErrorKind::InvalidInput)?;
        self.0.write_all(&[&length.to_be_bytes()[..], message].concat())?;
        let mut length = [0; 4];
        self.0.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > MAX_LEN {
            return Err(ErrorKind::InvalidData.into());
        }
        let mut answer = vec![0; length];
        self.0.read_exact(&mut answer)?;
        Ok(answer)
    }
}

/// Whether a list of keys has this one. None for another message.
fn is_offered(answer: &[u8], key: &[u8]) -> Option<bool> {
    let (kind, mut rest) = answer.split_first()?;
    let reader = &mut rest;
    if *kind != IDENTITIES_ANSWER {
        return None;
    }
    for _ in 0..u32::decode(reader).ok()? {
        let (found, _comment) = (Vec::<u8>::decode(reader).ok()?, Vec::<u8>::decode(reader).ok()?);
        if found == key {
            return Some(true);
        }
    }
    Some(false)
}
