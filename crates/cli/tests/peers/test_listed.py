"""Signatures that list files, with the real programs on the other side.

The variables BULLA and COSIGN name the programs.
"""

import base64
import copy
import json
import os
import shutil
import sys
import unittest

import google.protobuf.json_format as pb_json
import in_toto_attestation.v1.statement as in_toto
import in_toto_attestation.v1.statement_pb2 as statement_pb
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from model_signing import hashing, signing, verifying
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner, SSlibKey

from support import Folder

COSIGN = os.environ["COSIGN"]
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


if __name__ == "__main__":
    # Standard output, where the suite counts.
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=2)
    result = runner.run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]))
    sys.exit(not result.wasSuccessful())
