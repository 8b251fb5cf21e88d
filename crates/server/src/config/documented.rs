//! Every setting is in the table of `docs/operations.md`, and nothing else is.

use std::collections::BTreeSet;

use toml::Value;

use super::*;

/// Settings with a value in each field. A new setting must be added here, or this does not compile.
fn everything() -> Config {
    let some = || Some(PathBuf::from("a"));
    let one = std::num::NonZeroU32::MIN;
    let tls = TlsConfig { certificate: "a".into(), key: "a".into(), client_ca: some() };
    Config {
        keystore: KeystoreConfig {
            store: StoreKind::Etcd,
            guard: some(),
            folder: some(),
            passphrase_file: some(),
            passphrase_fd: Some(3),
            credential: Some("a".to_owned()),
        },
        etcd: EtcdConfig {
            endpoints: vec!["http://127.0.0.1:1".to_owned()],
            ca: some(),
            certificate: some(),
            key: some(),
            user: Some("a".to_owned()),
            password_file: some(),
            ..EtcdConfig::default()
        },
        group: Some(group()),
        listen: vec![ListenConfig {
            address: "127.0.0.1:1".parse().ok(),
            unix: some(),
            mode: Some(SocketMode::default()),
            tls: Some(tls),
        }],
        limits: LimitsConfig {
            request_rate: Some(RequestRate { per_second: one, burst: one }),
            ..LimitsConfig::default()
        },
        quota: vec![quota()],
        audit: AuditConfig { cosignature_quorum: Some(1), ..AuditConfig::default() },
        witness: vec![WitnessConfig {
            url: "https://witness.example.org".to_owned(),
            key: "witness.example.org+ac94e85e+BNdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea".parse().unwrap(),
        }],
        caller: vec![CallerConfig {
            name: "a".to_owned(),
            uid: Some(1),
            certificate_sha256: Some("a".to_owned()),
            tenant: "local".parse().unwrap(),
            operations: Some(vec![TokenOperation::Sign]),
            keys: Some(Vec::new()),
            can_mint_tokens: false,
        }],
        issuer: vec![issuer()],
        role: vec![role()],
        approle: vec![approle()],
        certificate_role: vec![certificate_role()],
        mount: vec![mount()],
        policy: vec![PolicyConfig {
            name: "a".parse().unwrap(),
            tenant: "local".parse().unwrap(),
            file: "a".into(),
        }],
        jwt: Some(jwt()),
        service: ServiceConfig {
            threads: Some(NonZeroUsize::MIN),
            backup_recipients: vec!["a".to_owned()],
            ..ServiceConfig::default()
        },
        log: LogConfig::default(),
        trace: TraceConfig { otlp_endpoint: Some("a".to_owned()) },
    }
}

fn group() -> GroupConfig {
    GroupConfig {
        name: "a".parse().unwrap(),
        listen: "127.0.0.1:1".parse().unwrap(),
        folder: "a".into(),
        certificate: "a".into(),
        key: "a".into(),
        threshold: 2,
        timeout_milliseconds: 1,
        peer: vec![GroupPeerConfig {
            name: "a".parse().unwrap(),
            address: "127.0.0.1:1".to_owned(),
            certificate_sha256: "a".to_owned(),
        }],
    }
}

fn jwt() -> JwtConfig {
    JwtConfig {
        issuer: "https://a.example.org".to_owned(),
        key: vec![JwtKeyConfig {
            tenant: "local".parse().unwrap(),
            label: "a".parse().unwrap(),
            audiences: vec!["a".to_owned()],
            max_lifetime_seconds: 1,
        }],
    }
}

fn quota() -> QuotaConfig {
    let one = std::num::NonZeroU32::MIN;
    QuotaConfig {
        tenant: "local".parse().ok(),
        request_rate: Some(RequestRate { per_second: one, burst: one }),
        byte_rate: Some(ByteRate { per_second: one.into(), burst: one.into() }),
        max_slow_jobs: NonZeroUsize::new(1),
        max_keys: Some(1),
    }
}

fn mount() -> MountConfig {
    let payments: Name = "payments".parse().unwrap();
    MountConfig { tenant: "local".parse().unwrap(), path: payments.clone(), keys_tenant: payments }
}

fn issuer() -> IssuerConfig {
    IssuerConfig {
        name: "a".parse().unwrap(),
        issuer: "https://a.example.org".to_owned(),
        jwks_url: Some("https://a.example.org/keys".to_owned()),
        keys_file: Some("a".into()),
        ca: Some("a".into()),
        token_review: Some(TokenReviewConfig {
            url: "https://a.example.org".to_owned(),
            token_file: "a".into(),
        }),
        leeway_seconds: 1,
    }
}

fn role() -> RoleConfig {
    RoleConfig {
        name: "a".parse().unwrap(),
        issuer: "a".parse().unwrap(),
        audiences: vec!["a".to_owned()],
        subjects: vec!["a".to_owned()],
        claims: [("CLAIM".to_owned(), vec!["a".to_owned()])].into(),
        jwt_use: JwtUse::Once,
        tenant: "local".parse().unwrap(),
        operations: vec![TokenOperation::Sign],
        policies: vec!["a".parse().unwrap()],
        keys: Some(vec!["a".to_owned()]),
        lifetime_seconds: 1,
    }
}

fn approle() -> AppRoleConfig {
    AppRoleConfig {
        name: "a".parse().unwrap(),
        role_id: Some("a".to_owned()),
        bind_secret_id: true,
        secret_id_num_uses: 1,
        secret_id_ttl_seconds: 1,
        secret_id_bound_cidrs: vec!["10.0.0.0/8".parse().unwrap()],
        tenant: "local".parse().unwrap(),
        operations: vec![TokenOperation::Sign],
        policies: vec!["a".parse().unwrap()],
        keys: Some(vec!["a".to_owned()]),
        lifetime_seconds: 1,
    }
}

fn certificate_role() -> CertificateRoleConfig {
    let some = || vec!["a".to_owned()];
    CertificateRoleConfig {
        name: "a".parse().unwrap(),
        ca: Some("a".into()),
        common_names: some(),
        organizational_units: some(),
        dns_names: some(),
        email_addresses: some(),
        uris: some(),
        tenant: "local".parse().unwrap(),
        operations: vec![TokenOperation::Sign],
        policies: vec!["a".parse().unwrap()],
        keys: Some(some()),
        lifetime_seconds: 1,
    }
}

/// The names of all settings in a table.
fn names(value: &Value, name: &str, all: &mut BTreeSet<String>) {
    let tables = match value {
        Value::Table(table) => vec![table],
        Value::Array(items) => items.iter().filter_map(Value::as_table).collect(),
        _ => Vec::new(),
    };
    if tables.is_empty() {
        all.insert(name.to_owned());
    }
    for (key, value) in tables.into_iter().flatten() {
        let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
        names(value, &name, all);
    }
}

#[test]
fn every_setting_is_in_the_table_of_the_document() {
    let document = include_str!("../../../../docs/operations.md");
    let (_, table) = document.split_once("\n## Settings\n").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let documented: BTreeSet<_> = rows.map(|(name, _)| name.to_owned()).collect();
    let mut settings = BTreeSet::new();
    names(&Value::try_from(everything()).unwrap(), "", &mut settings);
    assert_eq!(documented, settings);
}

#[test]
fn what_is_printed_reads_as_the_same_settings() {
    for config in [Config::default(), everything()] {
        let text = config.to_toml().unwrap();
        let again: Config = toml::from_str(&text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
        assert_eq!(again, config, "{text}");
    }
}
