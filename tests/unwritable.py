"""Folders that cannot be written, and full disks, as the system makes them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Let nothing be written below a folder during the block. Root is bound by a mount only, others by modes."""
    if os.name != "posix":
        pytest.skip("needs POSIX modes")
    if os.geteuid() != 0:
        inside = [path for path in folder.rglob("*") if path.is_dir()]
        for each in (folder, *inside):
            each.chmod(0o500)
        try:
            yield
        finally:
            for each in (folder, *inside):
                each.chmod(0o700)
        return
    with bound(folder, folder):
        yield


@contextmanager
def bound(folder: Path, place: Path) -> Iterator[None]:
    """Show a folder at another place as well, where nothing can be written, as inside of a container."""
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("only root may mount")
    with _mounted(["--bind", str(folder), str(place)], place):
        _mount("-o", "remount,ro,bind", str(place))
        yield


@contextmanager
def full_disk(folder: Path, size: int) -> Iterator[None]:
    """Move a folder onto a disk of its own of so many bytes, and fill what it leaves free, during the block."""
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("only root may mount")
    disk = folder.with_name(f"{folder.name}-disk")
    disk.mkdir()
    with _mounted(["-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(disk)], disk):
        shutil.copytree(folder, disk / folder.name)
        folder.rename(folder.with_name(f"{folder.name}-before"))
        folder.symlink_to(disk / folder.name)
        _fill(disk / "filler")
        yield
    folder.unlink()


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


@contextmanager
def _mounted(arguments: list[str], where: Path) -> Iterator[None]:
    _mount(*arguments)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(where)], check=True)


def _mount(*arguments: str) -> None:
    if shutil.which("mount") is None:
        pytest.skip("there is no mount here")
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"may not mount: {done.stderr.strip()}")
