"""`perdure model list` and `perdure model fetch`: the models of the catalogue and their files on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perdure.cli.output import Output, progress
from perdure.embed.catalogue import OnnxModel, models
from perdure.embed.load import find_weights, known_model
from perdure.engine.opening import open_store
from perdure.engine.paths import data_folder
from perdure.engine.settings import Settings
from perdure.errors import ModelError
from perdure.parts import part
from perdure.store import spaces
from perdure.store.folder import was_opened
from perdure.store.spaces import VectorSpace


def show(home: Path | None, as_json: bool) -> int:
    """Print the catalogue: what is known, what is here, which one the store uses."""
    space = _of_store(data_folder(home))
    described = [_described(model, space) for model in models().values()]
    output = Output(as_json)
    if as_json:
        output.json({"store": space.name if space else None, "models": described})
        return 0
    output.table(
        ("", "name", "numbers", "MB", "here", "licence", ""),
        [
            ("*" if item["used"] else "", item["key"], item["dims"], _megabytes(item["bytes"]),
             "yes" if item["path"] else "no", item["licence"], item["about"])
            for item in described
        ],
    )  # fmt: skip
    output.line(f"the store's vectors are of {space.name}" if space else "the store has no vectors yet")
    return 0


def bring(key: str, dry_run: bool, as_json: bool) -> int:
    """Fetch a model, unless it is here.

    Raises:
        SettingsError: it is not known.
        ModelError: it may not be fetched, or what came is not it.
    """
    model, settings, output = known_model(key), Settings.load(), Output(as_json)
    total = sum(size for size, _ in model.pins.values())
    path, forbidden = _path(model), part("models.download").may_fetch(settings.model_offline)
    files = {file: {"bytes": size, "sha256": sha256} for file, (size, sha256) in model.pins.items()}
    if path is None and not dry_run:
        with progress("fetching", total, quiet=as_json) as advance:
            part("models.download").fetch(model, settings.model_hub, offline=settings.model_offline, advance=advance)
        path = find_weights(model)
    if as_json:
        output.json({
            "key": key, "dry_run": dry_run, "path": None if path is None else str(path), "source": _source(model),
            "hub": settings.model_hub, "bytes": total, "files": files, "forbidden": forbidden,
        })  # fmt: skip
    elif path is not None:
        output.line(f"{key} is here: {path}")
        output.line(f"use it: perdure model use {key}")
    else:
        output.line(f"{key} is not here; {_megabytes(total)} MB would come from {settings.model_hub}, {_source(model)}")
        output.table(("file", "bytes", "sha256"), [(name, *each.values()) for name, each in files.items()])
        if forbidden:
            output.line(f"that is forbidden: {forbidden}")
    return 0


def _described(model: OnnxModel, space: VectorSpace | None) -> dict[str, Any]:
    path = _path(model)
    return {
        "key": model.key, "model": model.name, "dims": model.dims, "max_tokens": model.max_tokens,
        "pooling": model.pooling, "query_prefix": model.query_prefix, "document_prefix": model.document_prefix,
        "bytes": sum(size for size, _ in model.pins.values()), "sha256": model.sha256, "source": _source(model),
        "licence": model.licence, "about": model.about, "path": None if path is None else str(path),
        "used": space is not None and space.id == model.identity.id,
    }  # fmt: skip


def _path(model: OnnxModel) -> Path | None:
    try:
        return find_weights(model)
    except ModelError:
        return None


def _source(model: OnnxModel) -> str:
    return model.hub.page if model.hub else "package perdure"


def _of_store(folder: Path) -> VectorSpace | None:
    """Return the space of the store; a store that does not exist is not made."""
    if not was_opened(folder):
        return None
    store = open_store(folder)
    try:
        with store.database.read() as connection:
            return spaces.active(connection)
    finally:
        store.close()


def _megabytes(count: int) -> int:
    return round(count / 1_000_000)
