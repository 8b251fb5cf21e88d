"""Programs in Python that use the module by python-pkcs11.

BULLA_PKCS11_MODULE names the module, and BULLA_ADDR and BULLA_TOKEN a service: its slot needs no PIN.
"""

import os
import secrets
import sys
import unittest

import pkcs11
from pkcs11 import KDF, Attribute, KeyType, Mechanism, MechanismFlag, ObjectClass
from pkcs11.util.ec import encode_named_curve_parameters


class Token(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.token = pkcs11.lib(os.environ["BULLA_PKCS11_MODULE"]).get_token(token_label="bulla")

    def pair(self, session, curve, **more):
        """Makes a pair of a curve."""
        parameters = {Attribute.EC_PARAMS: encode_named_curve_parameters(curve)}
        domain = session.create_domain_parameters(KeyType.EC, parameters, local=True)
        return domain.generate_keypair(store=True, id=secrets.token_bytes(16), **more)

    def test_a_key_of_p256_signs_digests_and_messages(self):
        with self.token.open(rw=True) as session:
            public, private = self.pair(session, "secp256r1", label="python")
            for mechanism, message in [(Mechanism.ECDSA, bytes(32)), (Mechanism.ECDSA_SHA256, b"a message")]:
                signature = private.sign(message, mechanism=mechanism)
                self.assertEqual(len(signature), 64)
                self.assertTrue(public.verify(message, signature, mechanism=mechanism))
                self.assertFalse(public.verify(message, bytes(64), mechanism=mechanism))
            # Another program finds it by its label.
            found = session.get_key(object_class=ObjectClass.PRIVATE_KEY, label="python")
            self.assertEqual(found.id, private.id)
            private.destroy()
            with self.assertRaises(pkcs11.exceptions.NoSuchKey):
                session.get_key(object_class=ObjectClass.PRIVATE_KEY, label="python")

    def test_a_key_of_rsa_signs_and_decrypts(self):
        oaep = (Mechanism.SHA256, pkcs11.MGF.SHA256, None)
        with self.token.open(rw=True) as session:
            public, private = session.generate_keypair(KeyType.RSA, 2048, store=True)
            signature = private.sign(b"a message", mechanism=Mechanism.SHA256_RSA_PKCS)
            self.assertTrue(public.verify(b"a message", signature, mechanism=Mechanism.SHA256_RSA_PKCS))
            # A message in pieces.
            self.assertEqual(private.sign([b"a ", b"message"], mechanism=Mechanism.SHA256_RSA_PKCS), signature)
            ciphertext = public.encrypt(b"a secret", mechanism_param=oaep)
            self.assertEqual(private.decrypt(ciphertext, mechanism_param=oaep), b"a secret")

    def test_two_keys_derive_the_same_secret(self):
        with self.token.open(rw=True) as session:
            one, two = (self.pair(session, "secp256r1", capabilities=MechanismFlag.DERIVE) for _ in range(2))
            template = {Attribute.SENSITIVE: False, Attribute.EXTRACTABLE: True}
            derived = [
                private.derive_key(
                    KeyType.GENERIC_SECRET,
                    256,
                    mechanism_param=(KDF.NULL, None, public[Attribute.EC_POINT]),
                    template=template,
                )[Attribute.VALUE]
                for private, public in [(one[1], two[0]), (two[1], one[0])]
            ]
            self.assertEqual(derived[0], derived[1])
            self.assertEqual(len(derived[0]), 32)

    def test_a_mac_is_made_and_verified(self):
        with self.token.open(rw=True) as session:
            key = session.generate_key(
                KeyType.GENERIC_SECRET, 256, store=True, capabilities=MechanismFlag.SIGN | MechanismFlag.VERIFY
            )
            mac = key.sign(b"a message", mechanism=Mechanism.SHA256_HMAC)
            self.assertTrue(key.verify(b"a message", mac, mechanism=Mechanism.SHA256_HMAC))
            self.assertFalse(key.verify(b"another message", mac, mechanism=Mechanism.SHA256_HMAC))


if __name__ == "__main__":
    # Standard output, where the suite counts.
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=2)
    result = runner.run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]))
    sys.exit(not result.wasSuccessful())
