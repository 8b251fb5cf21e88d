"""Our clients as their registries deliver them: packed, installed in an empty folder outside of the checkout, and used
against a running `bulla serve` by the program at the top of their README.

Usage: python test_packages.py, with BULLA_ADDR and BULLA_TOKEN in the environment. This Python has httpx, hatchling and
pip; npm's packages of `js/` are installed. Ends with status 1 when a test fails.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[5]


def run(*command, folder, **environment):
    """The standard output of a program, which must succeed."""
    result = subprocess.run(
        [str(part) for part in command], cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert result.returncode == 0, f"{command}: {result.stdout}{result.stderr}"
    return result.stdout


def program(readme, language):
    """The first program of a document."""
    return re.search(rf"^```{language}\n(.*?)^```$", (ROOT / readme).read_text(), re.DOTALL | re.MULTILINE).group(1)


class Packages(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="bulla-packages-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.user = self.folder / "user"
        self.user.mkdir()

    def assert_signed(self, said):
        # A key version id, and that its signature is valid.
        self.assertRegex(said, r"\Alocal/files/ed25519/[0-9a-f-]{36}/v1 (true|True|true <nil>)\n\Z")

    def test_the_package_of_npm(self):
        # A copy, because another suite may build in `js/` now.
        source = self.folder / "source/js"
        ignored = shutil.ignore_patterns("node_modules", "dist", "LICENSE-*")
        for part in ("kms", "scripts"):
            shutil.copytree(ROOT / "js" / part, source / part, ignore=ignored)
        shutil.copy(ROOT / "js/tsconfig.json", source)
        for name in ("LICENSE-APACHE", "LICENSE-MIT"):
            shutil.copy(ROOT / name, source.parent)
        (source / "package.json").write_text('{ "type": "module" }')
        (source / "node_modules").symlink_to(ROOT / "js/node_modules")
        # It builds the package first, by the script `prepack`.
        run("npm", "pack", "--pack-destination", self.folder, folder=source / "kms")
        (archive,) = self.folder.glob("*.tgz")
        (self.user / "package.json").write_text('{ "type": "module" }')
        run("npm", "install", "--offline", "--no-audit", "--no-fund", archive, folder=self.user)
        (self.user / "use.js").write_text(program("js/kms/README.md", "js"))
        self.assert_signed(run("node", "use.js", folder=self.user))

    def test_the_package_of_pypi(self):
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
        build = ("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", self.folder)
        run(*pip, *build, ROOT / "python/kms", folder=self.user)
        (wheel,) = self.folder.glob("*.whl")
        installed = self.folder / "installed"
        run(*pip, "install", "--no-index", "--no-deps", "--target", installed, wheel, folder=self.user)
        (self.user / "use.py").write_text(program("python/kms/README.md", "python"))
        python = (sys.executable, "-P", "-W", "error", "use.py")
        self.assert_signed(run(*python, folder=self.user, PYTHONPATH=str(installed)))

    def test_the_module_of_the_go_proxy(self):
        published = self.folder / "published"
        run("go", "run", ".", published, folder=ROOT / "go/internal/published")
        environment = {
            "GOPROXY": (published / "proxy").as_uri(),
            "GONOSUMDB": "github.com/bulla-dev/*",
            "GOFLAGS": "-modcacherw",
            "GOMODCACHE": str(self.folder / "cache"),
            "GOWORK": "off",
        }
        (self.user / "go.mod").write_text("module user\n")
        run("go", "get", "github.com/bulla-dev/bulla/go/kms@v0.0.1", folder=self.user, **environment)
        (self.user / "main.go").write_text(program("go/kms/README.md", "go"))
        self.assert_signed(run("go", "run", ".", folder=self.user, **environment))


if __name__ == "__main__":
    # Standard output, where the suite counts.
    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=2)
    result = runner.run(unittest.defaultTestLoader.loadTestsFromTestCase(Packages))
    sys.exit(not result.wasSuccessful())
