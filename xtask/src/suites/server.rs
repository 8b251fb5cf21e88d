//! The suite of `crates/server`: its own tests, those of `crates/client`, and unchanged clients
//! against a running service.

use std::{
    env, fs,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::{
    Context,
    install::{self, DebianTool, node_packages},
    quiet,
};

use super::{
    go::{formatted, go},
    js::CHROMIUM,
    programs,
    python::{client_python, client_tests},
    runner::Runner,
    rust, server_described, server_ops,
    serving::{Prepared, Serving, ServingTls},
};

/// The compiler for Java, and its build tool, which gets the libraries and the generator.
pub(super) const JAVA: [DebianTool; 2] = [
    DebianTool { program: "javac", package: "default-jdk-headless" },
    DebianTool { program: "mvn", package: "maven" },
];

/// What the service for clients signs as an issuer of JWTs.
const JWT_SETTINGS: [(&str, &str); 2] = [
    ("BULLA_SERVE__JWT__ISSUER", "https://keys.example.org"),
    (
        "BULLA_SERVE__JWT__KEY",
        r#"[{ tenant = "local", label = "go-jwt", audiences = ["https://api.example.org"], max_lifetime_seconds = 60 },
            { tenant = "local", label = "java-jwt", audiences = ["https://api.example.org"], max_lifetime_seconds = 60 },
            { tenant = "local", label = "client-jwt", audiences = ["https://api.example.org"], max_lifetime_seconds = 60 }]"#,
    ),
];

/// What the clients' token permits.
const OPERATIONS: [&str; 18] = [
    "sign",
    "verify",
    "encrypt",
    "decrypt",
    "rewrap",
    "generate_data_key",
    "mac",
    "verify_mac",
    "derive_shared_secret",
    "create",
    "import",
    "export",
    "export_plaintext",
    "rotate",
    "update",
    "destroy",
    "read",
    "audit",
];

pub(super) fn run(runner: &mut Runner<'_>) {
    server_ops::run(runner);
    for tool in rust::PEERS.iter().chain(&rust::CLUSTER) {
        runner.need(tool.program, |_| install::debian(tool));
    }
    runner.programs(|package| matches!(package, "bulla-client" | "bulla-server"));
    let bulla = match programs::built(runner.context) {
        Ok(programs) => programs.command.clone(),
        Err(error) => return runner.need("bulla", |_| Err(error)),
    };
    page(runner, &bulla);
    server_described::run(runner, &bulla);
    let target = runner.context.target.clone();
    let service = service_for_clients(&bulla, &target);
    let with_tls = Prepared::new(&bulla, target.join("service-clients-tls"))
        .and_then(|prepared| ServingTls::start(&prepared));
    let (service, with_tls) = match (service, with_tls) {
        (Ok(service), Ok(with_tls)) => (service, with_tls),
        (Err(error), _) | (_, Err(error)) => return runner.need("bulla serve", |_| Err(error)),
    };
    witness(runner, &bulla);
    let named_in = |client: &mut Command| {
        service.named_in(client);
        with_tls.named_in(client);
    };
    ours(runner, named_in);
    let clients = runner.context.root.join("crates/server/tests/clients");
    runner.check("our clients as packages, outside of the checkout", |context| {
        packages(context, &clients.join("packages"), &service)
    });
    for tool in &JAVA {
        runner.need(tool.program, |_| install::debian(tool));
    }
    runner.check("Java: a client from the description, three of Vault, and Nimbus", |context| {
        java(context, &clients.join("java"), &service, &bulla)
    });
    runner.check("hvac, Vault's client for Python", |context| vault(context, "test_hvac.py", 23, &service));
    runner.check("OpenBao beside ours", |context| vault(context, "test_openbao.py", 33, &service));
    runner.check("OpenBao's command and seal", |context| vault(context, "test_bao.py", 3, &service));
    runner.check("cosign with keys of the service", |context| cosign(context, &clients, &service));
    runner.check("Ansible's collection for Vault", |context| ansible(context, &service));
    kubernetes(runner, &bulla);
    let folder = clients.join("node");
    runner.need("node-vault, Vault's client for Node", |_| node_packages(&folder));
    let mut test = Command::new("node");
    test.args(["--test", "--test-reporter=spec", "test/node-vault.test.js"]).current_dir(&folder);
    runner.node_test("node --test, Vault's client for Node", service.named_in(&mut test));
    runner.check("logins by hvac and OpenBao's agent", |context| {
        serving_itself(context, "test_logins.py", 7, &bulla)
    });
    runner.check("JWTs by PyJWT", |context| serving_itself(context, "test_jwt.py", 2, &bulla));
    runner
        .check("policies beside OpenBao's", |context| serving_itself(context, "test_policies.py", 2, &bulla));
    runner.check("namespaces beside OpenBao's", |context| {
        serving_itself(context, "test_namespaces.py", 2, &bulla)
    });
    let folder = clients.join("go");
    runner.check("gofmt, Vault's client for Go", |_| formatted(&folder));
    runner.command("go vet, Vault's client for Go", go(&folder).args(["vet", "./..."]));
    // Go would reuse the results of an earlier service.
    let mut test = go(&folder);
    test.args(["test", "-json", "-count=1", "./..."]).env("BULLA", &bulla);
    runner.go_test("go test, Vault's client for Go", service.named_in(&mut test));
}

/// The service that most clients ask.
fn service_for_clients(bulla: &Path, target: &Path) -> Result<Serving> {
    let prepared = Prepared::new(bulla, target.join("service-clients"))?;
    prepared.run(&["log", "init"])?;
    // No token permits to make them.
    for label in ["go-jwt", "java-jwt", "client-jwt"] {
        prepared.run(&["keys", "create", label, "--purpose", "jwt-issuer", "--algorithm", "ecdsa-p256"])?;
    }
    prepared.serve_with(&OPERATIONS, &JWT_SETTINGS)
}

/// A witness of the Go ecosystem cosigns audit logs of the command and of a service.
fn witness(runner: &mut Runner<'_>, bulla: &Path) {
    let folder = runner.context.root.join("crates/server/tests/witness");
    runner.check("gofmt, the test with a witness", |_| formatted(&folder));
    runner.command("go vet, the test with a witness", go(&folder).args(["vet", "./..."]));
    let mut test = go(&folder);
    test.args(["test", "-json", "-count=1", "./..."]).env("BULLA", bulla);
    runner.go_test("go test, audit logs with a witness", &mut test);
}

/// The code of Kubernetes' API server encrypts with a key of a service.
fn kubernetes(runner: &mut Runner<'_>, bulla: &Path) {
    let folder = runner.context.root.join("crates/server/tests/kubernetes");
    runner.check("gofmt, the test with Kubernetes", |_| formatted(&folder));
    runner.command("go vet, the test with Kubernetes", go(&folder).args(["vet", "./..."]));
    let mut test = go(&folder);
    test.args(["test", "-json", "-count=1", "./..."]).env("BULLA", bulla);
    runner.go_test("go test, Kubernetes' API server and its plugin", &mut test);
}

/// Our clients for Go, Python and JavaScript. `named_in` tells them where the services are.
fn ours(runner: &mut Runner<'_>, named_in: impl Fn(&mut Command)) {
    let mut test = go(&runner.context.root.join("go/kms"));
    test.args(["test", "-json", "-count=1", "-tags=service", "-run=TestAgainstTheService", "."]);
    named_in(&mut test);
    runner.go_test("go test, our client for Go", &mut test);
    match client_tests(runner.context) {
        Ok(mut test) => {
            named_in(&mut test);
            runner.pytest("pytest, our client for Python", test.arg("tests/test_service.py"));
        }
        Err(error) => runner.need("our client for Python", |_| Err(error)),
    }
    match javascript(runner.context) {
        Ok(mut test) => {
            named_in(&mut test);
            runner.node_test("node --test, our client for JavaScript", &mut test);
        }
        Err(error) => runner.need("our client for JavaScript", |_| Err(error)),
    }
}

/// The tests of our client for JavaScript. Each is one file with the client's source, because
/// another suite may be building `js/` now.
fn javascript(context: &Context) -> Result<Command> {
    let bundles = context.target.join("service-client");
    if bundles.exists() {
        fs::remove_dir_all(&bundles)?;
    }
    let packages = "crates/server/tests/page/node_modules";
    let mut bundling = Command::new(context.root.join(packages).join(".bin/esbuild"));
    bundling
        .args(["js/kms/test/service.js", "js/kms/test/service-tls.js"])
        .args(["--bundle", "--platform=node", "--format=esm", "--out-extension:.js=.mjs", "--log-level=warning"])
        .args(["--alias:bulla-kms=./js/kms/src/index.ts", &format!("--alias:undici=./{packages}/undici")])
        // The parts of undici are CommonJS, and call `require`.
        .arg("--banner:js=import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);")
        .arg(format!("--outdir={}", bundles.display()))
        .current_dir(&context.root);
    quiet(&mut bundling).context("esbuild")?;
    let mut node = Command::new("node");
    node.args(["--test", "--test-reporter=spec"]);
    node.args(["service.mjs", "service-tls.mjs"].map(|name| bundles.join(name)));
    Ok(node)
}

fn vault(context: &Context, script: &str, tests: usize, service: &Serving) -> Result<()> {
    let folder = context.root.join("crates/server/tests/clients/python");
    let python = install::python_packages(context, "python-vault", &folder.join("requirements.txt"))?;
    unittest(&python, &folder.join(script), service, tests)
}

/// cosign, which has Sigstore's library for keys of Vault as a plugin: Debian leaves it out.
fn cosign(context: &Context, clients: &Path, service: &Serving) -> Result<()> {
    let plugins = context.target.join("cosign-plugins");
    let mut build = go(&clients.join("go"));
    build
        .arg("build")
        .arg("-o")
        .arg(plugins.join("sigstore-kms-hashivault"))
        .arg("./sigstore-kms-hashivault");
    quiet(&mut build)?;
    let path = env::var_os("PATH").unwrap_or_default();
    let mut command = Command::new("python3");
    command.arg("-B").arg(clients.join("python/test_cosign.py"));
    command.env("PATH", env::join_paths([plugins].into_iter().chain(env::split_paths(&path)))?);
    command.env("COSIGN", install::debian_archive(context, &rust::COSIGN)?);
    passed_unittest(service.named_in(&mut command), 4)
}

/// Ansible's collection for Vault, with packages of its own: they are large.
fn ansible(context: &Context, service: &Serving) -> Result<()> {
    let folder = context.root.join("crates/server/tests/clients/python");
    let requirements = folder.join("requirements-ansible.txt");
    let python = install::python_packages(context, "python-ansible", &requirements)?;
    unittest(&python, &folder.join("test_ansible.py"), service, 1)
}

/// Tests that start services with settings of their own.
fn serving_itself(context: &Context, script: &str, tests: usize, bulla: &Path) -> Result<()> {
    let folder = context.root.join("crates/server/tests/clients/python");
    let python = install::python_packages(context, "python-vault", &folder.join("requirements.txt"))?;
    let mut command = Command::new(python);
    command.arg("-B").arg(folder.join(script)).env("BULLA", bulla);
    passed_unittest(&mut command, tests)
}

/// Our clients as registries deliver them, in folders outside of the checkout.
fn packages(context: &Context, folder: &Path, service: &Serving) -> Result<()> {
    node_packages(&context.root.join("js"))?;
    unittest(&client_python(context)?, &folder.join("test_packages.py"), service, 3)
}

/// The client that openapi-generator makes from the service's description, and clients of Vault.
fn java(context: &Context, folder: &Path, service: &Serving, bulla: &Path) -> Result<()> {
    let mut maven = Command::new("mvn");
    maven.args(["--batch-mode", "--no-transfer-progress", "test"]).current_dir(folder);
    maven.arg(format!("-Dbuild.folder={}", context.target.join("java-clients").display()));
    let output = service.named_in(&mut maven).env("BULLA", bulla).stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    // Maven says on its standard output why it failed.
    ensure!(output.status.success(), "mvn failed ({})\n{said}", output.status);
    let passed = said.rsplit_once("Tests run: ").and_then(|(_, text)| text.split(',').next()?.parse().ok());
    ensure!(passed.is_some_and(|passed: u32| passed >= 23), "only {passed:?} tests passed");
    Ok(())
}

/// Runs a script of `unittest`, which must pass so many tests.
fn unittest(python: &Path, script: &Path, service: &Serving, tests: usize) -> Result<()> {
    passed_unittest(service.named_in(Command::new(python).arg("-B").arg(script)), tests)
}

/// Runs a command with a script of `unittest`, which must pass so many tests.
pub(super) fn passed_unittest(command: &mut Command, tests: usize) -> Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    // What a test that fails says is in its output. The command would show its environment, too.
    let script = command.get_args().last().unwrap_or_default().display();
    ensure!(output.status.success(), "{script} failed ({})\n{said}", output.status);
    // A test that prints has its end on a line of its own.
    let passed = said.lines().filter(|line| line.ends_with("... ok") || *line == "ok").count();
    ensure!(passed >= tests, "only {passed} tests passed");
    Ok(())
}

/// The tests of the page of `bulla serve` in Chromium, with the program `bulla`.
fn page(runner: &mut Runner<'_>, bulla: &Path) {
    let folder = runner.context.root.join("crates/server/tests/page");
    runner.need("npm packages of the service's page", |_| node_packages(&folder));
    runner.need("chromium", |_| install::debian(&CHROMIUM));
    let mut tests = Command::new("node");
    tests
        .args(["--test", "--test-reporter=spec"])
        .args(["keys", "credentials", "live", "form"].map(|name| format!("test/{name}.test.js")))
        .current_dir(&folder)
        .env("BULLA", bulla)
        .env("BULLA_PAGE_PICTURES", runner.context.target.join("server-page-pictures"));
    runner.node_test("node --test", &mut tests);
}
