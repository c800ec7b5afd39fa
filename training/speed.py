"""Times encoders on the same texts, in turns, each text by itself: milliseconds a text on one thread.

python -m training.speed FILE.onnx...
"""

from __future__ import annotations

import time
from pathlib import Path

import click
import numpy as np

from training.examples import examples, texts_of
from training.vectors import Embedder

TEXTS = 120


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
def main(files: tuple[Path, ...]) -> None:
    """Time encoders against each other."""
    texts = texts_of(examples("development"))[::11][:TEXTS]
    encoders = {path: Embedder(path) for path in files}
    taken: dict[Path, list[float]] = {path: [] for path in files}
    for text in [*texts[:5], *texts]:
        for path, encoder in encoders.items():
            started = time.perf_counter()
            encoder.embed([text])
            taken[path].append((time.perf_counter() - started) * 1000)
    for path, times in taken.items():
        warm = np.array(times[5:])
        click.echo(f"{path.name}: median {np.median(warm):.1f} ms, fastest tenth {np.quantile(warm, 0.1):.1f} ms")


if __name__ == "__main__":
    main()
