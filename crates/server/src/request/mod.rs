//! What handlers take from a request.

mod body;
mod caller;
mod cross_site;
pub(crate) mod handler;
mod long_body;
mod namespace;
mod parameters;
mod under_policies;

pub(crate) use self::body::{
    BodyBytes, Items, LIST_BOUND, List, Object, SecretContent, SecretProof, SecretText, check_short, decode,
    decode_into, decode_secret, encode, no_store, parse, parse_short, secret_json,
};
pub(crate) use self::caller::{
    Caller, CallerSlot, CertificateChain, Connection, ConnectionCaller, Peer, token,
};
pub(crate) use self::cross_site::ConnectionProof;
pub(crate) use self::namespace::{MountPath, Namespace, enter_namespace};
pub(crate) use self::parameters::{Path, Query, resolve_key, resolve_version};
pub(crate) use self::under_policies::ParameterRules;
