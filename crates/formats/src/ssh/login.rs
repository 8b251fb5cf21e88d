//! What a key of OpenSSH signs to log in. No signature of a file may pass for one.

use ssh_encoding::Decode as _;

/// `SSH_MSG_USERAUTH_REQUEST` (RFC 4252, section 5).
const LOGIN: u8 = 50;
const METHOD: &[u8] = b"publickey";
/// The method that also names the server's key (OpenSSH's `PROTOCOL`, section 1.8).
const BOUND_METHOD: &[u8] = b"publickey-hostbound-v00@openssh.com";

/// Whether these are the bytes that a key signs to log in (RFC 4252, section 7).
///
/// ```
/// use bulla_formats::ssh::is_login_request;
///
/// let field = |bytes: &[u8]| [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat();
/// let session = field(&[7; 32]);
/// let beginning = [&session[..], &[50], &field(b"me"), &field(b"ssh-connection")].concat();
/// let end = [&field(b"publickey")[..], &[1], &field(b"ssh-ed25519"), &field(b"a key")].concat();
/// let request = [beginning, end].concat();
/// assert!(is_login_request(&request) && !is_login_request(&request[1..]));
/// ```
pub fn is_login_request(data: &[u8]) -> bool {
    read(data).unwrap_or(false)
}

/// None if it ends too early.
fn read(mut data: &[u8]) -> Option<bool> {
    let reader = &mut data;
    let session = Vec::<u8>::decode(reader).ok()?;
    let kind = u8::decode(reader).ok()?;
    let mut field = || Vec::<u8>::decode(reader).ok();
    let (_user, service, method) = (field()?, field()?, field()?);
    let has_signature = u8::decode(reader).ok()?;
    let mut field = || Vec::<u8>::decode(reader).ok();
    let (_algorithm, _key) = (field()?, field()?);
    if method == BOUND_METHOD {
        field()?;
    }
    let is_method = method == METHOD || method == BOUND_METHOD;
    let is_session = (16..=64).contains(&session.len());
    let is_request = (kind, has_signature, &service[..]) == (LOGIN, 1, b"ssh-connection");
    Some(is_session && is_request && is_method && data.is_empty())
}
