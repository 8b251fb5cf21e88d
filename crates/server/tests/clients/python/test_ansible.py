"""Ansible's collection `community.hashi_vault` with keys of a running `bulla serve`.

Usage: python test_ansible.py, with VAULT_ADDR and VAULT_TOKEN of `bulla serve` in the environment. Ends with status 1
when a test fails.
"""

import os
import pathlib
import subprocess
import sys
import unittest
import uuid


class Ansible(unittest.TestCase):
    def test_a_playbook_makes_a_key_and_encrypts(self):
        name = f"ansible-{uuid.uuid4()}"
        program = pathlib.Path(sys.executable).with_name("ansible-playbook")
        playbook = pathlib.Path(__file__).with_name("ansible.yml")
        environment = {**os.environ, "ANSIBLE_PYTHON_INTERPRETER": sys.executable}
        said = subprocess.run(
            [program, "--extra-vars", f"name={name}", playbook], env=environment, capture_output=True, text=True, timeout=120
        )
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        self.assertIn("ok=6", said.stdout)


if __name__ == "__main__":
    # Standard output, where the suite counts.
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=2)
    result = runner.run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]))
    sys.exit(not result.wasSuccessful())
