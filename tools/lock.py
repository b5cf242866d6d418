"""Write requirements/*.txt: every package that `make test` and the container image install, with its hashes.

python tools/lock.py     # or `make lock`

The files fit Python 3.11 to 3.14 on Linux and macOS; elsewhere `make test` says so and installs without them.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILES = {  # by name: what beside the package itself is installed
    "test.txt": ("--all-extras", "--group", "dev"),
    "image.txt": ("--extra", "all", "--no-dev"),
}
FITS = """
[tool.uv]
environments = ["sys_platform == 'linux'", "sys_platform == 'darwin'"]
"""


def main():
    """Resolve in a copy, so that no file with an index's addresses is left behind."""
    uv = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        bounded = text.replace('requires-python = ">=3.11"', 'requires-python = ">=3.11,<3.15"')
        (project / "pyproject.toml").write_text(bounded + FITS, encoding="utf-8")
        for name in ("README.md", "LICENSE"):
            shutil.copy(ROOT / name, project)
        shutil.copytree(ROOT / "src", project / "src", ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run([uv, "lock", "--upgrade"], cwd=project, check=True)
        for name, wanted in FILES.items():
            plain = ("--frozen", "--no-emit-project", "--no-annotate", "--no-header")
            command = [uv, "export", "--quiet", *plain, *wanted, "-o", str(ROOT / "requirements" / name)]
            subprocess.run(command, cwd=project, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
