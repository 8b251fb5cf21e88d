//! `/v1/transit/random` and `/v1/transit/hash`: what needs no key.

use crate::request::handler::{erased, routes};
use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha224, Sha256, Sha384, Sha512};
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};
use utoipa::ToSchema;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};

use super::answer::{self, Envelope, Result, VaultError, VaultErrorBody};
use super::request::{OptionalText, PathName, VaultBody, VaultCaller, decode_into, number};
use crate::error::ApiError;
use crate::request::encode;
use crate::service::Worker;

pub(super) fn routes() -> OpenApiRouter<Worker> {
    OpenApiRouter::new()
        .routes(routes!(transit_random).map(|router| router.put(erased(transit_random))))
        .routes(routes!(transit_random_of).map(|router| router.put(erased(transit_random_of))))
        .routes(routes!(transit_random_from).map(|router| router.put(erased(transit_random_from))))
        .routes(routes!(transit_hash).map(|router| router.put(erased(transit_hash))))
        .routes(routes!(transit_hash_by).map(|router| router.put(erased(transit_hash_by))))
}

/// How the answer writes bytes.
#[derive(Clone, Copy)]
enum OutputFormat {
    Base64,
    Hex,
}

impl OutputFormat {
    /// # Errors
    /// There is no such format.
    fn of(name: &OptionalText<'_>, default: Self) -> Result<Self> {
        match name.as_deref() {
            None => Ok(default),
            Some("base64") => Ok(Self::Base64),
            Some("hex") => Ok(Self::Hex),
            Some(_) => Err(VaultError::invalid("unsupported encoding format; must be \"hex\" or \"base64\"")),
        }
    }

    fn write(self, bytes: &[u8]) -> String {
        match self {
            Self::Base64 => encode(bytes),
            Self::Hex => hex::encode(bytes),
        }
    }
}

/// How many random bytes, and how they are written.
#[derive(Deserialize, ToSchema)]
struct TransitRandom<'a> {
    /// How many: 1 to 131072; 32 by default. A number in the path has precedence.
    #[serde(default, deserialize_with = "number")]
    #[schema(value_type = Option<i64>, example = 32)]
    bytes: Option<i64>,
    /// `base64` (default) or `hex`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "base64")]
    format: OptionalText<'a>,
}

/// Random bytes.
#[derive(Serialize, ToSchema)]
struct RandomBytes {
    /// The bytes, written as asked.
    random_bytes: String,
}

const DEFAULT_RANDOM_LEN: i64 = 32;
const MAX_RANDOM_LEN: i64 = 128 * 1024;

/// Make random bytes. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/random", tag = "transit", request_body = TransitRandom, extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "The bytes", body = Envelope<RandomBytes>), (status = "default", body = VaultErrorBody)))]
async fn transit_random(
    State(worker): State<Worker>,
    VaultCaller(_): VaultCaller,
    body: VaultBody,
) -> Result<Response> {
    random(&worker, &body, None, None)
}

/// Make random bytes, with their number or their source in the path. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/random/{of}", tag = "transit", request_body = TransitRandom,
    params(("of" = String, Path, description = "As `bytes`; or `platform`, `seal` or `all`, which all mean the operating system", example = "16")),
    extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "The bytes", body = Envelope<RandomBytes>), (status = "default", body = VaultErrorBody)))]
async fn transit_random_of(
    State(worker): State<Worker>,
    VaultCaller(_): VaultCaller,
    PathName(of): PathName<String>,
    body: VaultBody,
) -> Result<Response> {
    match of.as_str() {
        "platform" | "seal" | "all" => random(&worker, &body, Some(&of), None),
        length => random(&worker, &body, None, Some(length)),
    }
}

/// Make random bytes, with their source and their number in the path. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/random/{source}/{bytes}", tag = "transit", request_body = TransitRandom,
    params(("source" = String, Path, description = "`platform`, `seal` or `all`, which all mean the operating system", example = "platform"),
        ("bytes" = String, Path, description = "As `bytes`", example = "16")),
    extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "The bytes", body = Envelope<RandomBytes>), (status = "default", body = VaultErrorBody)))]
async fn transit_random_from(
    State(worker): State<Worker>,
    VaultCaller(_): VaultCaller,
    PathName((source, length)): PathName<(String, String)>,
    body: VaultBody,
) -> Result<Response> {
    random(&worker, &body, Some(&source), Some(&length))
}

fn random(worker: &Worker, body: &VaultBody, source: Option<&str>, length: Option<&str>) -> Result<Response> {
    let TransitRandom { bytes, format } = body.parse()?;
    let format = OutputFormat::of(&format, OutputFormat::Base64)?;
    if !matches!(source, None | Some("platform" | "seal" | "all")) {
        let words = "unsupported entropy source; must be \"platform\" or \"seal\", or \"all\"";
        return Err(VaultError::invalid(words));
    }
    let in_path = length.map(str::parse).transpose();
    let length: i64 = in_path
        .map_err(|_| VaultError::invalid("error parsing url-set byte count"))?
        .or(bytes)
        .unwrap_or(DEFAULT_RANDOM_LEN);
    let length = match length {
        ..=0 => return Err(VaultError::invalid("'bytes' cannot be less than 1")),
        1..=MAX_RANDOM_LEN => usize::try_from(length).unwrap_or_default(),
        _ => return Err(VaultError::invalid("'bytes' should be less than 131072")),
    };
    let mut bytes = vec![0; length];
    getrandom::fill(&mut bytes)
        .map_err(|_| ApiError::internal("the operating system gives no random bytes"))?;
    Ok(answer::data(worker, &RandomBytes { random_bytes: format.write(&bytes) }))
}

/// What to hash, and how.
#[derive(Deserialize, ToSchema)]
struct TransitHash<'a> {
    /// The message, base64.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "aGVsbG8=")]
    input: OptionalText<'a>,
    /// `sha2-224`, `sha2-256` (default), `sha2-384`, `sha2-512`, `sha3-224`, `sha3-256`,
    /// `sha3-384`, `sha3-512` or `blake3`, which Vault has not. A name in the path has precedence.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "sha2-256")]
    algorithm: OptionalText<'a>,
    /// `hex` (default) or `base64`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "hex")]
    format: OptionalText<'a>,
}

/// A digest.
#[derive(Serialize, ToSchema)]
struct HashSum {
    /// The digest, written as asked.
    sum: String,
}

/// Longer inputs are hashed on another thread, so that other requests do not wait for them.
const MAX_LEN_AT_ONCE: usize = 256 * 1024;

type HashFunction = fn(&[u8]) -> Vec<u8>;

/// The hash function of this name.
fn hash_function(name: &str) -> Option<HashFunction> {
    Some(match name {
        "sha2-224" => |input| Sha224::digest(input).to_vec(),
        "sha2-256" => |input| Sha256::digest(input).to_vec(),
        "sha2-384" => |input| Sha384::digest(input).to_vec(),
        "sha2-512" => |input| Sha512::digest(input).to_vec(),
        "sha3-224" => |input| Sha3_224::digest(input).to_vec(),
        "sha3-256" => |input| Sha3_256::digest(input).to_vec(),
        "sha3-384" => |input| Sha3_384::digest(input).to_vec(),
        "sha3-512" => |input| Sha3_512::digest(input).to_vec(),
        "blake3" => |input| bulla_blake3::hash(input).as_bytes().to_vec(),
        _ => return None,
    })
}

async fn hash(
    worker: &Worker,
    VaultCaller(caller): VaultCaller,
    body: &VaultBody,
    in_path: Option<&str>,
) -> Result<Response> {
    let TransitHash { input, algorithm, format } = body.parse()?;
    let input = input.as_deref().ok_or_else(|| VaultError::invalid("input missing"))?;
    let mut bytes = Vec::with_capacity(input.len() / 4 * 3);
    decode_into(input, "input", &mut bytes)?;
    let format = OutputFormat::of(&format, OutputFormat::Hex)?;
    let name = in_path.or(algorithm.as_deref()).unwrap_or("sha2-256");
    let hash = hash_function(name).ok_or_else(|| VaultError::invalid("unsupported algorithm"))?;
    let digest = if bytes.len() <= MAX_LEN_AT_ONCE {
        hash(&bytes)
    } else {
        worker.run_blocking(&caller.unsealed, &caller.session, move |_| Ok(hash(&bytes))).await?
    };
    Ok(answer::data(worker, &HashSum { sum: format.write(&digest) }))
}

/// Hash a message. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/hash", tag = "transit", request_body = TransitHash, extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "The digest", body = Envelope<HashSum>), (status = "default", body = VaultErrorBody)))]
async fn transit_hash(
    State(worker): State<Worker>,
    caller: VaultCaller,
    body: VaultBody,
) -> Result<Response> {
    hash(&worker, caller, &body, None).await
}

/// Hash a message, with the hash function in the path. PUT does the same.
#[utoipa::path(post, path = "/v1/transit/hash/{algorithm}", tag = "transit", request_body = TransitHash,
    params(("algorithm" = String, Path, description = "As `algorithm`", example = "sha2-256")), extensions(("x-permission" = json!("caller"))),
    responses((status = 200, description = "The digest", body = Envelope<HashSum>), (status = "default", body = VaultErrorBody)))]
async fn transit_hash_by(
    State(worker): State<Worker>,
    caller: VaultCaller,
    PathName(algorithm): PathName<String>,
    body: VaultBody,
) -> Result<Response> {
    hash(&worker, caller, &body, Some(&algorithm)).await
}
