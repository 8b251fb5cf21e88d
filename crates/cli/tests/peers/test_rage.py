"""rage's library, by its package for Python: it starts the plugin of bulla by itself, as age does.

The variable BULLA names the program. `age-plugin-bulla` is beside it.
"""

import json
import os
import sys
import unittest
from unittest import mock

import pyrage
from pyrage import plugin

from support import BULLA, Folder


class Callbacks:
    """The plugin asks nothing: age gives plugins no terminal."""

    def display_message(self, message):
        raise AssertionError(message)

    def confirm(self, message, yes, no=None):
        raise AssertionError(message)

    request_public_string = request_passphrase = display_message


class Rage(Folder):
    def setUp(self):
        super().setUp()
        # rage gives the plugin the environment of this process.
        path = f"{os.path.dirname(BULLA)}:{os.environ['PATH']}"
        environment = mock.patch.dict(os.environ, {**self.environment, "PATH": path}, clear=True)
        environment.start()
        self.addCleanup(environment.stop)
        self.recipient, self.identity = self.made("backups")

    def made(self, label):
        """What rage encrypts to, and what it decrypts with, for a new key."""
        self.bulla("keys", "create", label, "--algorithm", "x-wing")
        printed = json.loads(self.bulla("age-plugin", label, "--json"))
        recipient = plugin.Recipient.from_str(printed["recipient"])
        identity = plugin.Identity.from_str(printed["identity"])
        self.assertEqual((recipient.plugin(), identity.plugin()), ("bulla", "bulla"))
        return (
            plugin.RecipientPluginV1("bulla", [recipient], [], Callbacks()),
            plugin.IdentityPluginV1("bulla", [identity], Callbacks()),
        )

    def test_it_decrypts_what_it_encrypted_also_after_a_rotation(self):
        own = pyrage.x25519.Identity.generate()
        made = pyrage.encrypt(b"the content", [self.recipient, own.to_public()])
        self.bulla("keys", "rotate", "backups")
        for identity in (self.identity, own):
            self.assertEqual(pyrage.decrypt(made, [identity]), b"the content")

    def test_a_file_for_another_key_stays_closed(self):
        other, _ = self.made("other")
        made = pyrage.encrypt(b"the content", [other])
        with self.assertRaises(pyrage.DecryptError):
            pyrage.decrypt(made, [self.identity])
        damaged = bytearray(pyrage.encrypt(b"the content", [self.recipient]))
        damaged[-1] ^= 1
        with self.assertRaises(pyrage.DecryptError):
            pyrage.decrypt(bytes(damaged), [self.identity])


if __name__ == "__main__":
    unittest.main(verbosity=2, testRunner=unittest.TextTestRunner(stream=sys.stdout, verbosity=2))
