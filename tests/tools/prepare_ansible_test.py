# Copyright: (c) 2026, gpuops.tenancy contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Let ansible-test bootstrap pip from the package index alone.

ansible-test fetches a pip installer from a server of its own, which a closed network does not reach. It looks in its
cache first: put a small one there, under the name that the installed version asks for.
"""

from __future__ import annotations

import pathlib
import re

import ansible_test

BOOTSTRAP = '''\
"""Install the pip that ansible-test asks for, through ensurepip."""
import subprocess
import sys

wanted = [word for word in sys.argv[1:] if word not in ("--no-setuptools", "--no-wheel")]
subprocess.run([sys.executable, "-m", "ensurepip", "--upgrade"], check=True)
subprocess.run([sys.executable, "-m", "pip", "install", *wanted], check=True)
'''


def main() -> None:
    """Write the bootstrap for each version that the installed ansible-test names."""
    source = pathlib.Path(ansible_test.__file__).parent / "_internal" / "python_requirements.py"
    found = set(re.findall(r"\bpip='([0-9.]+)'", source.read_text()))
    if not found:
        raise SystemExit(f"{source} names no pip version: adapt tests/tools/prepare_ansible_test.py")
    cache = pathlib.Path.home() / ".ansible" / "test" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    for version in found:
        target = cache / f"get_pip_{version.replace('.', '_')}.py"
        if not target.exists():
            target.write_text(BOOTSTRAP)


if __name__ == "__main__":
    main()
