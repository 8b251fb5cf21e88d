"""Random policies, asked of a real OpenBao and of `bulla serve`: the same paths are permitted, and the same requests.

Usage: python test_policies.py, with BULLA, the path of the program, in the environment. Ends with status 1 when an
answer differs.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import unittest

from openbao import Service, free_address, start_openbao

CAPABILITIES = ("create", "read", "update", "delete", "list", "patch", "scan", "sudo")
SECOND = ("sign", "sign", "encrypt", "keys", "verify")
THIRD = ("a", "ab", "abc", "b")
FOURTH = ("sha2-256", "config", "a")
PATTERNS, PARAMETER_PATTERNS, TOKENS, PATHS = 160, 40, 150, 60


def statement(path, capabilities, more=""):
    return f"path {json.dumps(path)} {{\n  capabilities = {json.dumps(capabilities)}\n{more}}}\n"


class Policies(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        # Whoever sees a difference finds it again.
        seed = int(os.environ.get("SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
        print(f"SEED={seed}")
        cls.random = random.Random(seed)
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.bao_process, cls.bao = start_openbao()
        cls.write_policies()
        cls.start_bulla()

    @classmethod
    def tearDownClass(cls):
        for process in (cls.bao_process, cls.process):
            process.kill()
            process.wait()
        cls.log.close()
        cls.temporary.cleanup()

    @classmethod
    def part(cls, *parts):
        return cls.random.choice(parts) if cls.random.random() < 0.7 else "+"

    @classmethod
    def pattern(cls):
        parts = [cls.part(*["transit"] * 8), cls.part(*SECOND), cls.part(*THIRD), cls.part(*FOURTH)]
        path = "/".join(parts[: cls.random.choice((1, 2, 3, 3, 3, 4, 4))])
        end = cls.random.choice(("", "", "", "*", "*", "/*", "/"))
        return path + ("" if path.endswith("+") and end == "*" else end)

    @classmethod
    def write_policies(cls):
        """Policies of paths, and policies of parameters, of which `bulla policy check` permits all."""
        texts = {}
        for number in range(PATTERNS):
            rules = []
            for _ in range(cls.random.choice((1, 1, 2, 3))):
                some = cls.random.sample(CAPABILITIES, cls.random.randrange(1, 5))
                some += ["update"] * (cls.random.random() < 0.5)
                rules.append(statement(cls.pattern(), ["deny"] if cls.random.random() < 0.25 else some))
            texts[f"paths-{number}"] = "".join(rules)
        for number in range(PARAMETER_PATTERNS):
            path = cls.random.choice(("transit/random", "transit/random", "transit/*", "+/random"))
            texts[f"values-{number}"] = statement(path, ["update"], cls.conditions())
        files = []
        for name, text in texts.items():
            files.append(cls.folder / f"{name}.hcl")
            files[-1].write_text(text)
        said = subprocess.run([os.environ["BULLA"], "policy", "check", *files], capture_output=True, text=True)
        refused = {pathlib.Path(line.removeprefix("bulla: ").split(":")[0]).stem for line in said.stderr.splitlines() if ".hcl:" in line}
        cls.texts = {name: text for name, text in texts.items() if name not in refused}
        # Many statements permit something that an endpoint takes.
        assert len(cls.texts) > len(texts) // 3, said.stderr

    @classmethod
    def conditions(cls):
        values = ("hex", "base64", "h*", "*64", "*as*", "*", "all", "platform", "**")

        def parameters():
            names = cls.random.sample(("format", "source", "bytes", "x", "*", "FORMAT"), cls.random.randrange(1, 4))
            names = list({name.lower(): name for name in names}.values())
            lists = (cls.random.sample(values, cls.random.randrange(0, 3)) for _ in names)
            return "".join(f"    {json.dumps(name)} = {json.dumps(some)}\n" for name, some in zip(names, lists))

        text = ""
        for name in ("allowed_parameters", "denied_parameters"):
            if cls.random.random() < 0.5:
                text += f"  {name} = {{\n{parameters()}  }}\n"
        if cls.random.random() < 0.3:
            text += f"  required_parameters = {json.dumps(cls.random.sample(('format', 'source', 'x'), 1))}\n"
        if cls.random.random() < 0.2:
            text += '  min_wrapping_ttl = "30s"\n'
        if cls.random.random() < 0.2:
            text += "  max_wrapping_ttl = 60\n"
        return text

    @classmethod
    def start_bulla(cls):
        address = free_address()
        settings = cls.folder / "serve.toml"
        policies = (
            f'[[policy]]\nname = "{name}"\ntenant = "local"\nfile = "{cls.folder}/{name}.hcl"\n' for name in cls.texts
        )
        settings.write_text(f'[[listen]]\naddress = "{address}"\n' + "".join(policies))
        command = [os.environ["BULLA"], "serve", "--dev", "--config", settings]
        cls.log = (cls.folder / "log").open("w")
        cls.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=cls.log)
        # Without a token, the connection is that of somebody who may mint.
        cls.ours = Service(f"http://{address}", "")
        deadline = time.monotonic() + 60
        while cls.process.poll() is None and time.monotonic() < deadline:
            try:
                cls.ours.send("GET", "sys/health")
                break
            except OSError:
                time.sleep(0.05)
        else:
            raise SystemExit((cls.folder / "log").read_text())
        for name, text in cls.texts.items():
            status, said = cls.bao.send("PUT", f"sys/policies/acl/{name}", {"policy": text})
            assert status == 204, (text, said)

    def tokens(self, names):
        """A token of these policies at each service."""
        made = []
        for service in (self.bao, self.ours):
            status, answer = service.send("POST", "auth/token/create", {"policies": names})
            self.assertEqual(status, 200, answer)
            self.assertEqual(answer["auth"]["policies"], sorted(["default", *names]) if service is self.bao else ["default", *names])
            made.append(answer["auth"]["client_token"])
        return made

    def test_the_same_paths_are_permitted(self):
        names = [name for name in self.texts if name.startswith("paths-")]
        asked = permitted = 0
        for _ in range(TOKENS):
            some = self.random.sample(names, self.random.choice((1, 2, 3, 5)))
            paths = set()
            for _ in range(PATHS):
                parts = ["transit", self.random.choice(SECOND), self.random.choice((*THIRD, "A", "", "+")), self.random.choice(FOURTH), "x"]
                path = "/".join(parts[: self.random.choice((1, 2, 3, 3, 3, 4, 4, 5))])
                paths.add(path + self.random.choice(("", "", "", "/", "x", "*")))
            answers = []
            for service, token in zip((self.bao, self.ours), self.tokens(some)):
                status, answer = service.send("POST", "sys/capabilities", {"token": token, "paths": sorted(paths)})
                self.assertEqual(status, 200, answer)
                answers.append({path: sorted(answer["data"][path]) for path in paths})
            self.assertEqual(*answers, "".join(self.texts[name] for name in some))
            asked += len(paths)
            permitted += sum(found != ["deny"] for found in answers[0].values())
        print(f"{asked} paths, {permitted} with something permitted")
        self.assertGreater(permitted, asked // 20)

    def test_the_same_requests_are_permitted(self):
        names = [name for name in self.texts if name.startswith("values-")]
        asked = permitted = 0
        for _ in range(60):
            some = self.random.sample(names, self.random.choice((1, 1, 2)))
            services = [Service(f"http://{service.host}", token) for service, token in zip((self.bao, self.ours), self.tokens(some))]
            for _ in range(12):
                body = {}
                for name, values in (("format", ("hex", "base64", "HEX")), ("source", ("all", "platform")), ("x", ("a", True, None))):
                    if self.random.random() < 0.4:
                        body[self.random.choice((name, name, name.upper()))] = self.random.choice(values)
                wrap = self.random.choice((None, None, "30", "29s", "1m", "61"))
                denied = [service.send("POST", "transit/random", body, wrap)[0] == 403 for service in services]
                self.assertEqual(*denied, (body, wrap, [self.texts[name] for name in some]))
                asked, permitted = asked + 1, permitted + (not denied[0])
        print(f"{asked} requests, {permitted} permitted")
        self.assertTrue(asked // 20 < permitted < asked)


if __name__ == "__main__":
    # Standard output, where the suite counts.
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=2)
    result = runner.run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]))
    sys.exit(not result.wasSuccessful())
