"""perdure's own cache of models: one folder per user, filled only by an explicit fetch."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from perdure.embed.catalogue import Hub, OnnxModel
from perdure.errors import EndpointError, ModelError

HUB: Final = "https://huggingface.co"
HUB_DOMAINS: Final = ("huggingface.co", "hf.co")
"""The hub leads from its own address to servers of these domains, where the large files are."""
_MARKER: Final = "complete.json"
_TRUE: Final = frozenset({"1", "ON", "YES", "TRUE"})
"""What the hub's own library takes for true in HF_HUB_OFFLINE."""


def models_folder() -> Path:
    """Return the folder of all fetched models."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("perdure", appauthor=False)) / "models"


def fetched(model: OnnxModel) -> Path | None:
    """Return the folder that a model was fetched into, whole and verified; None: it was not."""
    folder = _folder(model)
    if folder is None:
        return None
    try:
        marker = json.loads((folder / _MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return folder if marker == _digests(model) else None


def may_fetch(offline: bool = False, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return what forbids a fetch, for people; None: nothing does."""
    if offline:
        return "setting model_offline is on"
    if environ.get("HF_HUB_OFFLINE", "").upper() in _TRUE:
        return f"HF_HUB_OFFLINE is {environ['HF_HUB_OFFLINE']}"
    return None


def fetch(
    model: OnnxModel,
    hub: str = HUB,
    *,
    offline: bool = False,
    timeout: float = 30.0,
    advance: Callable[[int], None] = lambda count: None,
) -> Path:
    """Fetch the files of a model at its pinned revision; what is there already is not fetched again.

    Args:
        model: of the catalogue.
        hub: address of the hub, or of a mirror of it. What it sends is checked, so it need not be trusted.
        offline: whether the settings forbid it; the environment variable HF_HUB_OFFLINE can as well.
        timeout: seconds without a byte after which the server is given up.
        advance: told how many bytes came in; less than 0: so many are to come anew.

    Returns:
        The folder that holds the files by their paths on the hub.

    Raises:
        ModelError: it comes with perdure, fetching is forbidden, another process does it, what came is not the
            pinned file, or it cannot be written.
        EndpointError: the hub did not send it; what came is kept, and the next fetch goes on from there.
    """
    from filelock import FileLock, Timeout

    folder = _folder(model)
    if folder is None or model.hub is None:
        raise ModelError(
            f"model {model.name} is not fetched: it comes with perdure; reinstall perdure if it is missing"
        )
    if fetched(model) is not None:
        return folder
    forbidden = may_fetch(offline)
    if forbidden:
        raise ModelError(f"model {model.name} is not fetched: {forbidden}. Change that, or give its path: model_path")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_suffix(".lock"), timeout=0):
            _Fetch(model, model.hub, hub, folder, timeout, advance).all()
    except Timeout:
        raise ModelError(f"model {model.name} is being fetched by another process; wait for it") from None
    except OSError as error:
        raise ModelError(
            f"{folder} cannot be written ({error.strerror or error}); make room or free the way"
        ) from error
    return folder


class _Fetch:
    """One fetch into a folder that this process has locked."""

    def __init__(
        self, model: OnnxModel, source: Hub, hub: str, folder: Path, timeout: float, advance: Callable[[int], None]
    ) -> None:
        self._model = model
        self._source = source
        self._hub = hub
        self._folder = folder
        self._timeout = timeout
        self._advance = advance

    def all(self) -> None:
        """Fetch what is missing, and note last that all is there."""
        for file, (size, sha256) in self._model.pins.items():
            self._file(file, size, sha256)
        part = self._folder / (_MARKER + ".part")
        part.write_text(json.dumps(_digests(self._model)), encoding="utf-8")
        part.replace(self._folder / _MARKER)

    def _file(self, file: str, size: int, sha256: str) -> None:
        target = self._folder / file
        if target.is_file() and _digest(target) == sha256:
            self._advance(size)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(target.name + ".part")
        self._download(file, part, size)
        found = _digest(part)
        if found != sha256:
            part.unlink()
            raise ModelError(
                f"{self._hub} sent another file for {file} of model {self._model.name}: its sha256 is {found}, "
                f"expected {sha256}. It was deleted; try another address (model_hub), or give the path of a good copy "
                "(model_path)"
            )
        part.replace(target)

    def _download(self, file: str, part: Path, size: int) -> None:
        """Download, and go on after a cut as long as each try brings something.

        Raises:
            EndpointError: a try brought nothing.
        """
        from perdure.models.address import Address
        from perdure.models.download import download

        shown = 0

        def count(more: int) -> None:
            nonlocal shown
            shown += more
            self._advance(more)

        address, path = Address(self._hub), self._source.path(file)
        while True:
            before = _size(part)
            try:
                download(address, path, part, size, redirects=HUB_DOMAINS, timeout=self._timeout, advance=count)
                return
            except EndpointError:
                if _size(part) <= before:
                    raise
                count(-shown)


def _folder(model: OnnxModel) -> Path | None:
    return None if model.hub is None else models_folder() / model.key / model.hub.revision


def _digests(model: OnnxModel) -> dict[str, str]:
    return {file: sha256 for file, (_, sha256) in model.pins.items()}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
