//! Capabilities: what a token permits, that nobody can make it permit more, and the export that it
//! guards.
#![cfg(all(feature = "tokens", feature = "transfer", feature = "mlkem"))]

use std::collections::BTreeSet;
use std::str::FromStr as _;

use biscuit_auth::builder::{Algorithm as RootAlgorithm, BiscuitBuilder, BlockBuilder};
use biscuit_auth::{KeyPair, UnverifiedBiscuit};
use bulla_kms::token::{
    Grant, GrantedKeys, Holder, MAX_BLOCKS, MAX_TOKEN_LEN, Revocations, TOKEN_ROOT_PURPOSE, Token,
    TokenLimits, TokenOperation, TokenRequest,
};
use bulla_kms::transfer::WrappedPrivateKey;
use bulla_kms::{
    Algorithm, Code, KeyChange, KeyId, KeyVersionId, Keystore, Name, NewKey, SignatureFile, Statement,
    Timestamp, Verdict,
};

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn after(seconds: u64) -> Timestamp {
    Timestamp::from_unix_millis(Timestamp::now().unwrap().unix_millis() + seconds * 1000).unwrap()
}

fn before(seconds: u64) -> Timestamp {
    Timestamp::from_unix_millis(Timestamp::now().unwrap().unix_millis() - seconds * 1000).unwrap()
}

fn create(keystore: &Keystore, tenant: &str, algorithm: Algorithm) -> KeyVersionId {
    let new = NewKey::new(name(tenant), name("files"), algorithm).exportable(true);
    keystore.create_key(new).unwrap()
}

/// A keystore with a root key and a key that can be exported.
fn keystore() -> (Keystore, KeyVersionId) {
    let keystore = Keystore::in_memory().unwrap();
    keystore.create_token_root(&name("local")).unwrap();
    let key = create(&keystore, "local", Algorithm::Ed25519);
    (keystore, key)
}

fn grant(keys: GrantedKeys, operations: &[TokenOperation]) -> Grant {
    Grant::new(name("local"), keys, operations.to_vec(), after(3600))
}

fn ask(keystore: &Keystore, token: &Token, operation: TokenOperation, key: &KeyId) -> Result<(), Code> {
    let request = TokenRequest::on_key(operation, key, Timestamp::now().unwrap());
    keystore.authorize(token, &request, &Revocations::default()).map(drop).map_err(|error| error.code)
}

const REFUSED: Result<(), Code> = Err(Code::Forbidden);
const INVALID: Result<(), Code> = Err(Code::InvalidToken);

#[test]
fn a_token_permits_its_operations_on_its_keys_and_nothing_else() {
    let (keystore, key) = keystore();
    let other = create(&keystore, "local", Algorithm::Ed25519);
    let keys = GrantedKeys::These(vec![key.key_id().clone()]);
    let token = keystore.mint_token(&grant(keys, &[TokenOperation::Sign, TokenOperation::Rotate])).unwrap();
    for &operation in TokenOperation::ALL {
        let granted = matches!(operation, TokenOperation::Sign | TokenOperation::Rotate);
        let expected = if granted { Ok(()) } else { REFUSED };
        assert_eq!(ask(&keystore, &token, operation, key.key_id()), expected, "{operation}");
        assert_eq!(ask(&keystore, &token, operation, other.key_id()), REFUSED, "{operation}");
        let local = name("local");
        let in_tenant = TokenRequest::in_tenant(operation, &local, Timestamp::now().unwrap());
        let error = keystore.authorize(&token, &in_tenant, &Revocations::default()).unwrap_err();
        assert_eq!(error.code, Code::Forbidden, "a token for some keys gives no right on the tenant");
    }
}

#[test]
fn a_token_for_all_keys_is_one_for_its_tenant_alone() {
    let (keystore, key) = keystore();
    let token = keystore
        .mint_token(&grant(GrantedKeys::All, &[TokenOperation::Sign, TokenOperation::Create]))
        .unwrap();
    assert_eq!(ask(&keystore, &token, TokenOperation::Sign, key.key_id()), Ok(()));
    let local = name("local");
    let request = TokenRequest::in_tenant(TokenOperation::Create, &local, Timestamp::now().unwrap());
    assert!(keystore.authorize(&token, &request, &Revocations::default()).is_ok());
    let theirs = create(&keystore, "other", Algorithm::Ed25519);
    assert_eq!(
        ask(&keystore, &token, TokenOperation::Sign, theirs.key_id()),
        Err(Code::KeyNotFound),
        "no root key"
    );
    keystore.create_token_root(&name("other")).unwrap();
    assert_eq!(ask(&keystore, &token, TokenOperation::Sign, theirs.key_id()), INVALID, "another root key");
}

#[test]
fn a_token_ends_when_it_says() {
    let (keystore, key) = keystore();
    let operations = [TokenOperation::Sign];
    let mut grant = grant(GrantedKeys::All, &operations);
    grant.expires = before(1);
    let token = keystore.mint_token(&grant).unwrap();
    assert_eq!(ask(&keystore, &token, TokenOperation::Sign, key.key_id()), REFUSED);
    grant.expires = after(100);
    let token = keystore.mint_token(&grant).unwrap();
    let at = |now| {
        let request = TokenRequest::on_key(TokenOperation::Sign, key.key_id(), now);
        keystore.authorize(&token, &request, &Revocations::default()).map(drop).map_err(|error| error.code)
    };
    assert_eq!(at(after(98)), Ok(()));
    assert_eq!(at(after(102)), REFUSED);
}

#[test]
fn what_a_holder_takes_away_is_gone_and_what_he_adds_is_nothing() {
    let (keystore, key) = keystore();
    let other = create(&keystore, "local", Algorithm::Ed25519);
    let token = keystore
        .mint_token(&grant(GrantedKeys::All, &[TokenOperation::Sign, TokenOperation::Verify]))
        .unwrap();
    let weaker = token
        .attenuate(&TokenLimits::default().operations(vec![TokenOperation::Verify, TokenOperation::Export]))
        .unwrap();
    assert_eq!(ask(&keystore, &weaker, TokenOperation::Verify, key.key_id()), Ok(()));
    assert_eq!(ask(&keystore, &weaker, TokenOperation::Sign, key.key_id()), REFUSED, "taken away");
    assert_eq!(ask(&keystore, &weaker, TokenOperation::Export, key.key_id()), REFUSED, "never granted");
    let narrow = weaker.attenuate(&TokenLimits::default().keys(vec![key.key_id().clone()])).unwrap();
    assert_eq!(ask(&keystore, &narrow, TokenOperation::Verify, key.key_id()), Ok(()));
    assert_eq!(ask(&keystore, &narrow, TokenOperation::Verify, other.key_id()), REFUSED);
    let ended = narrow.attenuate(&TokenLimits::default().expires(before(1))).unwrap();
    assert_eq!(ask(&keystore, &ended, TokenOperation::Verify, key.key_id()), REFUSED);
    assert_eq!(token.attenuate(&TokenLimits::default()).unwrap_err().code, Code::InvalidArgument);
    assert_eq!(
        token.attenuate(&TokenLimits::default().keys(Vec::new())).unwrap_err().code,
        Code::InvalidArgument
    );
}

#[test]
fn a_refusal_says_what_was_asked_and_whether_a_restriction_forbids_it() {
    let (keystore, key) = keystore();
    let token = keystore.mint_token(&grant(GrantedKeys::All, &[TokenOperation::Sign])).unwrap();
    let ended = token.attenuate(&TokenLimits::default().expires(before(1))).unwrap();
    let (now, local, key) = (Timestamp::now().unwrap(), name("local"), key.key_id());
    let said = |token: &Token, request: TokenRequest<'_>| {
        keystore.authorize(token, &request, &Revocations::default()).unwrap_err().message
    };
    assert_eq!(
        said(&token, TokenRequest::on_key(TokenOperation::Verify, key, now)),
        format!("the token does not permit this: verify with the key {key}")
    );
    assert_eq!(
        said(&token, TokenRequest::in_tenant(TokenOperation::Create, &local, now)),
        "the token does not permit this: create in the tenant local"
    );
    assert_eq!(
        said(&ended, TokenRequest::on_key(TokenOperation::Sign, key, now)),
        format!("the token has expired, or a restriction forbids this: sign with the key {key}")
    );
}

fn append(token: &Token, code: &str) -> String {
    let biscuit = UnverifiedBiscuit::from_base64(token.expose()).unwrap();
    biscuit.append(BlockBuilder::new().code(code).unwrap()).unwrap().to_base64().unwrap()
}

#[test]
fn every_minted_token_is_read_again() {
    let (keystore, key) = keystore();
    let keys = GrantedKeys::These(vec![key.key_id().clone(); 2]);
    let operations = [TokenOperation::ALL, TokenOperation::ALL].concat();
    let far = Timestamp::from_unix_millis(253_370_764_799_999).unwrap();
    for keys in [GrantedKeys::All, keys] {
        for expires in [after(60), far] {
            let plain = Grant::new(name("local"), keys.clone(), operations.clone(), expires);
            let named = plain.clone().holder(Holder::named("ci", "a\"b\n); ä"));
            let bound = named.clone().policies(vec![name("default"), name("a.b-c_d")]);
            for grant in [plain, named, bound] {
                let token = keystore.mint_token(&grant).unwrap();
                let again: Token = token.expose().parse().unwrap();
                assert_eq!(again.revocation_ids().unwrap(), token.revocation_ids().unwrap());
                assert!(keystore.rights(&again, &Revocations::default()).is_ok(), "{grant:?}");
            }
        }
    }
}

/// Blocks of the holder's own making, with facts and rules that pretend to be the grant, or that
/// ask for more computing than there is.
#[test]
fn blocks_of_another_form_are_refused() {
    let (keystore, _) = keystore();
    let token = keystore.mint_token(&grant(GrantedKeys::All, &[TokenOperation::Verify])).unwrap();
    let many: String = (0..400).map(|n| format!("n({n});")).collect();
    for code in [
        "operation(\"sign\");",
        "operation($o) <- request_operation($o);",
        "request_operation(\"verify\"); operation(\"sign\"); tenant(\"local\"); all_keys(true);",
        "check if true;",
        "check if operation($o), request_operation($p);",
        "check all request_operation($o), $o == \"verify\";",
        "reject if request_operation(\"sign\");",
        "check if request_operation(\"verify\") trusting previous;",
        "check if request_operation(\"fly\");",
        "check if time($later), $later <= 2100-01-01T00:00:00Z;",
        "check if request_key(\"nobody\");",
        &format!("{many} p($a, $b, $c, $d) <- n($a), n($b), n($c), n($d);"),
        &format!("{many} check if n($a), n($b), n($c), n($d), $a > $b, $b > $c, $c > $d, $d > 1000;"),
    ] {
        assert_eq!(
            Token::from_str(&append(&token, code)).unwrap_err().code,
            Code::InvalidToken,
            "{code:.80}"
        );
    }
    assert!(Token::from_str(&append(&token, "check if request_operation(\"verify\");")).is_ok());
}

/// Names in a token may be any text, so that its source prints like another one.
#[test]
fn a_block_that_only_prints_like_one_of_ours_is_refused() {
    use biscuit_auth::builder::{Fact, Term};
    let (keystore, key) = keystore();
    let token = keystore.mint_token(&grant(GrantedKeys::All, &[TokenOperation::Verify])).unwrap();
    let fact = Fact::new("check if request_operation".to_owned(), vec![Term::Str("verify".to_owned())]);
    let forged = UnverifiedBiscuit::from_base64(token.expose())
        .unwrap()
        .append(BlockBuilder::new().fact(fact).unwrap())
        .unwrap();
    let honest = append(&token, "check if request_operation(\"verify\");");
    let printed = UnverifiedBiscuit::from_base64(&honest).unwrap().print_block_source(1).unwrap();
    assert_eq!(forged.print_block_source(1).unwrap(), printed);
    assert_eq!(Token::from_str(&forged.to_base64().unwrap()).unwrap_err().code, Code::InvalidToken);
    let honest = Token::from_str(&honest).unwrap();
    assert_eq!(ask(&keystore, &honest, TokenOperation::Verify, key.key_id()), Ok(()));
}

#[test]
fn a_token_names_its_holder_and_no_holder_names_himself() {
    let (keystore, _) = keystore();
    let none = Revocations::default();
    let grant = grant(GrantedKeys::All, &[TokenOperation::Sign]);
    for text in ["release", "github/repo:acme/app:ref:refs/heads/main", &"x".repeat(96)] {
        let token = keystore.mint_token(&grant.clone().holder(text.parse().unwrap())).unwrap();
        let weaker = token.attenuate(&TokenLimits::default().expires(after(60))).unwrap();
        for token in [token, weaker] {
            assert_eq!(keystore.rights(&token, &none).unwrap().holder().unwrap().as_str(), text);
        }
    }
    let token = keystore.mint_token(&grant).unwrap();
    assert_eq!(keystore.rights(&token, &none).unwrap().holder(), None);
    let named = append(&token, "holder(\"root\");");
    assert_eq!(named.parse::<Token>().unwrap_err().code, Code::InvalidToken);
    for text in ["", " ", "a b", "a\"b", "a\\b", "a\n", "\u{e9}", &"x".repeat(97)] {
        assert_eq!(text.parse::<Holder>().unwrap_err().code, Code::InvalidArgument, "{text:?}");
    }
}

#[test]
fn two_names_never_give_one_holder() {
    let long = |end: &str| format!("{}{end}", "x".repeat(100));
    let names =
        ["", "a", "a b", "a%20b", "a\"b", "a\\b", "a\0", "\u{e9}", "/", "a/b", &long("a"), &long("b")];
    let holders = names.map(|name| Holder::named("ci", name));
    let distinct: BTreeSet<_> = holders.iter().map(Holder::as_str).collect();
    assert_eq!(distinct.len(), names.len());
    for holder in &holders {
        assert_eq!(holder.as_str().parse::<Holder>().unwrap(), *holder);
        // What was shortened is the name of nobody else.
        let (namespace, name) = holder.as_str().split_once('/').unwrap();
        let same = Holder::named(namespace, name) == *holder;
        assert_eq!(same, !holder.as_str().contains('%'), "{holder}");
    }
}

#[test]
fn tokens_of_other_roots_and_without_a_version_are_invalid() {
    let (keystore, key) = keystore();
    let forge = |version: Option<u32>| {
        let code = "tenant(\"local\"); operation(\"sign\"); all_keys(true); check if time($now), $now <= 2100-01-01T00:00:00Z;";
        let mut builder = BiscuitBuilder::new().code(code).unwrap();
        if let Some(version) = version {
            builder = builder.root_key_id(version);
        }
        Token::from_str(&builder.build(&KeyPair::new()).unwrap().to_base64().unwrap()).unwrap()
    };
    for version in [None, Some(0), Some(1), Some(2), Some(u32::MAX)] {
        assert_eq!(
            ask(&keystore, &forge(version), TokenOperation::Sign, key.key_id()),
            INVALID,
            "{version:?}"
        );
    }
}

#[test]
fn every_changed_character_makes_a_token_invalid() {
    let (keystore, key) = keystore();
    let token = keystore.mint_token(&grant(GrantedKeys::All, &[TokenOperation::Sign])).unwrap();
    let token = token.attenuate(&TokenLimits::default().expires(after(60))).unwrap();
    let text = token.expose().to_owned();
    for index in 0..text.len() {
        assert!(
            Token::from_str(&text[..index])
                .map_or(true, |cut| { ask(&keystore, &cut, TokenOperation::Sign, key.key_id()) == INVALID })
        );
        let mut changed = text.clone().into_bytes();
        changed[index] = if changed[index] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        if let Ok(changed) = Token::from_str(&changed) {
            assert_ne!(
                ask(&keystore, &changed, TokenOperation::Sign, key.key_id()),
                Ok(()),
                "character {index}"
            );
        }
    }
}

#[test]
fn a_token_falls_with_its_block_its_root_version_and_its_root() {
    let (keystore, key) = keystore();
    let first = keystore.mint_token(&grant(GrantedKeys::All, &[TokenOperation::Sign])).unwrap();
    let child = first.attenuate(&TokenLimits::default().expires(after(60))).unwrap();
    let blocks = child.inspect().unwrap().blocks;
    assert_eq!(
        (blocks.len(), &blocks[0].revocation_id),
        (2, &first.inspect().unwrap().blocks[0].revocation_id)
    );
    let revoked = |id: &str| Revocations::from_str(&format!("# why\n\n{id}\n")).unwrap();
    let ask_with = |token: &Token, revoked: &Revocations| {
        let request = TokenRequest::on_key(TokenOperation::Sign, key.key_id(), Timestamp::now().unwrap());
        keystore.authorize(token, &request, revoked).map(drop).map_err(|error| error.code)
    };
    assert_eq!(ask_with(&child, &revoked(&blocks[1].revocation_id)), REFUSED);
    assert_eq!(ask_with(&first, &revoked(&blocks[1].revocation_id)), Ok(()), "its parent remains");
    assert_eq!(ask_with(&first, &revoked(&blocks[0].revocation_id)), REFUSED);
    assert_eq!(
        ask_with(&child, &revoked(&blocks[0].revocation_id)),
        REFUSED,
        "a child falls with its parent"
    );
    assert!(Revocations::from_str("xyz").is_err());

    let root = keystore.find(&name("local"), &name(TOKEN_ROOT_PURPOSE)).unwrap().unwrap();
    keystore.rotate(&root).unwrap();
    let second = keystore.mint_token(&grant(GrantedKeys::All, &[TokenOperation::Sign])).unwrap();
    assert_eq!(second.inspect().unwrap().root_version, Some(2));
    assert_eq!(ask(&keystore, &first, TokenOperation::Sign, key.key_id()), Ok(()));
    keystore.update(&root, None, &KeyChange::Revoke(1.try_into().unwrap())).unwrap();
    assert_eq!(ask(&keystore, &first, TokenOperation::Sign, key.key_id()), INVALID);
    assert_eq!(ask(&keystore, &second, TokenOperation::Sign, key.key_id()), Ok(()));
    keystore.disable(&root).unwrap();
    assert_eq!(ask(&keystore, &second, TokenOperation::Sign, key.key_id()), Err(Code::KeyDisabled));
}

#[test]
fn a_list_of_revocations_holds_what_was_added_and_not_removed() {
    let mut list: Revocations = "# why\n\n ab12 \n".parse().unwrap();
    list.add("00cd");
    assert!(list.contains("ab12") && list.contains("00cd") && !list.contains("ab"));
    assert_eq!(list.ids().collect::<Vec<_>>(), ["00cd", "ab12"]);
    assert_eq!(list.to_string(), "00cd\nab12\n");
    list.remove("00cd");
    assert_eq!(list.to_string(), "ab12\n");
    for bad in ["abc", "AB", "xy", "ab 12"] {
        let error = format!("# why\n{bad}\n").parse::<Revocations>().unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{bad}");
        assert!(error.message.starts_with("line 2 is not a revocation id"), "{error}");
    }
}

#[test]
fn a_root_key_signs_tokens_and_nothing_else() {
    let (keystore, _) = keystore();
    let root = keystore.find(&name("local"), &name(TOKEN_ROOT_PURPOSE)).unwrap().unwrap();
    assert_eq!(keystore.sign(&root, b"a block").unwrap_err().code, Code::KeyUsageMismatch);
    assert_eq!(
        SignatureFile::sign(&keystore, &root, Statement::message(b"m")).unwrap_err().code,
        Code::KeyUsageMismatch
    );
    assert_eq!(keystore.attest_signed(&root).unwrap_err().code, Code::KeyUsageMismatch);
    assert_eq!(keystore.create_token_root(&name("local")).unwrap_err().code, Code::LabelTaken);
    // A key that has the label but not the purpose is no root.
    let new = NewKey::new(name("other"), name("files"), Algorithm::Ed25519).label(name(TOKEN_ROOT_PURPOSE));
    keystore.create_key(new).unwrap();
    let mut theirs = grant(GrantedKeys::All, &[TokenOperation::Sign]);
    theirs.tenant = name("other");
    assert_eq!(keystore.mint_token(&theirs).unwrap_err().code, Code::KeyNotFound);
}

#[test]
fn grants_of_nothing_and_of_others_keys_are_refused() {
    let (keystore, _) = keystore();
    let theirs = create(&keystore, "other", Algorithm::Ed25519);
    for bad in [
        grant(GrantedKeys::All, &[]),
        grant(GrantedKeys::These(Vec::new()), &[TokenOperation::Sign]),
        grant(GrantedKeys::These(vec![theirs.key_id().clone()]), &[TokenOperation::Sign]),
    ] {
        assert_eq!(keystore.mint_token(&bad).unwrap_err().code, Code::InvalidArgument);
    }
}

#[test]
fn hostile_tokens_end_in_an_error() {
    let (keystore, key) = keystore();
    let token = keystore.mint_token(&grant(GrantedKeys::All, &[TokenOperation::Sign])).unwrap();
    let mut long = token.clone();
    for _ in 1..MAX_BLOCKS {
        long = long.attenuate(&TokenLimits::default().expires(after(60))).unwrap();
    }
    assert_eq!(ask(&keystore, &long, TokenOperation::Sign, key.key_id()), Ok(()));
    let error = long.attenuate(&TokenLimits::default().expires(after(60))).unwrap_err();
    assert_eq!(error.code, Code::InvalidToken);
    for text in ["", "A", "====", "\u{0}", "ä", &"A".repeat(MAX_TOKEN_LEN + 1), &"A".repeat(MAX_TOKEN_LEN)] {
        assert_eq!(Token::from_str(text).unwrap_err().code, Code::InvalidToken);
    }
}

#[test]
fn a_block_of_a_third_party_is_refused() {
    let (keystore, _) = keystore();
    let token = keystore.mint_token(&grant(GrantedKeys::All, &[TokenOperation::Sign])).unwrap();
    let biscuit = UnverifiedBiscuit::from_base64(token.expose()).unwrap();
    let request = biscuit.third_party_request().unwrap();
    let party = KeyPair::new_with_algorithm(RootAlgorithm::Ed25519);
    let block = request.create_block(&party.private(), BlockBuilder::new().code("a(1);").unwrap()).unwrap();
    let with = biscuit.append_third_party(&block.serialize().unwrap()).unwrap();
    assert_eq!(Token::from_str(&with.to_base64().unwrap()).unwrap_err().code, Code::InvalidToken);
}

#[test]
fn a_token_prints_nothing_of_itself() {
    let (keystore, _) = keystore();
    let token = keystore.mint_token(&grant(GrantedKeys::All, &[TokenOperation::Sign])).unwrap();
    assert_eq!(format!("{token:?}"), "Token(..)");
    let source = token.inspect().unwrap().blocks[0].source.clone();
    assert!(source.contains("operation(\"sign\")") && source.contains("tenant(\"local\")"), "{source}");
}

/// Two keystores: ours exports, theirs has the recipient's key.
struct Export {
    ours: Keystore,
    key: KeyVersionId,
    theirs: Keystore,
    recipient: KeyVersionId,
    token: Token,
}

impl Export {
    fn new(recipient: Algorithm) -> Self {
        let (ours, key) = keystore();
        let theirs = Keystore::in_memory().unwrap();
        let recipient = create(&theirs, "them", recipient);
        let keys = GrantedKeys::These(vec![key.key_id().clone()]);
        let token = ours.mint_token(&grant(keys, &[TokenOperation::Export])).unwrap();
        Self { ours, key, theirs, recipient, token }
    }

    fn export(&self) -> bulla_kms::Result<WrappedPrivateKey> {
        let recipient = self.theirs.public_key(&self.recipient).unwrap();
        self.ours.export_key(&self.key, &recipient, &self.token, &Revocations::default())
    }
}

#[test]
fn an_exported_key_signs_in_the_recipients_keystore() {
    for recipient in [Algorithm::XWing, Algorithm::MlKem768, Algorithm::MlKem1024] {
        let it = Export::new(recipient);
        let text = it.export().unwrap().to_string();
        let wrapped: WrappedPrivateKey = text.parse().unwrap();
        let data = it.theirs.unwrap_key(&it.recipient, &wrapped).unwrap();
        let new = NewKey::new(name("them"), name("files"), Algorithm::Ed25519);
        let imported = it.theirs.import_key(new, &data).unwrap();
        let signature = it.theirs.sign(&imported, b"m").unwrap();
        assert_eq!(it.ours.verify(&it.key, b"m", &signature.bytes).unwrap(), Verdict::Valid);
    }
}

#[test]
fn keys_of_all_algorithms_go_out_and_come_in() {
    let theirs = Keystore::in_memory().unwrap();
    let recipient = create(&theirs, "them", Algorithm::XWing);
    for &algorithm in Algorithm::ALL {
        if algorithm.as_str().starts_with("slh-dsa") && algorithm != Algorithm::SlhDsaShake128f {
            continue;
        }
        let (ours, _) = keystore();
        let key = create(&ours, "local", algorithm);
        let token = ours.mint_token(&grant(GrantedKeys::All, &[TokenOperation::Export])).unwrap();
        let to = theirs.public_key(&recipient).unwrap();
        let wrapped = ours.export_key(&key, &to, &token, &Revocations::default()).unwrap();
        let data = theirs.unwrap_key(&recipient, &wrapped.to_string().parse().unwrap()).unwrap();
        assert_eq!(data.algorithm(), algorithm);
        assert_eq!(data.public_key(), ours.public_key(&key).ok().as_ref(), "{algorithm}");
        assert_eq!(data.public_key().is_none(), algorithm.is_symmetric(), "{algorithm}");
    }
}

#[test]
fn only_exportable_keys_leave_and_only_with_a_token() {
    let mut it = Export::new(Algorithm::XWing);
    let sealed = it.ours.create_key(NewKey::new(name("local"), name("files"), Algorithm::Ed25519)).unwrap();
    let all = it.ours.mint_token(&grant(GrantedKeys::All, &[TokenOperation::Export])).unwrap();
    let right = std::mem::replace(&mut it.token, all);
    let exportable = std::mem::replace(&mut it.key, sealed);
    assert_eq!(it.export().unwrap_err().code, Code::NotExportable);
    it.key = exportable;
    it.token =
        it.ours.mint_token(&grant(GrantedKeys::All, &[TokenOperation::Sign, TokenOperation::Read])).unwrap();
    assert_eq!(it.export().unwrap_err().code, Code::Forbidden);
    it.token = right;
    it.export().unwrap();
    // A key that signs is no recipient; nor is the key's older version to be had.
    let signing = it.ours.public_key(&it.key).unwrap();
    let error = it.ours.export_key(&it.key, &signing, &it.token, &Revocations::default()).unwrap_err();
    assert_eq!(error.code, Code::KeyUsageMismatch);
    it.ours.rotate(it.key.key_id()).unwrap();
    assert_eq!(it.export().unwrap_err().code, Code::NotLatestVersion);
    it.ours.disable(it.key.key_id()).unwrap();
    assert_eq!(it.export().unwrap_err().code, Code::KeyDisabled);
}

#[test]
fn no_token_takes_out_a_key_that_signs_tokens() {
    let mut it = Export::new(Algorithm::XWing);
    let new = NewKey::new(name("local"), name(TOKEN_ROOT_PURPOSE), Algorithm::Ed25519);
    it.key = it.ours.create_key(new.exportable(true)).unwrap();
    it.token = it.ours.mint_token(&grant(GrantedKeys::All, TokenOperation::ALL)).unwrap();
    assert_eq!(it.export().unwrap_err().code, Code::NotExportable);
}

#[test]
fn a_wrapped_key_is_for_its_recipient_alone() {
    let it = Export::new(Algorithm::XWing);
    let wrapped = it.export().unwrap();
    let other = create(&it.theirs, "them", Algorithm::XWing);
    assert_eq!(it.theirs.unwrap_key(&other, &wrapped).unwrap_err().code, Code::InvalidArgument);
    let retired = it.recipient.clone();
    it.theirs.rotate(retired.key_id()).unwrap();
    assert!(it.theirs.unwrap_key(&retired, &wrapped).is_ok(), "an older version decapsulates");
}

#[test]
fn every_changed_character_of_a_wrapped_key_is_detected() {
    let it = Export::new(Algorithm::XWing);
    let text = it.export().unwrap().to_string();
    let step = if cfg!(debug_assertions) { 7 } else { 1 };
    for index in (0..text.len()).step_by(step).chain(text.len() - 140..text.len()) {
        assert!(text[..index].parse::<WrappedPrivateKey>().is_err(), "cut at {index}");
        let mut changed = text.clone().into_bytes();
        changed[index] = if changed[index] == b'A' { b'B' } else { b'A' };
        let opened =
            String::from_utf8(changed).unwrap().parse().and_then(|w| it.theirs.unwrap_key(&it.recipient, &w));
        assert!(opened.is_err(), "character {index}");
    }
    assert!(format!("{text}\n").parse::<WrappedPrivateKey>().is_err());
    assert!(text.replace('\n', "\r\n").parse::<WrappedPrivateKey>().is_err());
}
