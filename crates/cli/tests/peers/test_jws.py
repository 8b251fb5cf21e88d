"""JSON Web Signatures of files, with PyJWT and joserfc on the other side.

The variable BULLA names the program.
"""

import base64
import json
import sys
import unittest

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from joserfc import jws
from joserfc.jwk import import_key

from support import Folder

RSA = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]
HEADER = {"b64": False, "crit": ["b64"]}


def compact(header, payload, signature):
    def encode(part):
        return base64.urlsafe_b64encode(part).rstrip(b"=").decode()

    return f"{encode(json.dumps(header).encode())}.{payload}.{encode(signature)}"


class Jws(Folder):
    def pem(self, name):
        return (self.root / name).read_bytes()

    def text(self):
        return (self.root / "app.jws").read_text().strip()

    def test_they_verify_what_bulla_signs(self):
        for content in [b"program\x00\xff." * 1000, b""]:
            self.write("app", content)
            for name, algorithm in [("ed", "EdDSA"), ("p256", "ES256")]:
                self.bulla("sign", "app", "--format", "jws", "--key", name)
                self.assertIn("app: OK (jws signature by", self.bulla("verify", "app"))
                self.bulla("verify", "app", "-p", f"{name}.pem")
                key = serialization.load_pem_public_key(self.pem(f"{name}.pem"))
                found = jwt.api_jws.PyJWS().decode_complete(
                    self.text(), key, algorithms=[algorithm], detached_payload=content
                )
                self.assertEqual(found["payload"], content)
                self.assertRegex(found["header"]["kid"], "^local/.*/v1$")
                other = import_key(self.pem(f"{name}.pem"), "OKP" if name == "ed" else "EC")
                detached = jws.deserialize_compact(
                    self.text(), other, algorithms=[algorithm], payload=content
                )
                self.assertEqual(detached.payload, content)
                with self.assertRaises(jwt.InvalidSignatureError):
                    jwt.api_jws.PyJWS().decode(
                        self.text(), key, algorithms=[algorithm], detached_payload=content + b"x"
                    )
                # No program takes it for a JSON Web Token.
                with self.assertRaises(jwt.InvalidTokenError):
                    jwt.decode(self.text(), key, algorithms=[algorithm])

    def test_bulla_verifies_what_they_sign(self):
        self.write("app", b"program.\x00")
        keys = [("EdDSA", ed25519.Ed25519PrivateKey.generate())]
        curves = [("ES256", ec.SECP256R1), ("ES384", ec.SECP384R1), ("ES512", ec.SECP521R1)]
        keys += [(algorithm, ec.generate_private_key(curve())) for algorithm, curve in curves]
        private = rsa.generate_private_key(65537, 2048)
        keys += [(algorithm, private) for algorithm in RSA]
        self.their_key(ed25519.Ed25519PrivateKey.generate(), "other")
        self.their_key(rsa.generate_private_key(65537, 2048), "other-rsa")
        pyjwt = jwt.api_jws.PyJWS()
        for number, (algorithm, private) in enumerate(keys):
            with self.subTest(algorithm=algorithm):
                name = f"key{number}"
                self.their_key(private, name)
                verify = ["app", "-p", f"{name}.pub"]
                content = b"program.\x00"
                embedded = pyjwt.encode(content, private, algorithm, headers={"typ": None})
                parts = embedded.split(".")
                encoded = f"{parts[0]}..{parts[2]}"
                detached = pyjwt.encode(
                    content, private, algorithm, headers=HEADER | {"typ": None}, is_payload_detached=True
                )
                for text in [embedded, encoded, detached, detached + "\n"]:
                    self.write("app.jws", text)
                    said = self.bulla("verify", *verify)
                    self.assertIn("app: OK (jws signature by", said)
                    self.refused("wrong key", "app", "-p", "other.pub")
                    self.refused("wrong key", "app", "-p", "other-rsa.pub")
                    self.write("app", b"Program.\x00")
                    self.refused("changed" if text == embedded else "wrong key", *verify)
                    self.write("app", content)
                for _ in self.damaged("app.jws"):
                    self.refused("app: ", *verify)

    def test_what_must_be_refused_is_refused(self):
        content = b"program"
        self.write("app", content)
        private = self.their_key(ec.generate_private_key(ec.SECP256R1()), "key")
        pyjwt = jwt.api_jws.PyJWS()

        def signed(**header):
            header = {"typ": None} | header
            self.write("app.jws", pyjwt.encode(content, private, "ES256", headers=header))

        for said, header in [
            ("an extension that is not known", {"crit": ["x"], "x": 1}),
            ("JSON Web Token", {"typ": "JWT"}),
        ]:
            signed(**header)
            self.refused(said, "app", "-p", "key.pub")
        signed(kid="a")
        self.assertIn("OK", self.bulla("verify", "app", "-p", "key.pub"))
        payload = base64.urlsafe_b64encode(content).rstrip(b"=").decode()
        self.write("app.jws", pyjwt.encode(content, None, "none", headers={"typ": None}))
        self.refused("nobody signed it", "app", "-p", "key.pub")
        # The public key as the secret of a MAC.
        self.write("app.jws", compact({"alg": "HS256"}, payload, b"\x00" * 32))
        self.refused("a MAC", "app", "-p", "key.pub")


if __name__ == "__main__":
    # Standard output, where the suite counts.
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=2)
    result = runner.run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]))
    sys.exit(not result.wasSuccessful())
