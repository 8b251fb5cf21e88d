//! Capability tokens (`spec/tokens.md`), and what they permit.

use crate::json::{Value, json};
use biscuit_auth::builder::{Algorithm, BiscuitBuilder, BlockBuilder};
use biscuit_auth::datalog::SymbolTable;
use biscuit_auth::{Biscuit, KeyPair, PrivateKey};

use crate::keys::{KEY, SEED};
use crate::post_quantum::bytes;

/// Who got a token.
const HOLDER: &str = "github/repo:acme/app";

fn pair(seed: &[u8]) -> KeyPair {
    KeyPair::from(&PrivateKey::from_bytes(seed, Algorithm::Ed25519).expect("32 bytes"))
}

pub(crate) fn cases() -> Value {
    let root = pair(&hex::decode(SEED).expect("hex"));
    let mint = |name: &str, holder: &str, keys: &str| {
        let code = format!(
            "tenant(\"local\"); {holder}operation(\"export\"); operation(\"sign\"); {keys}; \
             check if time($now), $now <= 2030-01-01T00:00:00Z;"
        );
        let builder = BiscuitBuilder::new().code(code).expect("Datalog").root_key_id(3);
        builder.build_with_key_pair(&root, SymbolTable::new(), &pair(&bytes(name, 32))).expect("a token")
    };
    let all = mint("token for all", "", "all_keys(true)");
    let one = mint("token for one", "", &format!("key(\"{KEY}\")"));
    let held = mint("token of a holder", &format!("holder(\"{HOLDER}\"); "), "all_keys(true)");
    let append = |token: &Biscuit, name: &str, code: &str| {
        let block = BlockBuilder::new().code(code).expect("Datalog");
        token.append_with_keypair(&pair(&bytes(name, 32)), block).expect("a block")
    };
    let weaker = append(&all, "weaker", "check if request_operation(\"sign\");");
    let forged = append(&weaker, "forged", "operation(\"destroy\"); all_keys(true); tenant(\"other\");");
    let tokens = [("all", all), ("one", one), ("weaker", weaker), ("forged", forged), ("held", held)];
    let tokens: Vec<_> = tokens
        .iter()
        .map(|(name, token)| {
            let ids: Vec<_> = token.revocation_identifiers().iter().map(hex::encode).collect();
            let holder = (*name == "held").then_some(HOLDER);
            let token = token.to_base64().expect("a token");
            json!({ "name": *name, "token": token, "holder": holder, "revocation_ids": ids })
        })
        .collect();
    let other = KEY.replace("9a11", "9a12");
    let (before, after) = ("2029-12-31T23:59:59.999Z", "2030-01-01T00:00:01.000Z");
    let request = |token: &str, operation: &str, key: Option<&str>, now: &str, permitted: bool| json!({ "token": token, "operation": operation, "tenant": "local", "key": key, "now": now, "permitted": permitted });
    json!({
        "root": json!({ "public_key": hex::encode(root.public().to_bytes()), "version": 3_u8 }),
        "tokens": tokens,
        "requests": [
            request("all", "sign", Some(KEY), before, true),
            request("all", "export", Some(&other), before, true),
            request("all", "export", None, before, true),
            request("all", "destroy", Some(KEY), before, false),
            request("all", "sign", Some(KEY), after, false),
            request("one", "sign", Some(KEY), before, true),
            request("one", "sign", Some(&other), before, false),
            request("one", "sign", None, before, false),
            request("weaker", "sign", Some(KEY), before, true),
            request("weaker", "export", Some(KEY), before, false),
            request("forged", "sign", Some(KEY), before, false),
            request("forged", "destroy", Some(KEY), before, false),
            request("held", "sign", Some(KEY), before, true),
            request("held", "destroy", Some(KEY), before, false),
        ],
    })
}
