"""The tests of python-pkcs11 itself, over the module.

Arguments: the archive with its sources. BULLA_PKCS11_MODULE names the module, and BULLA_ADDR and
BULLA_TOKEN a service, as for `test_pkcs11.py`.

A test that fails and is not listed below fails this program, and so does a listed one that passes.
"""

import os
import sys
import tarfile
import tempfile
import unittest

# What does not pass, and why.
EXPECTED = {
    "test_ecc.ECCTests.test_derive_key": "P-192, which is too weak",
    "test_ecc.ECCTests.test_sign_ed448": "no library of the module has Ed448",
    "test_sessions.SessionTests.test_destroy_object": "the service's own public key is always there",
    "test_sessions.SessionTests.test_seed_random": "the operating system makes the random bytes",
    "test_x509.X509Tests.test_verify_certificate_rsa": "RSA of 512 bits",
}
# How many tests pass, at least. The others are skipped: they ask for mechanisms that the module
# does not have.
PASS = 124


def main(archive):
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as sources:
            sources.extractall(folder, filter="data")
        (sources,) = os.listdir(folder)
        # The tests alone: the package is the one that is installed.
        os.rename(os.path.join(folder, sources, "tests"), os.path.join(folder, "tests"))
        sys.path.insert(0, folder)
        os.environ["PKCS11_MODULE"] = os.environ["BULLA_PKCS11_MODULE"]
        os.environ["PKCS11_TOKEN_LABEL"] = "bulla"
        # Without this variable, the slot needs a PIN, which is the token.
        os.environ["PKCS11_TOKEN_PIN"] = os.environ.pop("BULLA_TOKEN")
        tests = unittest.defaultTestLoader.discover(os.path.join(folder, "tests"), top_level_dir=folder)
        result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(tests)
    failed = {test.id().removeprefix("tests.") for test, _ in result.failures + result.errors}
    passed = result.testsRun - len(failed) - len(result.skipped)
    print(f"{passed} passed, {len(failed)} failed, {len(result.skipped)} were skipped")
    surprises = failed ^ EXPECTED.keys()
    for name in sorted(surprises):
        print(f"{name}: {'it fails' if name in failed else 'it passes now: ' + EXPECTED[name]}")
    return 0 if not surprises and passed >= PASS else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
