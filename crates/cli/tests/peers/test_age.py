"""age 1.3, which knows X-Wing itself: what it encrypts without the plugin of bulla, a keystore decrypts.

The variables BULLA and AGE name the programs. `age-plugin-bulla` is beside BULLA.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BULLA = pathlib.Path(os.environ["BULLA"])
AGE = pathlib.Path(os.environ["AGE"])


class NewerAge(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.root)
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("BULLA_", "XDG_"))}
        cls.alone = dict(plain, HOME=str(cls.root), PATH="/nowhere")
        cls.environment = dict(plain, HOME=str(cls.root), PATH=f"{BULLA.parent}:{plain['PATH']}")
        cls.run_program(BULLA, "keystore", "init")
        cls.run_program(BULLA, "keys", "create", "backups", "--algorithm", "x-wing")
        printed = json.loads(cls.run_program(BULLA, "age-plugin", "backups", "--json"))
        cls.native, cls.plugin = printed["native_recipient"], printed["recipient"]
        (cls.root / "identity").write_text(printed["identity"] + "\n")
        cls.run_program(AGE.with_name("age-keygen"), "-pq", "-o", "mine")
        cls.mine = cls.run_program(AGE.with_name("age-keygen"), "-y", "mine").strip()

    @classmethod
    def run_program(cls, program, *args, alone=False, status=0):
        done = subprocess.run(
            [program, *args],
            cwd=cls.root,
            env=cls.alone if alone else cls.environment,
            input="the content",
            capture_output=True,
            text=True,
        )
        if done.returncode != status:
            raise AssertionError(f"{args}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def test_it_encrypts_without_the_plugin_and_the_keystore_decrypts(self):
        self.run_program(AGE, "-r", self.native, "-o", "native", alone=True)
        self.assertEqual(self.run_program(AGE, "-d", "-i", "identity", "native"), "the content")

    def test_it_decrypts_what_the_plugin_encrypted_for_several(self):
        self.run_program(AGE, "-r", self.plugin, "-o", "by-plugin")
        self.assertEqual(self.run_program(AGE, "-d", "-i", "identity", "by-plugin"), "the content")
        self.run_program(AGE, "-r", self.mine, "-r", self.native, "-o", "both", alone=True)
        for identity in ["identity", "mine"]:
            self.assertEqual(self.run_program(AGE, "-d", "-i", identity, "both"), "the content")

    def test_a_file_for_another_recipient_stays_closed(self):
        self.run_program(AGE, "-r", self.mine, "-o", "for-me", alone=True)
        said = self.run_program(AGE, "-d", "-i", "identity", "for-me", status=1)
        self.assertIn("no identity matched", said)


if __name__ == "__main__":
    unittest.main(verbosity=2, testRunner=unittest.TextTestRunner(stream=sys.stdout, verbosity=2))
