"""perdure's wheel and source distribution: how they are built, and what must be in them and what not."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = (
    "perdure/py.typed",
    "perdure/api/async_memory.pyi",
    *(
        f"perdure/{folder}/data/*.toml"
        for folder in (
            "capture",
            "consolidation",
            "embed",
            "librarian",
            "models",
            "recall",
            "secrets",
            "speech",
            "text",
        )
    ),
    *(f"perdure/{folder}/data/*.toml" for folder in ("api", "cli", "files", "hosts/command", "hosts/mcp", "importers")),
    *(f"perdure/postgres/{name}.sql" for name in ("begun", "forgotten", "schema", "triggers")),
    *(
        f"perdure/{path}.sql"
        for path in ("files/data/index", "store/forgotten", "store/schema", "store/triggers", "vault/schema")
    ),
    "perdure/cli/data/*.json",
    "perdure/capture/data/heads.npz",
    "perdure/embed/data/LICENSE",
    "perdure/embed/data/NOTICE",
    "perdure/embed/data/perdure-recall-1.onnx",
    "perdure/embed/data/tokenizer.json",
    "perdure/recall/data/gate.json",
    "perdure/recall/data/kinds.json",
    "perdure/recall/data/need.json",
    "perdure/recall/data/topics.json",
    "perdure/recall/data/triggered.json",
    "perdure/hosts/openclaw/index.js",
    "perdure/hosts/openclaw/bridge.js",
    "perdure/hosts/openclaw/generated.json",
    "perdure/hosts/openclaw/plugin.toml",
    "perdure/importers/data/trial.html",
    "perdure/ui/static/*",
    "perdure/ui/templates/*.html",
)
"""Files of the package that are not Python. Each must be there, and there may be no other."""
LARGE = {
    "perdure/embed/data/perdure-recall-1.onnx": 25_000_000,
    "perdure/embed/data/tokenizer.json": 500_000,
    "perdure/capture/data/heads.npz": 500_000,
    "perdure/recall/data/gate.json": 450_000,
    "perdure/recall/data/triggered.json": 450_000,
}
"""Bytes that the large files may have."""
FILE_BYTES = 64_000
"""No other file has more."""


@dataclass(frozen=True, slots=True)
class Built:
    """The two files of a release."""

    wheel: Path
    sdist: Path


def build(folder: Path) -> Built:
    """Build both from the checkout, without a network."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder), "-t", "wheel", "-t", "sdist"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Built(wheel, sdist)


def environment(folder: Path) -> tuple[Path, Path]:
    """Make an environment; return the folders of its programs and of its packages."""
    venv.create(folder, with_pip=True)
    [site] = folder.glob("lib/python*/site-packages")
    return folder / "bin", site


def in_wheel(wheel: Path) -> dict[str, int]:
    """Return the files of a wheel with their bytes."""
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename: entry.file_size for entry in archive.infolist()}


def in_sdist(sdist: Path) -> dict[str, int]:
    """Return the files of a source distribution with their bytes, as seen from its folder."""
    with tarfile.open(sdist) as archive:
        return {member.name.partition("/")[2]: member.size for member in archive.getmembers() if member.isfile()}


def source() -> list[str]:
    """Return the files of the package in the checkout."""
    files = (path for path in (ROOT / "perdure").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(path.relative_to(ROOT).as_posix() for path in files)


def wheel_problems(files: Mapping[str, int]) -> list[str]:
    """Return what is wrong with the content of a wheel, a line each."""
    packed = [name for name in files if ".dist-info/" not in name]
    stray = [name for name in packed if not name.startswith("perdure/") or not (name.endswith(".py") or _data(name))]
    needed = {"METADATA", "RECORD", "entry_points.txt", "LICENSE"}
    described = {Path(name).name for name in files if ".dist-info/" in name}
    return [
        *_missing(source(), packed),
        *(f"nothing fits {pattern}" for pattern in DATA if not any(fnmatch(name, pattern) for name in packed)),
        *(f"{name} does not belong there" for name in stray),
        *(f"{name} has {files[name]} bytes" for name in packed if files[name] > LARGE.get(name, FILE_BYTES)),
        *(f"{name} is not among the metadata" for name in sorted(needed - described)),
    ]


def sdist_problems(files: Mapping[str, int]) -> list[str]:
    """Return what is wrong with the content of a source distribution, a line each."""
    needed = ("pyproject.toml", "README.md", "LICENSE", "openclaw.plugin.json", "package.json", "scripts/test.sh")
    caches = [name for name in files if "__pycache__" in name or Path(name).parts[0].startswith(".")]
    return [
        *_missing((*source(), *needed), files),
        *(f"{name} does not belong there" for name in caches if name != ".gitignore"),
    ]


def _missing(wanted: Iterable[str], there: Iterable[str]) -> list[str]:
    return [f"{name} is missing" for name in sorted(set(wanted) - set(there))]


def _data(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in DATA)
