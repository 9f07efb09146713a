"""The backend as pip loads it."""

import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]

LOADED_BY_PIP = """
import importlib.machinery, importlib.metadata, sys

class BackendPath:
    # What pip puts first: whatever package is asked for, it answers with all that lies there.
    def find_spec(self, fullname, path, target=None):
        return None if "." in fullname else finder.find_spec(fullname, sys.argv[2:])
    def find_distributions(self, context):
        everything = importlib.metadata.DistributionFinder.Context(path=sys.argv[2:])
        return importlib.metadata.MetadataPathFinder.find_distributions(everything)

finder = importlib.machinery.PathFinder
sys.meta_path.insert(0, BackendPath())
importlib.import_module(sys.argv[1])
import setuptools
print(setuptools.__version__)
"""


def test_an_earlier_builds_metadata_is_not_taken_for_that_of_setuptools(tmp_path):
    shutil.copytree(ROOT / "buildtools", tmp_path / "buildtools")
    left = tmp_path / "smemkern.egg-info"
    left.mkdir()
    (left / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: smemkern\nVersion: 0.1.0\n")
    with open(ROOT / "pyproject.toml", "rb") as file:
        build = tomllib.load(file)["build-system"]
    path = [tmp_path / folder for folder in build["backend-path"]]
    command = [sys.executable, "-c", LOADED_BY_PIP, build["build-backend"], *path]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == metadata.version("setuptools")
