"""JWTs that the service signs, verified by PyJWT as any OpenID client does, and logins with JWTs of PyJWT.

Usage: python test_jwt.py, with BULLA, the path of the program, in the environment. It starts `bulla serve --dev` as an
issuer of JWTs. Ends with status 1 when a test fails.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from openbao import free_address

AUDIENCE = "https://api.example.org"
ALGORITHMS = {"ed25519": "EdDSA", "ecdsa-p256": "ES256", "ecdsa-p384": "ES384", "ecdsa-p521": "ES512", "rsa-2048": "PS256"}


class Jwt(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.temporary.name)
        cls.theirs = {
            "EdDSA": ed25519.Ed25519PrivateKey.generate(),
            "ES256": ec.generate_private_key(ec.SECP256R1()),
            "ES384": ec.generate_private_key(ec.SECP384R1()),
            "RS256": rsa.generate_private_key(65537, 2048),
        }
        cls.theirs["PS512"] = cls.theirs["RS256"]
        formats = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        keys = b"".join(key.public_key().public_bytes(*formats) for key in cls.theirs.values())
        (folder / "issuer.pem").write_bytes(keys)
        address = free_address()
        cls.url = f"http://{address}"
        keys = "".join(
            f'[[jwt.key]]\ntenant = "local"\nlabel = "{label}"\naudiences = ["{AUDIENCE}"]\nmax_lifetime_seconds = 60\n'
            for label in ALGORITHMS
        )
        settings = folder / "serve.toml"
        settings.write_text(
            f'[[listen]]\naddress = "{address}"\n[jwt]\nissuer = "{cls.url}"\n{keys}'
            f'[[issuer]]\nname = "ci"\nissuer = "https://ci.example.org"\nkeys_file = "{folder}/issuer.pem"\n'
            '[[role]]\nname = "job"\nissuer = "ci"\naudiences = ["bulla"]\nsubjects = ["job-*"]\n'
            'tenant = "local"\noperations = ["sign"]\n'
        )
        command = [os.environ["BULLA"], "serve", "--dev", "--config", settings]
        cls.log = (folder / "log").open("w")
        cls.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=cls.log)
        deadline = time.monotonic() + 60
        while cls.process.poll() is None and time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"{cls.url}/api/v1/health").close()
                break
            except OSError:
                time.sleep(0.05)
        else:
            raise SystemExit((folder / "log").read_text())

    @classmethod
    def tearDownClass(cls):
        cls.process.kill()
        cls.process.wait()
        cls.log.close()
        cls.temporary.cleanup()

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def sign(self, label, **more):
        claims = {"sub": "job-7", "aud": AUDIENCE}
        return self.ask(f"/api/v1/keys/{label}/sign-jwt", {"claims": claims, **more})["jwt"]

    def decode(self, token, keys, algorithms):
        key = keys.get_signing_key_from_jwt(token)
        options = {"require": ["exp", "iat", "nbf", "iss", "aud", "sub", "jti"]}
        return jwt.decode(token, key, algorithms, options, audience=AUDIENCE, issuer=self.url)

    def test_an_openid_client_finds_the_keys_and_verifies(self):
        for algorithm in ALGORITHMS:
            self.ask("/api/v1/keys", {"label": algorithm, "purpose": "jwt-issuer", "algorithm": algorithm})
        found = self.ask("/.well-known/openid-configuration")
        self.assertEqual(found["issuer"], self.url)
        self.assertEqual(found["id_token_signing_alg_values_supported"], sorted(ALGORITHMS.values()))
        # By default, it asks for keys that it does not know only every 30 seconds.
        keys = jwt.PyJWKClient(found["jwks_uri"], cooldown_duration=0)
        for label, algorithm in ALGORITHMS.items():
            with self.subTest(algorithm=algorithm):
                token = self.sign(label)
                self.assertEqual(self.decode(token, keys, [algorithm])["sub"], "job-7")
                # The key that another JWT names.
                other = keys.get_signing_key_from_jwt(self.sign("ed25519" if label != "ed25519" else "rsa-2048"))
                with self.assertRaises((jwt.InvalidTokenError, jwt.InvalidKeyError, TypeError)):
                    jwt.decode(token, other.key, [algorithm], audience=AUDIENCE)
                head, claims, signature = token.split(".")
                flipped = ("A" if signature[0] != "A" else "B") + signature[1:]
                with self.assertRaises(jwt.InvalidSignatureError):
                    self.decode(f"{head}.{claims}.{flipped}", keys, [algorithm])
                with self.assertRaises(jwt.InvalidAudienceError):
                    jwt.decode(token, keys.get_signing_key_from_jwt(token), [algorithm], audience="another")
                # A rotation: a client that has the old set fetches the new one.
                self.ask(f"/api/v1/keys/{label}/rotate", {})
                after = self.sign(label)
                self.assertNotEqual(jwt.get_unverified_header(after)["kid"], jwt.get_unverified_header(token)["kid"])
                self.decode(after, keys, [algorithm])
                self.decode(token, keys, [algorithm])
        token = self.sign("ed25519", lifetime_seconds=1)
        with self.assertRaises(jwt.ExpiredSignatureError):
            while True:
                self.decode(token, keys, ["EdDSA"])

    def test_the_service_logs_in_whoever_has_a_jwt_of_theirs(self):
        def log_in(claims, algorithm, key):
            token = jwt.encode(claims, key, algorithm)
            try:
                self.assertIn("token", self.ask("/api/v1/login", {"role": "job", "jwt": token}))
                return 201
            except urllib.error.HTTPError as error:
                error.close()
                return error.code

        now = int(time.time())
        good = {"iss": "https://ci.example.org", "aud": "bulla", "sub": "job-7", "exp": now + 300}
        for algorithm, key in self.theirs.items():
            with self.subTest(algorithm=algorithm):
                self.assertEqual(log_in(good, algorithm, key), 201)
                self.assertEqual(log_in(good | {"exp": now - 60}, algorithm, key), 403)
                self.assertEqual(log_in(good | {"aud": "another"}, algorithm, key), 403)
        self.assertEqual(log_in(good, "EdDSA", ed25519.Ed25519PrivateKey.generate()), 403)


if __name__ == "__main__":
    # Standard output, where the suite counts.
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=2)
    result = runner.run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]))
    sys.exit(not result.wasSuccessful())
