//! The messages of the protocol (draft-ietf-sshm-ssh-agent, section 3): a number and its fields.
//!
//! The agent does not add, remove or constrain keys: the answer to such a request is a failure, as
//! the protocol asks for requests that an agent does not know.

use bulla_formats::ssh::is_login_request;
use bulla_kms::prehash::HashFunction;
use ssh_encoding::{Decode as _, Encode as _};
use zeroize::Zeroizing;

const FAILURE: u8 = 5;
const SUCCESS: u8 = 6;
pub(super) const REQUEST_IDENTITIES: u8 = 11;
pub(super) const IDENTITIES_ANSWER: u8 = 12;
pub(super) const SIGN_REQUEST: u8 = 13;
pub(super) const SIGN_RESPONSE: u8 = 14;
const LOCK: u8 = 22;
const UNLOCK: u8 = 23;
const EXTENSION: u8 = 27;
/// The flags of a request that ask for a signature of RSA by SHA-256 and by SHA-512 (section
/// 3.6.1). Without them, a program asks for SHA-1.
const RSA_SHA2_256: u32 = 2;
pub(super) const RSA_SHA2_512: u32 = 4;
/// The extension by which `ssh` says for which session it uses a connection (OpenSSH's
/// `PROTOCOL.agent`, section 1).
const SESSION_BIND: &[u8] = b"session-bind@openssh.com";

/// The longest message, without its length: that of OpenSSH.
pub(super) const MAX_LEN: usize = 256 * 1024;

/// What a client asks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// For all keys.
    Identities,
    /// To sign `data` with the key in the form of OpenSSH. `rsa_hash` is the hash function for a
    /// key of RSA; none if the program asks for SHA-1.
    Sign { key: Vec<u8>, data: Vec<u8>, rsa_hash: Option<HashFunction> },
    /// To offer no keys from now on.
    Lock(Zeroizing<Vec<u8>>),
    /// To offer keys again.
    Unlock(Zeroizing<Vec<u8>>),
    /// To note what the connection is for. The session's server and its signature are not kept:
    /// only the destination constraints of keys that are added need them.
    Bind(Use),
}

/// What a connection is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// To log in, or by a program of this machine.
    Here,
    /// By a server to which the agent is forwarded.
    Forwarded,
}

impl Request {
    /// Reads a message. None if it is malformed, or another one.
    pub(super) fn parse(message: &[u8]) -> Option<Self> {
        let (kind, mut rest) = message.split_first()?;
        let reader = &mut rest;
        let mut field = || Vec::<u8>::decode(reader).ok();
        let request = match *kind {
            REQUEST_IDENTITIES => Self::Identities,
            SIGN_REQUEST => {
                let (key, data) = (field()?, field()?);
                let flags = u32::decode(reader).ok()?;
                // As in OpenSSH, SHA-256 goes first if a program asks for both.
                let rsa_hash = match flags {
                    flags if flags & RSA_SHA2_256 != 0 => Some(HashFunction::Sha256),
                    flags if flags & RSA_SHA2_512 != 0 => Some(HashFunction::Sha512),
                    _ => None,
                };
                Self::Sign { key, data, rsa_hash }
            }
            LOCK => Self::Lock(field()?.into()),
            UNLOCK => Self::Unlock(field()?.into()),
            EXTENSION if field()? == SESSION_BIND => {
                let (_server, _session, _signature) = (field()?, field()?, field()?);
                Self::Bind(if u8::decode(reader).ok()? == 0 { Use::Here } else { Use::Forwarded })
            }
            _ => return None,
        };
        rest.is_empty().then_some(request)
    }
}

/// What the bytes of a signature by `ssh-keygen -Y sign` begin with (OpenSSH's `PROTOCOL.sshsig`).
const SIGNATURE_MAGIC: &[u8] = b"SSHSIG";

/// Whether these are the bytes that `ssh-keygen -Y sign` signs: a namespace, a reserved field, the
/// name of a hash function, and a digest. The beginning alone would let a text in, such as a
/// script.
fn is_content(data: &[u8]) -> bool {
    let Some(mut rest) = data.strip_prefix(SIGNATURE_MAGIC) else { return false };
    let mut field = || Vec::<u8>::decode(&mut rest).ok();
    let (Some(namespace), Some(_reserved), Some(hash), Some(digest)) = (field(), field(), field(), field())
    else {
        return false;
    };
    let is_digest = matches!((&hash[..], digest.len()), (b"sha256", 32) | (b"sha512", 64));
    is_digest && !namespace.is_empty() && rest.is_empty()
}

/// What `ssh` or `ssh-keygen -Y sign` sign: the request of a login, or the bytes of a signature
/// with a namespace. None for all other data. Nothing else passes for one of these, and they pass
/// for nothing else. So a server to which the agent is forwarded gets no signature of another
/// format, such as minisign's.
pub(super) fn signed_by_openssh(data: &[u8]) -> Option<Signed> {
    if is_content(data) {
        return Some(Signed::Content);
    }
    is_login_request(data).then_some(Signed::Login)
}

/// What OpenSSH signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signed {
    /// The request of a login.
    Login,
    /// A file, a commit or a tag.
    Content,
}

/// A key in an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// The public key in the form of OpenSSH.
    pub(super) key: Vec<u8>,
    /// What `ssh-add -l` shows beside it.
    pub(super) comment: String,
}

/// What the agent answers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Failure,
    Success,
    Identities(Vec<Identity>),
    /// A signature in the form of OpenSSH.
    Signature(Vec<u8>),
}

impl Answer {
    /// The answer to a request that was done or not.
    pub(super) fn of(done: bool) -> Self {
        if done { Self::Success } else { Self::Failure }
    }

    /// The message, without its length. A failure, if it would be too long.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.encode(&mut bytes) {
            Ok(()) if bytes.len() <= MAX_LEN => bytes,
            _ => vec![FAILURE],
        }
    }

    fn encode(&self, bytes: &mut Vec<u8>) -> Result<(), ssh_encoding::Error> {
        match self {
            Self::Failure => FAILURE.encode(bytes),
            Self::Success => SUCCESS.encode(bytes),
            Self::Identities(identities) => {
                IDENTITIES_ANSWER.encode(bytes)?;
                identities.len().encode(bytes)?;
                identities.iter().try_for_each(|identity| {
                    identity.key.encode(bytes)?;
                    identity.comment.encode(bytes)
                })
            }
            Self::Signature(blob) => {
                SIGN_RESPONSE.encode(bytes)?;
                blob.encode(bytes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field: its length and its bytes.
    fn field(bytes: &[u8]) -> Vec<u8> {
        [&u32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
    }

    #[test]
    fn requests_are_read_whole_or_not_at_all() {
        let with =
            |flags: u8| [&[SIGN_REQUEST][..], &field(b"key"), &field(b"data"), &[0, 0, 0, flags]].concat();
        let (sha256, sha512) = (Some(HashFunction::Sha256), Some(HashFunction::Sha512));
        for (flags, rsa_hash) in [(0, None), (1, None), (2, sha256), (4, sha512), (6, sha256)] {
            let parsed = Request::Sign { key: b"key".to_vec(), data: b"data".to_vec(), rsa_hash };
            assert_eq!(Request::parse(&with(flags)), Some(parsed), "{flags}");
        }
        let sign = with(0);
        for len in 0..sign.len() {
            assert_eq!(Request::parse(&sign[..len]), None, "{len}");
        }
        assert_eq!(Request::parse(&[&sign[..], &[0]].concat()), None);
        assert_eq!(Request::parse(&[REQUEST_IDENTITIES]), Some(Request::Identities));
        assert_eq!(Request::parse(&[REQUEST_IDENTITIES, 0]), None);
        let lock = Request::Lock(b"word".to_vec().into());
        assert_eq!(Request::parse(&[&[LOCK][..], &field(b"word")].concat()), Some(lock));
        // A length that no message has.
        assert_eq!(Request::parse(&[LOCK, 0xff, 0xff, 0xff, 0xff, 1]), None);
        // To add a key, and another extension.
        assert_eq!(Request::parse(&[17]), None);
        assert_eq!(Request::parse(&[&[EXTENSION][..], &field(b"query")].concat()), None);
    }

    #[test]
    fn a_connection_is_bound_with_all_fields_only() {
        let bind = |last: &[u8]| {
            let fields =
                [&field(SESSION_BIND)[..], &field(b"server"), &field(b"session"), &field(b"signature")];
            [&[EXTENSION][..], &fields.concat(), last].concat()
        };
        assert_eq!(Request::parse(&bind(&[0])), Some(Request::Bind(Use::Here)));
        assert_eq!(Request::parse(&bind(&[1])), Some(Request::Bind(Use::Forwarded)));
        assert_eq!(Request::parse(&bind(&[1, 0])), None);
        for len in 0..bind(&[1]).len() {
            assert_eq!(Request::parse(&bind(&[1])[..len]), None, "{len}");
        }
    }

    const LOGIN: u8 = 50;
    const LOGIN_METHOD: &[u8] = b"publickey";
    const BOUND_LOGIN_METHOD: &[u8] = b"publickey-hostbound-v00@openssh.com";

    /// The data that a login signs, with this method and these last fields.
    fn login(method: &[u8], last: &[&[u8]]) -> Vec<u8> {
        let mut data = [&field(&[7; 32])[..], &[LOGIN], &field(b"me"), &field(b"ssh-connection")].concat();
        data.extend([&field(method)[..], &[1], &field(b"ssh-ed25519"), &field(b"key")].concat());
        last.iter().for_each(|bytes| data.extend(field(bytes)));
        data
    }

    #[test]
    fn only_logins_and_signatures_with_a_namespace_are_signed() {
        let (plain, bound) = (login(LOGIN_METHOD, &[]), login(BOUND_LOGIN_METHOD, &[b"host key"]));
        for data in [&plain, &bound] {
            assert_eq!(signed_by_openssh(data), Some(Signed::Login));
        }
        let content = |namespace: &[u8], hash: &[u8], digest_len: usize| {
            let fields = [field(namespace), field(b""), field(hash), field(&vec![7; digest_len])];
            [b"SSHSIG", &fields.concat()[..]].concat()
        };
        for (hash, len) in [(&b"sha256"[..], 32), (b"sha512", 64)] {
            assert_eq!(signed_by_openssh(&content(b"file", hash, len)), Some(Signed::Content));
        }
        let file = content(b"git", b"sha512", 64);
        for data in [&plain, &bound, &file] {
            for len in 0..data.len() {
                assert_eq!(signed_by_openssh(&data[..len]), None, "{len}");
            }
        }
        let changed = |at: usize, byte: u8| {
            let mut data = plain.clone();
            data[at] = byte;
            data
        };
        // A session of another length, another message, and one without a signature.
        for data in [changed(3, 31), changed(36, LOGIN + 1), changed(74, 0)] {
            assert_eq!(signed_by_openssh(&data), None, "{data:?}");
        }
        // A text that begins like such bytes, no namespace, other digests, and more after the end.
        for data in [
            b"SSHSIG\nrm -r /\n".to_vec(),
            content(b"", b"sha512", 64),
            content(b"file", b"sha1", 20),
            content(b"file", b"sha512", 32),
            [&file[..], b"\n"].concat(),
        ] {
            assert_eq!(signed_by_openssh(&data), None, "{data:?}");
        }
        // More after the end, another method, a digest, and a statement of bulla.
        for data in [
            login(LOGIN_METHOD, &[b""]),
            login(BOUND_LOGIN_METHOD, &[]),
            login(b"hostbased", &[]),
            vec![7; 64],
            b"bulla signature\0v1".to_vec(),
            b"SSHSI".to_vec(),
        ] {
            assert_eq!(signed_by_openssh(&data), None, "{data:?}");
        }
    }

    #[test]
    fn answers_have_the_protocols_form() {
        assert_eq!(Answer::Failure.to_bytes(), [5]);
        assert_eq!(Answer::of(true).to_bytes(), [6]);
        let identity = Identity { key: b"key".to_vec(), comment: "me".to_owned() };
        let expected = [&[12, 0, 0, 0, 1][..], &field(b"key"), &field(b"me")].concat();
        assert_eq!(Answer::Identities(vec![identity]).to_bytes(), expected);
        assert_eq!(Answer::Signature(b"sig".to_vec()).to_bytes(), [&[14][..], &field(b"sig")].concat());
        assert_eq!(Answer::Signature(vec![0; MAX_LEN]).to_bytes(), [5]);
    }
}
