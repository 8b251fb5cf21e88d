#!/bin/sh
# Runs the tests of ed25519-dalek, and of crates that depend on it, on our crate. It fetches them
# from crates.io, and copies nothing into this repository.
# Usage: crates/ed25519/dependents/test.sh [CRATE...]   without CRATE: all of them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=${BULLA_DEPENDENTS:-${TMPDIR:-/tmp}/bulla-ed25519-dependents}
mkdir -p "$work"

# Prints the folder with the source of a crate: NAME VERSION.
source_of() {
    mkdir -p "$work/fetch/src"
    : > "$work/fetch/src/lib.rs"
    printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2024"\n[workspace]\n[dependencies]\n%s = "=%s"\n' \
        "$1" "$2" > "$work/fetch/Cargo.toml"
    cargo metadata --quiet --format-version=1 --manifest-path="$work/fetch/Cargo.toml" |
        python3 -c 'import json, os, sys
name, version = sys.argv[1:]
for package in json.load(sys.stdin)["packages"]:
    if (package["name"], package["version"]) == (name, version):
        print(os.path.dirname(package["manifest_path"]))' "$1" "$2"
}

# Runs what is left of the arguments, and says in one line how it ended.
run_tests() {
    name=$1
    shift
    echo "== $name"
    (cd "$work/$name" && CARGO_TARGET_DIR="$work/target" cargo test --quiet --no-fail-fast "$@")
}

# The tests of ed25519-dalek itself, in a package of that name which is our crate. Three of them
# read vectors that are not published.
test_dalek() {
    from=$(source_of ed25519-dalek 3.0.0)
    rm -rf "$work/ed25519-dalek"
    cp -r "$here/ed25519-dalek" "$work/ed25519-dalek"
    cp -r "$from/tests" "$work/ed25519-dalek/tests"
    python3 - "$from/Cargo.toml" "$work/ed25519-dalek/Cargo.toml" "$here/../" <<'PYTHON'
import os, sys, tomllib
theirs, ours, crate = sys.argv[1:]
text = open(ours).read().replace("../..", os.path.abspath(crate))
for name, needs in tomllib.load(open(theirs, "rb"))["dev-dependencies"].items():
    needs = needs if isinstance(needs, dict) else {"version": needs}
    features = ", ".join(f'"{feature}"' for feature in needs.get("features", []))
    default = "true" if needs.get("default-features", True) else "false"
    if name != "criterion":
        text += f'\n[dev-dependencies.{name}]\nversion = "{needs["version"]}"\n'
        text += f"features = [{features}]\ndefault-features = {default}\n"
# What the original itself depends on.
for name, version in {"ed25519": "3", "rand_core": "0.10", "sha2": "0.11"}.items():
    text += f'\n[dev-dependencies.{name}]\nversion = "{version}"\ndefault-features = false\n'
open(ours, "w").write(text)
PYTHON
    all=alloc,batch,digest,hazmat,pem,pkcs8,rand_core,serde
    for features in "$all" "$all,std" "$all,std,fast"; do
        run_tests ed25519-dalek --no-default-features --features "$features" --tests -- \
            --skip against_reference_implementation --skip check_validation_criteria --skip find_validation_criteria
    done
}

# The tests of a dependent, with our crate in place of ed25519-dalek: NAME VERSION, and what
# `cargo test` gets. EXTRA is added to its manifest.
test_dependent() {
    name=$1
    from=$(source_of "$1" "$2")
    shift 2
    rm -rf "${work:?}/$name"
    cp -r "$from" "$work/$name"
    printf '\n%b\n[workspace]\n[patch.crates-io]\ned25519-dalek = { path = "%s/ed25519-dalek" }\n' "${EXTRA-}" "$here" \
        >> "$work/$name/Cargo.toml"
    rm -f "$work/$name/Cargo.lock"
    run_tests "$name" "$@"
    grep -q '^name = "bulla-ed25519"$' "$work/$name/Cargo.lock"
}

for crate in ${*:-ed25519-dalek ssh-key iroh-base libp2p-identity}; do
    case $crate in
    ed25519-dalek) test_dalek ;;
    ssh-key) test_dependent ssh-key 0.7.0-rc.12 --features alloc,ed25519,getrandom ;;
    iroh-base) test_dependent iroh-base 1.4.1 --all-features ;;
    libp2p-identity)
        # Its tests need a package that is not published with it.
        EXTRA='[dev-dependencies.quickcheck]\nversion = "1"'
        test_dependent libp2p-identity 0.3.1 --all-features ;;
    *) echo "no such crate: $crate" >&2; exit 2 ;;
    esac
done
