"""Environment of a study: system, hardware, and the versions to install elsewhere."""

from __future__ import annotations

import json
import platform
import re
from importlib import metadata
from typing import Any

from contstim.records import provenance, total_memory
from contstim.version import __version__

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def environment_text() -> str:
    """The content of `environment.json`: date, versions, system and hardware."""
    facts: dict[str, Any] = provenance()
    facts["environment"] |= {
        "release": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "memory": total_memory(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }
    return json.dumps(facts, indent=2, ensure_ascii=False) + "\n"


def constraints_text() -> str:
    """The content of `constraints.txt`: contstim's dependencies in their installed versions."""
    lines = [
        f"# contstim {__version__} on Python {platform.python_version()}, {platform.system()} "
        f"{platform.machine()}: what was installed.",
        "# pip install -c constraints.txt contstim",
    ]
    for name, version in sorted(installed_requirements().items()):
        # A build such as 2.13.0+cpu is of an index of its own; its version is what counts
        public, _, build = version.partition("+")
        lines.append(f"{name}=={public}" + (f"  # {version}" if build else ""))
    return "\n".join(lines) + "\n"


def installed_requirements(package: str = "contstim") -> dict[str, str]:
    """The installed version of everything that a package needs, and that this needs in turn."""
    versions: dict[str, str] = {}
    waiting = [package]
    while waiting:
        try:
            needs = metadata.requires(waiting.pop()) or []
        except metadata.PackageNotFoundError:
            continue
        for need in needs:
            name = re.match(_NAME, need)
            # What only an extra needs may be installed for other reasons
            if name is None or re.search(r"\bextra\s*==", need):
                continue
            plain = re.sub(r"[-_.]+", "-", name[0]).lower()
            if plain not in versions and plain != package:
                try:
                    versions[plain] = metadata.version(plain)
                except metadata.PackageNotFoundError:
                    continue  # not needed on this system
                waiting.append(plain)
    return versions
