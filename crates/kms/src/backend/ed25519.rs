//! Ed25519 (RFC 8032) in software, by `bulla-ed25519`. A key that verifies often gets tables.
//! Verdicts are the same with and without them.

use std::any::Any;
use std::sync::Arc;

use bulla_ed25519::{PreparedItem, PreparedKey, SignItem, Signer as _, SigningKey, VerifyItem, prehash};
use zeroize::Zeroizing;

use super::ed25519_key::decode;
use super::ed25519_key::{DecodedKey, verdict};
use super::interface::{
    Backend, Capabilities, KeyMaterial, PrivateKey, SOFTWARE, SignRequest, VerifyRequest,
};
use crate::algorithm::Algorithm;
use crate::error::{Code, KmsError, Result};
use crate::key_signature::Verdict;
use crate::public_key::Prepared;

/// How many signatures one step of the lanes verifies or makes.
const LANES: usize = 8;

/// Private keys in this process's memory. The material is the seed of RFC 8032, section 5.1.5: 32
/// random bytes.
#[derive(Debug)]
pub(super) struct Ed25519Backend;

impl Backend for Ed25519Backend {
    fn name(&self) -> &str {
        SOFTWARE
    }

    fn capabilities(&self, algorithm: Algorithm) -> Option<Capabilities> {
        (algorithm == Algorithm::Ed25519)
            .then_some(Capabilities::default().verify_lanes(LANES).sign_lanes(LANES).material_is_key(true))
    }

    fn generate(&self, _algorithm: Algorithm) -> Result<KeyMaterial> {
        let mut seed = Zeroizing::new(vec![0; bulla_ed25519::SECRET_KEY_LENGTH]);
        crate::random::fill(&mut seed)?;
        Ok(seed)
    }

    fn load(&self, _algorithm: Algorithm, material: &KeyMaterial) -> Result<Arc<dyn PrivateKey>> {
        let seed = material.as_slice().try_into();
        let seed = seed.map_err(|_| KmsError::corrupt("a stored Ed25519 key does not have 32 bytes"))?;
        Ok(Arc::new(Ed25519PrivateKey(SigningKey::from_bytes(seed))))
    }

    fn prepare(&self, _algorithm: Algorithm, public_key: &[u8]) -> Result<Prepared> {
        Ok(Box::new(DecodedKey::from(decode(public_key)?)))
    }

    fn verify(&self, request: VerifyRequest<'_>) -> Verdict {
        match request.public_key.prepared::<DecodedKey>() {
            Some(key) => key.verify(request.message, request.signature),
            None => Verdict::Invalid,
        }
    }

    fn verify_many(&self, requests: &[VerifyRequest<'_>]) -> Vec<Verdict> {
        // A request whose key or length makes it no item keeps this verdict.
        let mut verdicts = vec![Verdict::Invalid; requests.len()];
        let (mut hot, mut cold) = (Vec::new(), Vec::new());
        for (place, request) in requests.iter().enumerate() {
            let key = request.public_key.prepared::<DecodedKey>();
            let (Some(key), Ok(signature)) = (key, request.signature.try_into()) else { continue };
            let item = VerifyItem { public_key: key.key().as_bytes(), message: request.message, signature };
            match key.tables() {
                Some(tables) => hot.push((place, tables, item)),
                None => cold.push((place, item)),
            }
        }
        if !is_worth_splitting(hot.len(), cold.len()) {
            cold.extend(hot.drain(..).map(|(place, _, item)| (place, item)));
        }
        let items: Vec<_> = hot.iter().map(|(_, tables, item)| prepared(tables, item)).collect();
        for ((place, ..), given) in hot.iter().zip(bulla_ed25519::verify_many_prepared(&items)) {
            verdicts[*place] = verdict(given);
        }
        let (places, items): (Vec<_>, Vec<_>) = cold.into_iter().unzip();
        for (place, given) in places.into_iter().zip(bulla_ed25519::verify_many(&items)) {
            verdicts[place] = verdict(given);
        }
        verdicts
    }

    fn sign_many(&self, _algorithm: Algorithm, requests: &[SignRequest<'_>]) -> Vec<Result<Vec<u8>>> {
        match requests.iter().map(sign_item).collect::<Option<Vec<_>>>() {
            Some(items) => {
                let signatures = bulla_ed25519::sign_many(&items);
                signatures.into_iter().map(|signature| Ok(signature.to_vec())).collect()
            }
            None => requests.iter().map(SignRequest::sign).collect(),
        }
    }
}

/// The request as an item; `None` if the key belongs to another backend.
fn sign_item<'a>(request: &SignRequest<'a>) -> Option<SignItem<'a>> {
    let key: &dyn Any = request.key;
    Some(SignItem { key: &key.downcast_ref::<Ed25519PrivateKey>()?.0, message: request.message })
}

/// The item with its key's tables.
fn prepared<'a>(key: &'a PreparedKey, item: &VerifyItem<'a>) -> PreparedItem<'a> {
    PreparedItem { key, message: item.message, signature: item.signature }
}

/// Whether `hot` signatures under keys with tables are better verified apart from the `cold`
/// others. With tables, a step of the lanes costs half. A step costs the same however many lanes it
/// uses.
fn is_worth_splitting(hot: usize, cold: usize) -> bool {
    let steps = |count: usize| count.div_ceil(LANES);
    steps(hot) + 2 * steps(cold) <= 2 * steps(hot + cold)
}

/// The expanded seed with its public key: deriving them for each signature would double its cost.
struct Ed25519PrivateKey(SigningKey);

impl PrivateKey for Ed25519PrivateKey {
    fn public_key(&self) -> Result<Vec<u8>> {
        Ok(self.0.as_ref().as_bytes().to_vec())
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        Ok(self.0.sign(message).to_bytes().to_vec())
    }

    fn sign_ed25519ph(&self, digest: &[u8; 64], context: &[u8]) -> Result<Vec<u8>> {
        let signature = prehash::sign_ed25519ph_digest(&self.0, digest, context);
        let error = |_| KmsError::new(Code::InvalidArgument, "a context has at most 255 bytes");
        signature.map(|signature| signature.to_vec()).map_err(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::public_key::PublicKey;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    /// RFC 8032, section 7.1: tests 1, 2, 3 and SHA(abc). Seed, public key, message, signature.
    const RFC_8032: [[&str; 4]; 4] = [
        [
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155\
             5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        ],
        [
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
             085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        ],
        [
            "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
            "af82",
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac\
             18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
        ],
        [
            "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
            "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
             2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
            "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b589\
             09351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704",
        ],
    ];

    #[test]
    fn the_vectors_of_rfc_8032() {
        for [seed, public_key, message, signature] in RFC_8032.map(|vector| vector.map(bytes)) {
            let key = Ed25519Backend.load(Algorithm::Ed25519, &Zeroizing::new(seed)).unwrap();
            assert_eq!(key.public_key().unwrap(), public_key);
            assert_eq!(key.sign(&message).unwrap(), signature);
            let public_key = &PublicKey::from_bytes(Algorithm::Ed25519, &public_key).unwrap();
            let request =
                VerifyRequest { public_key: public_key.encoded(), message: &message, signature: &signature };
            assert_eq!(Ed25519Backend.verify(request), Verdict::Valid);
        }
    }

    #[test]
    fn material_of_another_length_is_no_key() {
        for length in [0, 31, 33, 64] {
            assert!(Ed25519Backend.load(Algorithm::Ed25519, &Zeroizing::new(vec![1; length])).is_err());
        }
    }

    fn key(seed: u8) -> Arc<dyn PrivateKey> {
        Ed25519Backend.load(Algorithm::Ed25519, &Zeroizing::new(vec![seed; 32])).unwrap()
    }

    /// Batches with every mixture of keys with and without tables; some signatures are altered.
    #[test]
    fn verdicts_do_not_depend_on_which_keys_have_tables() {
        for (hot, cold) in [(0, 9), (1, 7), (3, 6), (4, 4), (8, 8), (9, 0), (17, 1), (1, 17)] {
            let signed = (0..hot + cold).map(|number: u8| {
                let key = key(number);
                let public_key =
                    PublicKey::from_bytes(Algorithm::Ed25519, &key.public_key().unwrap()).unwrap();
                let mut signature = key.sign(&[number]).unwrap();
                signature[usize::from(number)] ^= u8::from(number % 3 == 2);
                if number % 5 == 4 {
                    signature.push(0);
                }
                (public_key, [number], signature)
            });
            let signed: Vec<_> = signed.collect();
            let request = |(public_key, message, signature): &'static (PublicKey, [u8; 1], Vec<u8>)| {
                VerifyRequest { public_key: public_key.encoded(), message, signature }
            };
            let requests: Vec<_> = signed.leak().iter().map(request).collect();
            for request in &requests[..usize::from(hot)] {
                let key = request.public_key.prepared::<DecodedKey>().unwrap();
                while bulla_ed25519::kernel::active().name() != "portable" && key.tables().is_none() {}
            }
            let expected: Vec<_> = (0..requests.len())
                .map(
                    |number| {
                        if number % 3 == 2 || number % 5 == 4 { Verdict::Invalid } else { Verdict::Valid }
                    },
                )
                .collect();
            assert_eq!(Ed25519Backend.verify_many(&requests), expected, "{hot} with tables, {cold} without");
            assert_eq!(
                requests.iter().map(|request| Ed25519Backend.verify(*request)).collect::<Vec<_>>(),
                expected
            );
        }
    }

    #[test]
    fn many_signatures_are_those_made_one_by_one_whatever_the_keys() {
        /// A key of another backend.
        struct Foreign(Arc<dyn PrivateKey>);
        impl PrivateKey for Foreign {
            fn public_key(&self) -> Result<Vec<u8>> {
                self.0.public_key()
            }
            fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
                self.0.sign(message)
            }
        }
        let mut keys: Vec<_> = (0..20_u8).map(key).collect();
        for _ in 0..2 {
            let messages: Vec<_> = (0..20_u8).map(|number| vec![number; 7 * usize::from(number)]).collect();
            let requests = keys.iter().zip(&messages).map(|(key, message)| SignRequest::new(&**key, message));
            let made = Ed25519Backend.sign_many(Algorithm::Ed25519, &requests.collect::<Vec<_>>());
            for ((key, message), made) in keys.iter().zip(&messages).zip(made) {
                assert_eq!(made.unwrap(), key.sign(message).unwrap());
            }
            keys[3] = Arc::new(Foreign(key(3)));
        }
    }
}
