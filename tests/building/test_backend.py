"""The backend as pip loads it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

AS_PIP_LOADS_IT = """
import importlib.metadata, sys

class BackendPath:
    # What pip puts first: whatever name is asked for, it answers with all that lies there.
    def find_spec(self, fullname, path, target=None):
        return None
    def find_distributions(self, context):
        everything = importlib.metadata.DistributionFinder.Context(path=[sys.argv[1]])
        return importlib.metadata.MetadataPathFinder.find_distributions(everything)

sys.path.append(sys.argv[2])
sys.meta_path.insert(0, BackendPath())
import buildtools.backend
"""


def test_an_earlier_builds_metadata_is_not_taken_for_that_of_setuptools(tmp_path):
    left = tmp_path / "smemkern.egg-info"
    left.mkdir()
    (left / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: smemkern\nVersion: 0.1.0\n")
    command = [sys.executable, "-c", AS_PIP_LOADS_IT, tmp_path, ROOT]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
