"""Requests in namespaces and at mounts, asked of a real OpenBao and of `bulla serve`: the same are permitted.

Usage: python test_namespaces.py, with BULLA, the path of the program, in the environment. Ends with status 1 when an
answer differs without being one of the differences that docs/namespaces.md names.
"""

import itertools
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

from openbao import Difference, Service, encoded, free_address, start_openbao

DOCUMENT = pathlib.Path(__file__).parents[5] / "docs" / "namespaces.md"
TEAMS = ("team-a", "team-b")
POLICY = """
path "transit/*" { capabilities = ["create", "read", "update", "delete", "list"] }
path "payments/keys/*" { capabilities = ["create", "read", "update", "list"] }
path "payments/sign/open" { capabilities = ["update"] }
path "payments/verify/*" { capabilities = ["update"] }
"""
# What headers say, and what paths begin with.
HEADERS = (None, "/", "root", "team-a", "/team-b/", "Team-A", "nobody", "team-a/team-b", "team-a/..")
PREFIXES = ("", "team-a/", "team-b/", "nobody/", "team-a/team-b/")
MESSAGE = {"input": encoded(b"a message")}
REQUESTS = (
    ("GET", "transit/keys/open", None),
    ("GET", "payments/keys/open", None),
    ("GET", "payments/keys/other", None),
    ("GET", "nothing/keys/open", None),
    ("LIST", "transit/keys", None),
    ("POST", "transit/sign/open", MESSAGE),
    ("POST", "payments/sign/open", MESSAGE),
    ("POST", "payments/sign/other", MESSAGE),
    ("POST", "nothing/sign/open", MESSAGE),
    ("POST", "sys/capabilities-self", {"paths": ["transit/sign/open", "payments/sign/open", "payments/sign/other"]}),
    ("GET", "auth/token/lookup-self", None),
    ("GET", "sys/health", None),
    ("GET", "sys/seal-status", None),
    ("GET", "sys/internal/ui/mounts/payments", None),
)


def shown(answer):
    """What an answer says of keys and of the token, without what is of one service alone."""
    data = answer.get("data") or {}
    if isinstance(data.get("keys"), list):
        return data["keys"]
    same = ("name", "type", "latest_version", "signature", "namespace_path", "transit/sign/open", "payments/sign/open", "payments/sign/other")
    return {name: isinstance(data[name], str) if name == "signature" else data[name] for name in same if name in data and data[name] != "token"}


class Asked:
    """A request in a place, and the status and the answer of both services."""

    def __init__(self, caller, header, prefix, path, theirs, ours):
        self.caller, self.header, self.prefix, self.path = caller, header, prefix, path
        (self.theirs, self.their_answer), (self.ours, self.our_answer) = theirs, ours

    def statuses(self):
        return self.theirs, self.ours

    def namespace(self):
        """The namespace of the request, or an empty text."""
        header = (self.header or "").strip("/")
        parts = "" if header == "root" else header, self.prefix.strip("/")
        return "/".join(part for part in parts if part)

    def is_elsewhere(self):
        """Whether the request names a namespace that is not a team's."""
        return self.namespace() not in ("", *TEAMS)

    def __str__(self):
        return (
            f"{self.caller} {self.prefix}{self.path} in {self.header!r}: OpenBao {self.theirs} "
            f"{str(self.their_answer)[:200]}, bulla {self.ours} {str(self.our_answer)[:200]}"
        )


DIFFERENCES = [
    Difference("`team-a/../team-b` is no path to another namespace", lambda asked: ".." in asked.namespace() and asked.ours >= 400),
    Difference(
        "a path that begins with two namespaces is 404",
        lambda asked: asked.prefix == "team-a/team-b/" and asked.theirs in (400, 403) and asked.ours == 404,
    ),
    Difference(
        "OpenBao says 404 `namespace not found` to some of these requests",
        lambda asked: asked.statuses() == (404, 403) and asked.is_elsewhere(),
    ),
    Difference(
        "Without a namespace, a request is in that of the token's tenant",
        lambda asked: asked.theirs in (403, 404) and asked.ours == 200 and asked.namespace() == "" and asked.caller in TEAMS,
    ),
    Difference("`root` and `/` are no namespace", lambda asked: asked.header in ("/", "root") and asked.path == "sys/health"),
    Difference(
        "also in one that nobody has",
        lambda asked: asked.is_elsewhere() and asked.path in ("sys/health", "sys/seal-status") and asked.theirs in (403, 404),
    ),
    Difference(
        "OpenBao answers `auth/token/lookup-self` there",
        lambda asked: asked.path == "auth/token/lookup-self" and asked.statuses() == (200, 403) and asked.namespace() != asked.caller,
    ),
    Difference(
        "`sys/internal/ui/mounts` asks for a statement, and in OpenBao for any at the mount",
        lambda asked: asked.path.startswith("sys/internal/ui/mounts") and asked.statuses() == (200, 403) and asked.namespace() == asked.caller,
    ),
]


class Namespaces(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        (cls.folder / "all.hcl").write_text(POLICY)
        cls.addClassCleanup(cls.temporary.cleanup)
        process, cls.bao = start_openbao()
        cls.addClassCleanup(cls.stop, process)
        cls.start_bulla()
        cls.tokens = {"nobody": ("s.nothing", "s.nothing")}
        for team in TEAMS:
            cls.tokens[team] = (cls.prepare_openbao(team), cls.log_in(team))
        for team, mount, key in itertools.product(TEAMS, ("transit", "payments"), ("open", "other")):
            for service, token in zip((cls.bao, cls.ours), cls.tokens[team]):
                status, answer = cls.ask(service, token, team, "POST", f"{mount}/keys/{key}", {"type": "ed25519"})
                assert status in (200, 204), (status, answer)

    @classmethod
    def stop(cls, process):
        process.kill()
        process.wait()

    @classmethod
    def prepare_openbao(cls, team):
        """Makes a namespace with two mounts of transit, and returns a token of it."""
        root = lambda *request: cls.ask(cls.bao, "root", *request)
        assert root(None, "POST", f"sys/namespaces/{team}", {})[0] == 200
        for mount in ("transit", "payments"):
            assert root(team, "POST", f"sys/mounts/{mount}", {"type": "transit"})[0] == 204
        assert root(team, "PUT", "sys/policies/acl/all", {"policy": POLICY})[0] == 204
        return root(team, "POST", "auth/token/create", {"policies": ["all"]})[1]["auth"]["client_token"]

    @classmethod
    def start_bulla(cls):
        address = free_address()
        text = f'[[listen]]\naddress = "{address}"\n'
        for team in TEAMS:
            text += f'[[policy]]\nname = "all"\ntenant = "{team}"\nfile = "{cls.folder}/all.hcl"\n'
            text += f'[[mount]]\ntenant = "{team}"\npath = "payments"\nkeys_tenant = "{team}-payments"\n'
            text += f'[[approle]]\nname = "one"\nrole_id = "{team}"\nbind_secret_id = false\n'
            text += f'secret_id_bound_cidrs = ["127.0.0.0/8"]\ntenant = "{team}"\npolicies = ["all"]\n'
        (cls.folder / "serve.toml").write_text(text)
        command = [os.environ["BULLA"], "serve", "--dev", "--config", cls.folder / "serve.toml"]
        with (cls.folder / "log").open("w") as log:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
        cls.addClassCleanup(cls.stop, process)
        cls.ours = Service(f"http://{address}", "")
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            try:
                cls.ours.send("GET", "sys/health")
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit((cls.folder / "log").read_text())

    @classmethod
    def log_in(cls, team):
        status, answer = cls.ask(cls.ours, "", team, "POST", "auth/approle/login", {"role_id": team})
        assert status == 200, answer
        return answer["auth"]["client_token"]

    @classmethod
    def ask(cls, service, token, namespace, method, path, body=None):
        service.token = token
        return service.send(method, path, body, headers={} if namespace is None else {"X-Vault-Namespace": namespace})

    def test_the_same_requests_are_permitted(self):
        surprises, permitted, count = [], 0, 0
        places = itertools.product(self.tokens.items(), HEADERS, PREFIXES, REQUESTS)
        for (caller, tokens), header, prefix, (method, path, body) in places:
            answers = [
                self.ask(service, token, header, method, prefix + path, body)
                for service, token in zip((self.bao, self.ours), tokens)
            ]
            asked = Asked(caller, header, prefix, path, *answers)
            count, permitted = count + 1, permitted + (asked.statuses() == (200, 200))
            if asked.theirs == asked.ours:
                self.assertEqual(asked.theirs == 200 and shown(asked.their_answer), asked.ours == 200 and shown(asked.our_answer), asked)
                continue
            known = next((one for one in DIFFERENCES if one.applies(asked)), None)
            if known:
                known.count += 1
            else:
                surprises.append(str(asked))
        print(f"{count} requests, {permitted} permitted by both")
        for difference in DIFFERENCES:
            print(f"  {difference.count} times: {difference.said}")
        self.assertEqual(surprises, [], "\n".join(surprises[:60]))
        self.assertGreater(permitted, count // 20)

        for difference in DIFFERENCES:
            self.assertGreater(difference.count, 0, difference.said)

    def test_each_difference_is_in_the_document(self):
        for difference in DIFFERENCES:
            self.assertIn(difference.said, DOCUMENT.read_text())


if __name__ == "__main__":
    # Standard output, where the suite counts.
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=2)
    result = runner.run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]))
    sys.exit(not result.wasSuccessful())
