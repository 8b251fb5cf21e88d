"""cosign, as it is, with keys of the service: `--key hashivault://NAME`.

The variable COSIGN names the program, VAULT_ADDR and VAULT_TOKEN the service.
"""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import uuid

COSIGN = os.environ["COSIGN"]
# It has no authorities and no logs: keys alone are verified, and nothing is asked of the network.
TRUSTED_ROOT = {"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1"}
PREDICATE = {"builder": {"id": "https://example.org/builder"}}


class Cosign(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.root)
        cls.environment = dict(os.environ, HOME=str(cls.root))
        for name, text in [
            ("app", "a release"),
            ("other", "another release"),
            ("root.json", json.dumps(TRUSTED_ROOT)),
            ("predicate.json", json.dumps(PREDICATE)),
        ]:
            (cls.root / name).write_text(text)
        cls.name = "cosign-" + uuid.uuid4().hex
        cls.key = f"hashivault://{cls.name}"
        # It writes the public key to cosign.pub.
        cls.cosign("generate-key-pair", "--kms", cls.key)

    @classmethod
    def cosign(cls, *args, status=0, **variables):
        done = subprocess.run(
            [COSIGN, *args],
            cwd=cls.root,
            env=dict(cls.environment, **variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0 if status == 0 else done.returncode == 0:
            raise AssertionError(f"{args}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout, done.stderr

    def sign(self, command, *args, status=0, **variables):
        args = ["--key", self.key, "--new-bundle-format", "--bundle", "app.sigstore.json", "-y", *args]
        return self.cosign(command, *args, "--tlog-upload=false", "app", status=status, **variables)

    def verified(self, command, *args):
        """By the service's key, and by the public key without the service."""
        args = [*args, "--new-bundle-format", "--bundle", "app.sigstore.json", "--private-infrastructure"]
        for key in [self.key, "cosign.pub"]:
            said = "".join(self.cosign(command, *args, "--trusted-root", "root.json", "--key", key, "app"))
            self.assertIn("Verified OK", said)
            self.cosign(command, *args, "--trusted-root", "root.json", "--key", key, "other", status=1)

    def test_the_public_key_is_that_of_the_service(self):
        shown, _ = self.cosign("public-key", "--key", self.key)
        self.assertEqual(shown.strip(), (self.root / "cosign.pub").read_text().strip())
        self.assertTrue(shown.startswith("-----BEGIN PUBLIC KEY-----"))

    def test_a_blob_is_signed_and_verified(self):
        self.sign("sign-blob")
        self.verified("verify-blob")

    def test_a_blob_is_attested_and_the_attestation_is_verified(self):
        self.sign("attest-blob", "--type", "custom", "--predicate", "predicate.json")
        envelope = json.loads((self.root / "app.sigstore.json").read_text())["dsseEnvelope"]
        statement = json.loads(base64.b64decode(envelope["payload"]))
        self.assertEqual(statement["subject"][0]["name"], "app")
        self.verified("verify-blob-attestation", "--type", "custom")

    def test_a_token_that_the_service_does_not_know_signs_nothing(self):
        _, said = self.sign("sign-blob", status=1, VAULT_TOKEN="no-token")
        self.assertIn("permission denied", said)


if __name__ == "__main__":
    unittest.main(verbosity=2, testRunner=unittest.TextTestRunner(stream=sys.stdout, verbosity=2))
