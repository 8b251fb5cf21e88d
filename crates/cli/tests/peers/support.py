"""What the tests with other programs share. The variable BULLA names the program.

Each test has a folder of its own, with a keystore whose key `ed` is one of Ed25519 and whose key
`p256` is one of ECDSA.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from cryptography.hazmat.primitives import serialization

BULLA = os.environ["BULLA"]


class Folder(unittest.TestCase):
    """A folder with a keystore."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        self.environment = dict(os.environ, HOME=str(self.root), COSIGN_PASSWORD="")
        for name in list(self.environment):
            if name.startswith(("BULLA_", "XDG_")):
                del self.environment[name]
        self.bulla("keystore", "init")
        self.bulla("keys", "create", "ed")
        self.bulla("keys", "create", "p256", "--algorithm", "ecdsa-p256")
        for key in ["ed", "p256"]:
            self.bulla("keys", "export-public", key, "--format", "pem", "-o", f"{key}.pem")

    def write(self, name, content):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def run_program(self, program, *args, status=0):
        done = subprocess.run(
            [program, *args],
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, status, f"{args}\n{said}")
        return said

    def bulla(self, *args, status=0):
        return self.run_program(BULLA, *args, status=status)

    def refused(self, said, *args):
        """`bulla verify` finds a problem, and says this about it."""
        self.assertIn(said, self.bulla("verify", *args, status=1))

    def key(self, name):
        return serialization.load_pem_public_key((self.root / name).read_bytes())

    def their_key(self, private, name):
        """Writes a key pair in PEM: `NAME` and `NAME.pub`."""
        self.write(
            name,
            private.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )
        self.write(
            f"{name}.pub",
            private.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            ),
        )
        return private

    def damaged(self, name):
        """Changes single characters of the base64 in a file, one after the other."""
        whole = (self.root / name).read_text()
        for at in range(0, len(whole), 23):
            if whole[at].isalnum() and whole[at + 1 : at + 2].isalnum():
                self.write(name, whole[:at] + ("A" if whole[at] != "A" else "B") + whole[at + 1 :])
                yield at
        self.write(name, whole)
