"""`perdure model`: the embedding model of the store, switching it, and the models on this machine."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from perdure.background.worker_process import WorkerProcess
from perdure.cli.operation import operation
from perdure.cli.options import existing_store
from perdure.cli.output import Output, progress
from perdure.embed.catalogue import OnnxModel, models
from perdure.embed.load import find_weights, known_model
from perdure.engine.composing import load_extensions
from perdure.engine.engine import WORKER
from perdure.engine.model import Recipes
from perdure.engine.settings import Settings
from perdure.engine.store_opening import open_store
from perdure.errors import ModelError, PerdureError, SettingsError
from perdure.index import shadow
from perdure.index.calibrate import known, told
from perdure.index.reembed import prune as prune_spaces
from perdure.parts import part
from perdure.store import spaces
from perdure.store.folder import was_opened
from perdure.store.spaces import VectorSpace
from perdure.store.store import Store
from perdure.text.pluralize import counted

POLL_SECONDS = 0.2
RESTART_SECONDS = 2.0
PATIENCE_SECONDS = 300.0
NONE = 'No vectors yet. They are created with the first memory: perdure store "TEXT"'


@click.group()
def model() -> None:
    """Show or change the embedding model of the store.

    Example: perdure model status
    """


@operation(model)
def status(folder: Path, output: Output) -> None:
    """Show the current and previous models and a switch in progress.

    Also show how the current model compares with the previous one on questions made from your memories.

    Example: perdure model status
    """
    with existing_store(folder, "empty") as store, store.database.read() as connection:
        found, building = spaces.every(connection), spaces.building(connection)
        present, problem = spaces.active(connection), spaces.problem(connection)
        _, facts = spaces.progress(connection, "")
    setting, advice = _compared(present)
    listed = [
        {"id": item.space.id, "model": item.space.description.get("model"), "dims": item.space.dims,
         "state": item.state, "since": item.since, "vectors": item.vectors, "calibration": _calibrated(item.space),
         "shadow": _shadow(item.space)}
        for item in found
    ]  # fmt: skip
    output.json({
        "setting": setting, "advice": advice, "switching": building is not None, "problem": problem, "facts": facts,
        "spaces": listed,
    })  # fmt: skip
    output.table(
        ("model", "state", "vectors"), [(item.space.name, item.state, item.vectors) for item in found], none=NONE
    )
    output.line(f"{counted(facts, 'memory')}; model in the settings: {setting}")
    compared = _shadow(present)
    for text in (_calibrated(present), shadow.told(compared) if compared else None, problem, advice):
        if text:
            output.line(text)


@operation(model, "list")
def list_models(folder: Path, output: Output) -> None:
    """List the local models; * marks the one in use.

    Example: perdure model list
    """
    space = _space_of(folder)
    described = [_described(each, space) for each in models().values()]
    output.json({"store": space.name if space else None, "models": described})
    rows = [
        ("*" if item["used"] else "", item["key"], item["dims"], _megabytes(item["bytes"]), item["path"] is not None,
         item["licence"], item["about"])
        for item in described
    ]  # fmt: skip
    output.table(("", "name", "dimensions", "MB", "installed", "licence", "about"), rows)
    output.line(f"In use: {space.name}" if space else NONE)


@operation(model)
def fetch(output: Output, name: str, dry_run: bool) -> None:
    """Download a local model from Hugging Face. No other command downloads anything.

    The files are checked against known sha256 sums. An interrupted download resumes.

    Example: perdure model fetch bge-small-en-v1.5 --dry-run
    """
    wanted, cache = known_model(name), part("models.download")
    path, forbidden, hub = _path(wanted), cache.forbidden(), cache.hub()
    files = {file: {"bytes": size, "sha256": sha256} for file, (size, sha256) in wanted.pins.items()}
    if path is None and not dry_run:
        with progress("downloading", _size(wanted), quiet=output.as_json) as advance:
            cache.fetch(wanted, advance=advance)
        path = find_weights(wanted)
    source = _source(wanted)
    output.json({
        "key": name, "dry_run": dry_run, "path": path, "source": source, "hub": hub,
        "bytes": _size(wanted), "files": files, "forbidden": forbidden,
    })  # fmt: skip
    if path is not None:
        output.line(f"Installed: {name} in {path}")
        output.line(f"Use it: perdure model use {name}")
        return
    output.line(f"Would download {name}, {_megabytes(_size(wanted))} MB, from {hub}, {source}")
    output.table(("file", "bytes", "sha256"), [(file, *each.values()) for file, each in files.items()])
    if forbidden:
        output.line(f"Not allowed: {forbidden}")


@operation(model)
def use(folder: Path, output: Output, name: str, dry_run: bool) -> None:
    """Switch to a local model.

    Shorthand for `switch --embedder onnx --model NAME`.

    Example: perdure model use bge-small-en-v1.5
    """
    _switch(folder, output, "onnx", name, dry_run)


@operation(model)
@click.option("--embedder", help="Name of the embedder; default: from settings.")
@click.option("--model", "model_name", help="Model of the embedder: a name or a folder.")
def switch(folder: Path, output: Output, embedder: str | None, model_name: str | None, dry_run: bool) -> None:
    """Re-embed all memories with another model and switch to it.

    The previous model is used until then. An interrupted switch resumes when a host uses the store. The previous
    vectors are kept for 30 days.

    Example: perdure model switch --embedder sentence-transformers --model /models/e5-small
    """
    _switch(folder, output, embedder, model_name, dry_run)


@operation(model)
def rollback(folder: Path, output: Output, dry_run: bool) -> None:
    """Cancel a switch, or return to the previous model.

    Newer memories are found by keywords until the worker has re-embedded them.

    Example: perdure model rollback
    """
    with existing_store(folder) as store, store.database.write(keep=not dry_run) as connection:
        space = spaces.rollback(connection, store.clock.now())
        vectors, facts = spaces.progress(connection, space.id)
    output.json({"model": space.name, "facts": facts, "vectors": vectors, "dry_run": dry_run})
    answers = "Would use" if dry_run else "Now using"
    output.line(f"{answers} {space.name}; vectors for {vectors} of {counted(facts, 'memory')}")


@operation(model)
def prune(folder: Path, output: Output, dry_run: bool) -> None:
    """Delete the vectors of previous models. You cannot roll back afterwards.

    Example: perdure model prune --dry-run
    """
    with existing_store(folder) as store:
        gone = prune_spaces(store, dry_run=dry_run)
    pruned = [{"id": item.space.id, "model": item.space.name, "vectors": item.vectors} for item in gone]
    output.json({"dry_run": dry_run, "pruned": pruned})
    output.table(("model", "vectors"), [(item.space.name, item.vectors) for item in gone])
    output.line("Would be deleted." if dry_run and gone else "Deleted." if gone else "Nothing to delete.")


def _switch(folder: Path, output: Output, embedder: str | None, model_name: str | None, dry_run: bool) -> None:
    began = time.monotonic()
    given = {"embedder": embedder, "embedder_model": model_name}
    settings = Settings.load({name: value for name, value in given.items() if value is not None})
    space = _named(settings)
    if space is None:
        raise SettingsError("no model to switch to: embedder is 'none'; pass one: perdure model switch --embedder NAME")
    with existing_store(folder, "empty") if dry_run else closing(open_store(folder)) as store:
        former = store.space()
        begun = former is not None and former.id != space.id
        if not dry_run:
            with store.database.write() as connection:
                begun = spaces.begin(connection, space, store.clock.now())
            if begun:
                _follow(store, space, settings, quiet=output.as_json)
        with store.database.read() as connection:
            vectors, facts = spaces.progress(connection, space.id)
            compared = _shadow(spaces.active(connection)) if begun and not dry_run else None
    output.json({
        "former": None if former is None else former.name, "model": space.name, "switched": begun, "facts": facts,
        "vectors": vectors, "shadow": compared, "dry_run": dry_run, "seconds": round(time.monotonic() - began, 3),
    })  # fmt: skip
    memories = counted(facts, "memory")
    if not begun:
        output.line(f"Already using {space.name}; nothing to switch")
    elif dry_run:
        output.line(f"Would embed {facts - vectors} of {memories} with {space.name} and switch to it")
    else:
        output.line(f"Now using {space.name}; vectors for {vectors} of {memories}")
        if compared:
            output.line(shadow.told(compared))
        output.line("Hosts switch at their next recall; set this model in their settings. Undo: perdure model rollback")


def _described(model: OnnxModel, space: VectorSpace | None) -> dict[str, Any]:
    return {
        "key": model.key, "model": model.name, "dims": model.dims, "max_tokens": model.max_tokens,
        "pooling": model.pooling, "query_prefix": model.query_prefix, "document_prefix": model.document_prefix,
        "bytes": _size(model), "sha256": model.sha256, "source": _source(model), "licence": model.licence,
        "about": model.about, "path": _path(model), "used": space is not None and space.id == model.identity.id,
    }  # fmt: skip


def _path(model: OnnxModel) -> Path | None:
    try:
        return find_weights(model)
    except ModelError:
        return None


def _source(model: OnnxModel) -> str:
    return model.hub.page if model.hub else "package perdure"


def _size(model: OnnxModel) -> int:
    return sum(size for size, _ in model.pins.values())


def _megabytes(count: int) -> int:
    return round(count / 1_000_000)


def _space_of(folder: Path) -> VectorSpace | None:
    """Return the vector space of the store, without creating a store."""
    if not was_opened(folder):
        return None
    with closing(open_store(folder)) as store, store.database.read() as connection:
        return spaces.active(connection)


def _named(settings: Settings) -> VectorSpace | None:
    recipes = Recipes(settings, load_extensions(settings))
    embedder = recipes.own()
    return None if embedder is None else recipes.space(embedder.identity)


def _calibrated(space: VectorSpace | None) -> str | None:
    calibration = known(space) if space else None
    return told(calibration) if calibration else None


def _shadow(space: VectorSpace | None) -> dict[str, Any] | None:
    """Return how a space's model compared with the one before, if recorded."""
    return space.description.get(shadow.NOTE) or None if space else None


def _compared(present: VectorSpace | None) -> tuple[str, str | None]:
    """Return the model in the settings, and advice if it is not the store's."""
    try:
        own = _named(Settings.load())
    except PerdureError as error:
        return f"cannot be loaded: {error}", None
    if own is None:
        return "none", None
    if present is None or own.id == present.id:
        return own.name, None
    advice = f"the store uses {present.name}; to switch it, run perdure model switch, or change the settings"
    return own.name, advice


def _follow(store: Store, space: VectorSpace, settings: Settings, *, quiet: bool) -> None:
    """Let the worker do the switch, and watch it."""
    order: dict[str, Any] = settings.model_dump(mode="json", exclude_defaults=True)
    worker = WorkerProcess(WORKER, store.folder, order)
    shown, total = store.database.query(spaces.progress, space.id)
    try:
        with progress("embedding", total - shown, quiet=quiet) as advance:
            started = moved = time.monotonic()
            worker.ensure()
            while True:
                with store.database.read() as connection:
                    begun, problem = spaces.building(connection), spaces.problem(connection)
                    done, _ = spaces.progress(connection, space.id)
                if begun is None or begun.id != space.id:
                    break
                for _ in range(done - shown):
                    advance()
                now = time.monotonic()
                moved, shown = (now if done > shown else moved), max(done, shown)
                if problem or now - moved > PATIENCE_SECONDS:
                    raise ModelError(
                        f"switch to {space.name} stalled: {problem or 'the worker is making no progress'}; "
                        "it resumes when a host uses the store, and perdure model rollback cancels it"
                    )
                # Another process's worker may hold the store and stop early.
                if now - started > RESTART_SECONDS:
                    started = now
                    worker.ensure()
                time.sleep(POLL_SECONDS)
    finally:
        worker.stop()
