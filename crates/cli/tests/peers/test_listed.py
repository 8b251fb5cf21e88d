"""Signatures that list files, with the real programs on the other side.

The variables BULLA and COSIGN name the programs.
"""

import base64
import copy
import datetime
import json
import os
import pathlib
import shutil
import sys
import unittest

import google.protobuf.json_format as pb_json
import in_toto_attestation.v1.statement as in_toto
import in_toto_attestation.v1.statement_pb2 as statement_pb
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from model_signing import hashing, signing, verifying
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner, SSlibKey

from support import Folder

COSIGN = os.environ["COSIGN"]
VECTORS = pathlib.Path(__file__).resolve().parents[3] / "formats/tests/vectors"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
PROVENANCE = "https://slsa.dev/provenance/v1"
# What the provenance of a build has at least.
PREDICATE = {
    "buildDefinition": {
        "buildType": "https://example.org/make/v1",
        "externalParameters": {"source": "git+https://example.org/app@v1.0"},
    },
    "runDetails": {"builder": {"id": "https://example.org/builder"}},
}
# It has no authorities and no logs: keys alone are verified, and nothing is asked of the network.
TRUSTED_ROOT = {"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1"}


class Files(Folder):
    """A folder with a keystore, a predicate, and a list of trusted logs that is empty."""

    def setUp(self):
        super().setUp()
        self.write("predicate.json", json.dumps(PREDICATE))
        self.write("root.json", json.dumps(TRUSTED_ROOT))


class Dsse(Files):
    SIGN = ["--format", "dsse", "--predicate", "predicate.json", "--predicate-type", PROVENANCE]

    def envelope(self, name):
        return Envelope.from_dict(json.loads((self.root / name).read_text()))

    def test_they_verify_what_bulla_signs(self):
        self.write("app-1.0", b"program" * 10000)
        self.write("dist/a", b"a")
        self.write("dist/b/c", b"")
        for key in ["ed", "p256"]:
            public = SSlibKey.from_crypto(self.key(f"{key}.pem"))
            for path, names in [("app-1.0", ["app-1.0"]), ("dist", ["a", "b/c"])]:
                self.bulla("sign", path, "--key", key, *self.SIGN)
                envelope = self.envelope(f"{path}.intoto.jsonl")
                self.assertEqual(list(envelope.verify([public], 1)), [public.keyid])
                self.assertEqual(envelope.payload_type, PAYLOAD_TYPE)
                parsed = pb_json.Parse(envelope.payload, statement_pb.Statement())
                statement = in_toto.Statement.copy_from_pb(parsed)
                statement.validate()
                self.assertEqual([subject.name for subject in parsed.subject], names)
                for subject in parsed.subject:
                    self.assertEqual(sorted(subject.digest), ["blake3", "sha256", "sha512"])
                self.assertEqual(pb_json.MessageToDict(parsed.predicate), PREDICATE)
                said = self.bulla("verify", path)
                self.assertIn(f"dsse signature by {key} v1, predicate: {PROVENANCE}", said)
                self.bulla("verify", path, "--public-key", f"{key}.pem")
                envelope.payload += b" "
                with self.assertRaises(Exception):
                    envelope.verify([public], 1)

    def test_bulla_verifies_what_they_sign(self):
        self.write("app", b"content")
        digest = {"sha256": "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"}
        subject = statement_pb.Statement().subject.add(name="app", digest=digest)
        statement = in_toto.Statement([subject], PROVENANCE, PREDICATE)
        payload = pb_json.MessageToJson(statement.pb).encode()
        keys = [ed25519.Ed25519PrivateKey.generate()]
        keys += [ec.generate_private_key(curve()) for curve in (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)]
        self.their_key(ed25519.Ed25519PrivateKey.generate(), "other")
        for number, private in enumerate(keys):
            name = f"key{number}"
            self.their_key(private, name)
            # Every second signature of ECDSA has the higher s.
            for _ in range(4):
                envelope = Envelope(payload, PAYLOAD_TYPE, {})
                envelope.sign(CryptoSigner(private))
                self.write("app.intoto.jsonl", json.dumps(envelope.to_dict()))
                self.assertIn("app: OK", self.bulla("verify", "app", "-p", f"{name}.pub"))
            self.refused("app: wrong key", "app", "-p", "other.pub")
            self.refused("app: unknown key", "app")
            for at in self.damaged("app.intoto.jsonl"):
                with self.subTest(at=at):
                    # The name of the key is covered by nothing.
                    text = (self.root / "app.intoto.jsonl").read_text()
                    try:
                        same = self.envelope("app.intoto.jsonl")
                        whole = same.payload == payload and same.payload_type == PAYLOAD_TYPE
                        signed = same.signatures[next(iter(same.signatures))].signature
                        same = whole and [signed] == [one.signature for one in envelope.signatures.values()]
                    except Exception:
                        same = False
                    if not same:
                        self.refused("app: ", "app", "-p", f"{name}.pub")
            self.write("app", b"Content")
            self.refused("app: changed", "app", "-p", f"{name}.pub")
            self.write("app", b"content")
            shutil.copy(self.root / "app", self.root / "app-2")
            self.refused("wrong name", "app-2", "-s", "app.intoto.jsonl", "-p", f"{name}.pub")
            typed = Envelope(payload, "text/plain", {})
            typed.sign(CryptoSigner(private))
            self.write("app.intoto.jsonl", json.dumps(typed.to_dict()))
            self.refused("malformed signature", "app", "-p", f"{name}.pub")


class Sigstore(Files):
    def cosign(self, command, *args, status=0):
        return self.run_program(COSIGN, command, "--new-bundle-format", *args, status=status)

    def they_verify(self, key, status=0):
        args = ["--key", key, "--bundle", "app.sigstore.json", "--private-infrastructure"]
        return self.cosign("verify-blob", *args, "--trusted-root", "root.json", "app", status=status)

    def test_cosign_verifies_what_bulla_signs(self):
        self.write("app", b"program" * 10000)
        for key, other in [("ed", "p256"), ("p256", "ed")]:
            self.bulla("sign", "app", "--format", "sigstore", "--key", key)
            self.assertIn("Verified OK", self.they_verify(f"{key}.pem"))
            self.they_verify(f"{other}.pem", status=1)
            self.assertIn(f"sigstore signature by {key} v1", self.bulla("verify", "app"))
            self.refused("app: wrong key", "app", "-p", f"{other}.pem")
            self.write("app", b"changed")
            self.they_verify(f"{key}.pem", status=1)
            self.refused("app: changed", "app")
            self.write("app", b"program" * 10000)
            predicate = ["--predicate", "predicate.json", "--predicate-type", PROVENANCE]
            self.bulla("sign", "app", "--format", "sigstore", "--key", key, *predicate)
            args = ["--key", f"{key}.pem", "--bundle", "app.sigstore.json", "--type", PROVENANCE]
            args += ["--private-infrastructure", "--trusted-root", "root.json", "app"]
            self.assertIn("Verified OK", self.cosign("verify-blob-attestation", *args))
            self.assertIn(f"predicate: {PROVENANCE}", self.bulla("verify", "app"))
            self.write("app", b"changed")
            self.cosign("verify-blob-attestation", *args, status=1)
            self.refused("app: changed", "app")
            self.write("app", b"program" * 10000)

    def test_bulla_verifies_what_cosign_signs(self):
        self.write("app", b"program")
        self.run_program(COSIGN, "generate-key-pair")
        sign = ["--key", "cosign.key", "--bundle", "app.sigstore.json", "--tlog-upload=false", "-y"]
        attest = ["--predicate", "predicate.json", "--type", PROVENANCE]
        for command, flags in [("sign-blob", []), ("attest-blob", attest)]:
            self.cosign(command, *sign, *flags, "app")
            verify = ["app", "-p", "cosign.pub"]
            self.assertIn("app: OK (sigstore signature", self.bulla("verify", *verify))
            self.refused("app: wrong key", "app", "-p", "p256.pem")
            self.write("app", b"changed")
            self.refused("app: changed", *verify)
            self.write("app", b"program")
            bundle = json.loads((self.root / "app.sigstore.json").read_text())
            # A bundle with an entry of a log is verified by its key, and bulla says what it left.
            logged = copy.deepcopy(bundle)
            entry = {"logIndex": "1", "logId": {"keyId": "AAAA"}, "integratedTime": "1700000000"}
            entry |= {"kindVersion": {"kind": "dsse", "version": "0.0.1"}, "canonicalizedBody": "e30="}
            logged["verificationMaterial"]["tlogEntries"] = [entry]
            self.write("app.sigstore.json", json.dumps(logged))
            said = self.bulla("verify", *verify)
            self.assertIn("not verified: 1 entry of a transparency log", said)
            for part in ["messageSignature", "dsseEnvelope"]:
                if part in bundle:
                    broken = copy.deepcopy(bundle)
                    broken["other" + part] = broken.pop(part)
                    self.write("app.sigstore.json", json.dumps(broken))
                    self.refused("malformed signature", *verify)
            self.write("app.sigstore.json", json.dumps(bundle))
            whole = (self.root / "app.sigstore.json").read_text()
            for length in range(1, len(whole), 37):
                self.write("app.sigstore.json", whole[:length])
                self.refused("malformed signature", *verify)


class Logged(Files):
    """Bundles with entries of Sigstore's public log: cosign and bulla verify them offline."""

    PACKAGE = "signed-package-2.1.0-hb0f4dca_0.conda"
    IDENTITY = "https://github.com/prefix-dev/sigstore-example/.github/workflows/action.yaml@refs/heads/main"
    ISSUER = "https://token.actions.githubusercontent.com"

    def setUp(self):
        super().setUp()
        for path in VECTORS.iterdir():
            if path.name.startswith(("logged-key", self.PACKAGE, "trusted_root")):
                shutil.copy(path, self.root)

    def of_key(self, status=0):
        trusted = ["--trusted-root", "trusted_root.json", "logged-key"]
        flags = ["--key", "logged-key.pub", "--bundle", "logged-key.sigstore.json", "--new-bundle-format"]
        self.run_program(COSIGN, "verify-blob", *flags, *trusted, status=status)
        return self.bulla("verify", "-p", "logged-key.pub", *trusted, status=status)

    def of_certificate(self, identity, issuer, status=0):
        flags = ["--trusted-root", "trusted_root.json", "--certificate-identity", identity]
        flags += ["--certificate-oidc-issuer", issuer, self.PACKAGE]
        predicate = "https://schemas.conda.org/attestations-publish-1.schema.json"
        theirs = ["--bundle", f"{self.PACKAGE}.sigstore.json", "--new-bundle-format", "--type", predicate]
        self.run_program(COSIGN, "verify-blob-attestation", *theirs, *flags, status=status)
        return self.bulla("verify", *flags, status=status)

    def test_a_key_a_log_and_a_timestamp(self):
        said = self.of_key()
        self.assertIn("signature 2025-12-18T17:04:39", said)
        self.assertIn("1 entry of a transparency log, 1 timestamp", said)
        said = self.bulla("verify", "-p", "logged-key.pub", "logged-key")
        self.assertIn("not verified: 1 entry of a transparency log, not verified: 1 timestamp", said)
        self.write("trusted_root.json", json.dumps(TRUSTED_ROOT))
        said = self.of_key(status=1)
        self.assertIn("bad signature", said)

    def test_a_certificate_and_a_log(self):
        said = self.of_certificate(self.IDENTITY, self.ISSUER)
        self.assertIn(f"by {self.IDENTITY}, issuer {self.ISSUER}", said)
        self.assertIn("1 entry of a transparency log", said)
        self.assertIn("wrong key", self.of_certificate("me@example.org", self.ISSUER, status=1))
        self.assertIn("wrong key", self.of_certificate(self.IDENTITY, "https://example.org", status=1))
        self.refused("unknown key (it was made under a certificate", self.PACKAGE)
        self.write(self.PACKAGE, b"changed")
        self.assertIn("changed", self.of_certificate(self.IDENTITY, self.ISSUER, status=1))

    def test_neither_accepts_an_entry_with_a_change(self):
        path = self.root / "logged-key.sigstore.json"
        bundle = json.loads(path.read_text())
        entry = bundle["verificationMaterial"]["tlogEntries"][0]
        changes = [
            (entry, "integratedTime", "1766077478"),
            (entry, "logIndex", str(int(entry["logIndex"]) - 1)),
            (entry["inclusionProof"], "logIndex", "1"),
            (entry["inclusionProof"], "hashes", entry["inclusionProof"]["hashes"][1:]),
            (entry["inclusionPromise"], "signedEntryTimestamp", "AAAA"),
        ]
        for member, name, value in changes:
            old, member[name] = member[name], value
            path.write_text(json.dumps(bundle))
            self.assertIn("bad signature", self.of_key(status=1))
            member[name] = old
        path.write_text(json.dumps(bundle))
        self.of_key()


class Models(Files):
    def setUp(self):
        super().setUp()
        self.write("model/config.json", "{}")
        self.write("model/weights/part-1.bin", bytes(range(256)) * 5000)
        self.write("model/weights/part-2.bin", b"")
        self.write("model/.git/HEAD", "ref: x")
        self.write("model/.gitattributes", "*.bin lfs")

    def they_verify(self, key="p256.pem", config=None, model="model"):
        verifier = verifying.Config().use_elliptic_key_verifier(public_key=self.root / key)
        if config is not None:
            verifier.set_hashing_config(config)
        verifier.verify(self.root / model, self.root / "model.sig")

    @staticmethod
    def serializations():
        """The flags of bulla, and how the library hashes alike. By itself, the library finds out
        only how whole files were hashed, by SHA-256 or BLAKE3."""
        yield [], None
        yield ["--model-digest", "blake3"], None
        config = hashing.Config
        yield ["--model-digest", "blake2b"], config().use_file_serialization(hashing_algorithm="blake2")
        for size in [1000, 1 << 20, 1 << 30]:
            for name, theirs in [("sha256", "sha256"), ("blake2b", "blake2")]:
                flags = ["--model-digest", name, "--shard-size", str(size)]
                yield flags, config().use_shard_serialization(hashing_algorithm=theirs, shard_size=size)

    def test_model_signing_verifies_what_bulla_signs(self):
        for flags, config in self.serializations():
            with self.subTest(flags=flags):
                self.bulla("sign", "model", "--format", "oms", "--key", "p256", *flags)
                self.they_verify(config=config)
                said = self.bulla("verify", "model")
                self.assertIn("oms signature by p256 v1", said)
                self.assertIn("without .git .gitattributes .github .gitignore", said)
                with self.assertRaisesRegex(ValueError, "Key mismatch"):
                    self.their_key(ec.generate_private_key(ec.SECP256R1()), "other")
                    self.they_verify("other.pub", config)
                self.write("model/config.json", "{ }")
                with self.assertRaisesRegex(ValueError, "ismatch"):
                    self.they_verify(config=config)
                self.refused("model/config.json: changed", "model")
                self.write("model/config.json", "{}")
        # The program too, and a model that is one file.
        self.bulla("sign", "model", "--format", "oms", "--key", "p256")
        command = ["-m", "model_signing", "verify", "key", "model", "--signature", "model.sig"]
        said = self.run_program(sys.executable, *command, "--public_key", "p256.pem")
        self.assertIn("Verification succeeded", said)
        (self.root / "model.sig").unlink()
        single = "model/weights/part-1.bin"
        self.bulla("sign", single, "--format", "oms", "--key", "p256", "-o", "model.sig")
        self.they_verify(model=single)
        self.assertIn("part-1.bin: OK", self.bulla("verify", single, "-s", "model.sig"))
        self.assertIn("ECDSA", self.bulla("sign", "model", "--format", "oms", "--key", "ed", status=2))

    def test_bulla_verifies_what_model_signing_signs(self):
        curves = [ec.SECP256R1, ec.SECP384R1, ec.SECP521R1]
        for number, curve in enumerate(curves):
            self.their_key(ec.generate_private_key(curve()), f"key{number}")
        self.their_key(ec.generate_private_key(ec.SECP256R1()), "other")
        configs = [config or hashing.Config() for _, config in self.serializations()]
        for number, config in enumerate(configs):
            name = f"key{number % len(curves)}"
            signer = signing.Config().use_elliptic_key_signer(private_key=self.root / name)
            signer.set_hashing_config(config).sign(self.root / "model", self.root / "model.sig")
            verify = ["model", "-p", f"{name}.pub"]
            with self.subTest(number=number):
                self.assertIn("model: OK (", self.bulla("verify", *verify))
                self.refused("model: wrong key", "model", "-p", "other.pub")
                self.damage(verify)

    def damage(self, verify):
        """Every kind of damage is named, file by file."""
        weights = (self.root / "model/weights/part-1.bin").read_bytes()
        self.write("model/weights/part-1.bin", weights[:-1] + b"x")
        (self.root / "model/config.json").unlink()
        self.write("model/extra", "x")
        self.write("model/.git/HEAD", "ref: y")
        (self.root / "model/link").symlink_to("extra")
        said = self.bulla("verify", *verify, status=1)
        for line in [
            "model/config.json: missing",
            "model/extra: unexpected",
            "model/link: unexpected (it is a link)",
            "model/weights/part-1.bin: changed",
        ]:
            self.assertIn(line, said)
        self.write("model/weights/part-1.bin", weights + b"x")
        self.assertIn("part-1.bin: changed", self.bulla("verify", *verify, status=1))
        self.write("model/weights/part-1.bin", weights)
        self.write("model/config.json", "{}")
        (self.root / "model/extra").unlink()
        (self.root / "model/link").unlink()
        self.bulla("verify", *verify)

    def test_links_count_as_with_model_signing(self):
        (self.root / "model/link").symlink_to("config.json")
        (self.root / "model/folder").symlink_to("weights")
        said = self.bulla("sign", "model", "--format", "oms", "--key", "p256", status=2)
        self.assertIn("is a link", said)
        self.bulla("sign", "model", "--format", "oms", "--key", "p256", "--follow-links")
        self.they_verify(config=hashing.Config().set_allow_symlinks(True))
        payload = json.loads((self.root / "model.sig").read_text())["dsseEnvelope"]["payload"]
        listed = json.loads(base64.b64decode(payload))["predicate"]["resources"]
        self.assertEqual(
            [one["name"] for one in listed],
            ["config.json", "link", "weights/part-1.bin", "weights/part-2.bin"],
        )
        self.bulla("verify", "model")
        (self.root / "model/link").unlink()
        (self.root / "model/link").symlink_to("weights/part-1.bin")
        self.refused("model/link: changed", "model")

    def test_what_is_ignored_is_written_down(self):
        self.write("model/notes/a", "a")
        flags = ["--format", "oms", "--key", "p256", "--exclude", "notes", "-o", "model/model.sig"]
        self.bulla("sign", "model", *flags)
        shutil.copy(self.root / "model/model.sig", self.root / "model.sig")
        self.they_verify()
        self.write("model/notes/a", "b")
        self.they_verify()
        self.bulla("verify", "model", "-s", "model/model.sig")
        self.write("model/note", "b")
        self.refused("model/note: unexpected", "model", "-s", "model/model.sig")


class CertifiedModels(Files):
    """Models that `model_signing sign certificate` signed."""

    def setUp(self):
        super().setUp()
        self.write("model/config.json", "{}")
        self.root_key = ec.generate_private_key(ec.SECP384R1())
        self.middle_key = ec.generate_private_key(ec.SECP256R1())
        self.certify("root", self.root_key, "root", self.root_key, is_authority=True)
        self.certify("middle", self.middle_key, "root", self.root_key, is_authority=True)
        other = ec.generate_private_key(ec.SECP256R1())
        self.certify("other", other, "other", other, is_authority=True)

    def certify(self, name, key, issuer, issuer_key, is_authority=False, days=(-1, 30), **usage):
        """Writes a certificate for a key: `NAME.crt`."""
        now = datetime.datetime.now(datetime.timezone.utc)
        subject, issuer = (
            x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)]) for text in (name, issuer)
        )
        names = dict.fromkeys(
            ["digital_signature", "content_commitment", "key_encipherment", "data_encipherment"]
            + ["key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"],
            False,
        )
        names["key_cert_sign" if is_authority else "digital_signature"] = True
        first, last = (now + datetime.timedelta(days=number) for number in days)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer)
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(first).not_valid_after(last)
        constraints = x509.BasicConstraints(ca=is_authority, path_length=None)
        builder = builder.add_extension(constraints, critical=True)
        builder = builder.add_extension(x509.KeyUsage(**(names | usage)), critical=True)
        if not is_authority:
            mail = x509.SubjectAlternativeName([x509.RFC822Name(f"{name}@example.org")])
            builder = builder.add_extension(mail, critical=False)
        certificate = builder.sign(issuer_key, hashes.SHA256())
        self.write(f"{name}.crt", certificate.public_bytes(serialization.Encoding.PEM))

    def sign(self, curve=ec.SECP256R1, **certificate):
        key = self.their_key(ec.generate_private_key(curve()), "signer.key")
        self.certify("signer", key, "middle", self.middle_key, **certificate)
        signer = signing.Config().use_certificate_signer(
            private_key=self.root / "signer.key",
            signing_certificate=self.root / "signer.crt",
            certificate_chain=[self.root / "middle.crt"],
        )
        signer.sign(self.root / "model", self.root / "model.sig")

    def they_verify(self, *authorities):
        chain = [self.root / f"{name}.crt" for name in authorities]
        verifier = verifying.Config().use_certificate_verifier(certificate_chain=chain)
        verifier.verify(self.root / "model", self.root / "model.sig")

    def test_a_certificate_of_a_trusted_authority_counts(self):
        for curve in [ec.SECP256R1, ec.SECP384R1, ec.SECP521R1]:
            self.sign(curve)
            self.they_verify("root")
            said = self.bulla("verify", "model", "--certificate-chain", "root.crt")
            self.assertIn("oms signature by signer@example.org", said)
        named = ["model", "--certificate-chain", "root.crt", "--certificate-identity"]
        self.bulla("verify", *named, "signer@example.org")
        self.refused('wrong key (it is signed by "signer@example.org")', *named, "me@example.org")
        chain = ["--certificate-chain", "middle.crt", "--certificate-chain", "root.crt"]
        self.bulla("verify", "model", *chain)
        with self.assertRaises(Exception):
            self.they_verify("other")
        self.refused("wrong key", "model", "--certificate-chain", "other.crt")
        self.refused("unknown key (it was made under a certificate", "model")
        self.write("model/config.json", "{ }")
        self.refused("config.json: changed", "model", "--certificate-chain", "root.crt")
        said = self.bulla("verify", "model", "--certificate-chain", "middle.crt", status=2)
        self.assertIn("no certificate that an authority issued to itself", said)

    def test_certificates_that_have_expired_or_are_for_something_else_are_refused(self):
        trusted = ["model", "--certificate-chain", "root.crt"]
        self.certify("middle", self.middle_key, "root", self.root_key, is_authority=True, days=(-30, 30))
        self.certify("root", self.root_key, "root", self.root_key, is_authority=True, days=(-30, 30))
        self.sign(days=(-20, -10))
        self.they_verify("root")
        self.refused("expired (its certificate was valid until", *trusted)
        said = self.bulla("verify", *trusted, "--expired-certificates")
        self.assertIn("oms signature by signer@example.org", said)
        self.sign(days=(10, 20))
        self.refused("expired (its certificate is valid from", *trusted, "--expired-certificates")
        self.sign(digital_signature=False, key_agreement=True)
        with self.assertRaises(ValueError):
            self.they_verify("root")
        self.refused("wrong key (its certificate is not for signatures)", *trusted)

    def test_a_certificate_with_a_change_is_refused(self):
        self.sign()
        trusted = ["model", "--certificate-chain", "root.crt"]
        path = self.root / "model.sig"
        bundle = json.loads(path.read_text())
        chain = bundle["verificationMaterial"]["x509CertificateChain"]["certificates"]
        for certificate in chain:
            old = base64.b64decode(certificate["rawBytes"])
            for at in range(0, len(old), 29):
                new = old[:at] + bytes([old[at] ^ 1]) + old[at + 1 :]
                certificate["rawBytes"] = base64.b64encode(new).decode()
                path.write_text(json.dumps(bundle))
                self.refused("model: ", *trusted)
            certificate["rawBytes"] = base64.b64encode(old).decode()
        path.write_text(json.dumps(bundle))
        self.bulla("verify", *trusted)


if __name__ == "__main__":
    # Standard output, where the suite counts.
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=2)
    result = runner.run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]))
    sys.exit(not result.wasSuccessful())
