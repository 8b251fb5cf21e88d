//! The rights of a token, read once, say the same as the token asked each time.
#![cfg(feature = "tokens")]

use bulla_kms::token::{Grant, GrantedKeys, Revocations, Token, TokenLimits, TokenOperation, TokenRequest};
use bulla_kms::{Algorithm, Code, KeyChange, KeyId, Keystore, Name, NewKey, Timestamp};
use proptest::prelude::*;

/// What the times of grants, limits and requests are near.
const NOON: u64 = 1_900_000_000_000;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_unix_millis(millis).unwrap()
}

/// A keystore with root keys for two tenants, and keys of both.
fn keystore() -> (Keystore, Vec<KeyId>) {
    let keystore = Keystore::in_memory().unwrap();
    let mut keys = Vec::new();
    for tenant in ["local", "other"] {
        keystore.create_token_root(&name(tenant)).unwrap();
        for _ in 0..3 {
            let new = NewKey::new(name(tenant), name("files"), Algorithm::Ed25519);
            keys.push(keystore.create_key(new).unwrap().key_id().clone());
        }
    }
    (keystore, keys)
}

fn operations() -> impl Strategy<Value = Vec<TokenOperation>> {
    proptest::sample::subsequence(TokenOperation::ALL.to_vec(), 1..=4)
}

/// Places of keys of the first tenant.
fn places() -> impl Strategy<Value = Option<Vec<usize>>> {
    proptest::option::of(proptest::sample::subsequence(vec![0, 1, 2], 1..=3))
}

/// Times within some seconds of noon, with fractions of a second.
fn times() -> impl Strategy<Value = Timestamp> {
    (NOON - 3000..NOON + 3000).prop_map(at)
}

type Limit = (Option<Vec<TokenOperation>>, Option<Vec<usize>>, Option<Timestamp>);

fn limits() -> impl Strategy<Value = Vec<Limit>> {
    let limit = (proptest::option::of(operations()), places(), proptest::option::of(times()));
    let restricts = |limit: &Limit| limit.0.is_some() || limit.1.is_some() || limit.2.is_some();
    proptest::collection::vec(limit.prop_filter("it restricts something", restricts), 0..3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn rights_permit_what_the_token_permits(
        granted in operations(),
        granted_keys in places(),
        expires in times(),
        limits in limits(),
        now in proptest::collection::vec(times(), 2),
    ) {
        let (keystore, keys) = keystore();
        let these = |places: &[usize]| places.iter().map(|place| keys[*place].clone()).collect::<Vec<_>>();
        let granted_keys = granted_keys.map_or(GrantedKeys::All, |places| GrantedKeys::These(these(&places)));
        let grant = Grant::new(name("local"), granted_keys, granted, expires);
        let mut token = keystore.mint_token(&grant).unwrap();
        for (operations, places, expires) in limits {
            let keys = places.map(|places| these(&places));
            token = token.attenuate(&TokenLimits::default().keys(keys).operations(operations).expires(expires)).unwrap();
        }
        let none = Revocations::default();
        let rights = keystore.rights(&token, &none).unwrap();
        for now in now {
            for &operation in TokenOperation::ALL {
                for key in &keys[..4] {
                    let request = TokenRequest::on_key(operation, key, now);
                    let asked = keystore.authorize(&token, &request, &none).is_ok();
                    prop_assert_eq!(rights.permits(&request).is_ok(), asked, "{} {} at {}", operation, key, now);
                }
                for tenant in [name("local"), name("other")] {
                    let request = TokenRequest::in_tenant(operation, &tenant, now);
                    let asked = keystore.authorize(&token, &request, &none).is_ok();
                    prop_assert_eq!(rights.permits(&request).is_ok(), asked, "{} in {} at {}", operation, tenant, now);
                }
            }
        }
    }
}

/// The service shows a token's rights to its holder, and names the token in the audit log.
#[test]
fn rights_name_all_that_is_left_after_the_restrictions() {
    let (keystore, keys) = keystore();
    let none = Revocations::default();
    let operations = vec![TokenOperation::Sign, TokenOperation::Verify];
    let grant = Grant::new(name("local"), GrantedKeys::All, operations, at(NOON + 2000));
    let token = keystore.mint_token(&grant).unwrap();
    let rights = keystore.rights(&token, &none).unwrap();
    assert_eq!((rights.tenant(), rights.operations()), (&grant.tenant, &grant.operations[..]));
    assert_eq!((rights.keys(), rights.expires()), (None, at(NOON + 2000)));
    let limits = [
        TokenLimits::default().keys(keys[..2].to_vec()).expires(at(NOON + 3000)),
        TokenLimits::default().operations(vec![TokenOperation::Export, TokenOperation::Verify]),
        TokenLimits::default().keys(keys[1..].to_vec()).expires(at(NOON)),
    ];
    let limited = |token: Token, limits: &TokenLimits| token.attenuate(limits).unwrap();
    let weaker = limits.iter().fold(token.clone(), limited);
    let left = keystore.rights(&weaker, &none).unwrap();
    assert_eq!((left.tenant(), left.operations()), (&grant.tenant, &[TokenOperation::Verify][..]));
    assert_eq!((left.keys(), left.expires()), (Some(&[keys[1].clone()].into()), at(NOON)));
    assert_eq!(left.token().root_version, 1);
    let ids: Vec<_> = weaker.inspect().unwrap().blocks.into_iter().map(|block| block.revocation_id).collect();
    assert_eq!((ids.len(), &left.token().revocation_ids), (4, &ids));
}

#[test]
fn rights_last_to_the_end_of_the_second_in_which_the_token_expires() {
    let (keystore, keys) = keystore();
    let operations = vec![TokenOperation::Sign];
    let grant = Grant::new(name("local"), GrantedKeys::All, operations, at(NOON + 300));
    let token = keystore.mint_token(&grant).unwrap();
    let rights = keystore.rights(&token, &Revocations::default()).unwrap();
    let permits =
        |now| rights.permits(&TokenRequest::on_key(TokenOperation::Sign, &keys[0], at(now))).is_ok();
    for now in [0, NOON - 1, NOON, NOON + 300, NOON + 301, NOON + 999] {
        assert!(permits(now), "{now}");
    }
    for now in [NOON + 1000, NOON + 1001, NOON + 3_600_000] {
        assert!(!permits(now), "{now}");
    }
}

fn all_rights(keystore: &Keystore, token: &Token, revoked: &Revocations) -> Result<(), Code> {
    keystore.rights(token, revoked).map(drop).map_err(|error| error.code)
}

#[test]
fn a_token_of_nobody_has_no_rights() {
    let (keystore, _) = keystore();
    let grant =
        |tenant: &str| Grant::new(name(tenant), GrantedKeys::All, vec![TokenOperation::Sign], at(NOON));
    let none = Revocations::default();
    let token = keystore.mint_token(&grant("local")).unwrap();
    assert_eq!(all_rights(&keystore, &token, &none), Ok(()));
    // Signed by the root key of another keystore, or of a tenant that this one does not have.
    let (stranger, _) = self::keystore();
    stranger.create_token_root(&name("third")).unwrap();
    let foreign = stranger.mint_token(&grant("local")).unwrap();
    assert_eq!(all_rights(&keystore, &foreign, &none), Err(Code::InvalidToken));
    let third = stranger.mint_token(&grant("third")).unwrap();
    assert_eq!(all_rights(&keystore, &third, &none), Err(Code::KeyNotFound));
    // Revoked: by its own id, or by that of the token that it was made from.
    let weaker = TokenLimits::default().expires(at(NOON - 1000));
    let weaker = token.attenuate(&weaker).unwrap();
    let mut revoked = Revocations::default();
    revoked.add(keystore.rights(&token, &none).unwrap().token().revocation_ids[0].clone());
    assert_eq!(all_rights(&keystore, &token, &revoked), Err(Code::Forbidden));
    assert_eq!(all_rights(&keystore, &weaker, &revoked), Err(Code::Forbidden));
    // And when the root key is disabled.
    let root = keystore.find(&name("local"), &name("tokens")).unwrap().unwrap();
    keystore.update(&root, None, &KeyChange::Disable).unwrap();
    assert_eq!(all_rights(&keystore, &token, &none), Err(Code::KeyDisabled));
}

#[test]
fn policies_are_kept_for_who_has_them_and_everybody_else_refuses() {
    let (keystore, keys) = keystore();
    let none = Revocations::default();
    let grant = Grant::new(name("local"), GrantedKeys::All, vec![TokenOperation::Sign], at(NOON));
    let plain = keystore.mint_token(&grant).unwrap();
    let minted = keystore.mint_token(&grant.clone().policies(vec![name("default"), name("a")])).unwrap();
    let request = TokenRequest::on_key(TokenOperation::Sign, &keys[0], at(NOON));
    let limits = TokenLimits::default().policies(vec![name("b")]);
    for (token, sets) in [
        (plain.clone(), vec![]),
        (minted.clone(), vec![vec![name("default"), name("a")]]),
        (plain.attenuate(&limits).unwrap(), vec![vec![name("b")]]),
        (minted.attenuate(&limits).unwrap(), vec![vec![name("default"), name("a")], vec![name("b")]]),
    ] {
        let read: Token = token.expose().parse().unwrap();
        let rights = keystore.rights(&read, &none).unwrap();
        assert_eq!(rights.policies(), sets);
        assert_eq!(read.stated_policies(), Some((name("local"), sets.clone())));
        assert_eq!(rights.permits(&request).is_ok(), sets.is_empty());
        assert_eq!(keystore.authorize(&read, &request, &none).is_ok(), sets.is_empty(), "{sets:?}");
    }
    let nothing = plain.attenuate(&TokenLimits::default().policies(Vec::new()));
    assert_eq!(nothing.unwrap_err().code, Code::InvalidArgument);
}
