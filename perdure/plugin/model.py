"""The embedding model of an open store: loaded in the background, used only if it fits the store."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import asdict

from perdure.embed.base import Embedder
from perdure.embed.guarded import GuardedEmbedder
from perdure.errors import PerdureError
from perdure.ranking.calibration import Calibration
from perdure.recall.legs import VectorLeg
from perdure.store.store import Store, VectorSpace
from perdure.store.vector_index import VectorIndex

_log = logging.getLogger("perdure.plugin")


class Model:
    """Holds the vector leg once it is there. Recall asks for it and never waits."""

    def __init__(
        self,
        store: Store,
        load: Callable[[], Embedder] | None,
        index: Callable[[VectorSpace], VectorIndex],
        floor: float | None,
        on_ready: Callable[[], None],
    ) -> None:
        """Prepare to load.

        Args:
            store: whose vector space the model must fit.
            load: makes the embedder; None: none is wanted.
            index: makes the index of a space.
            floor: cosine from which a hit is evidence; None: set for each query by the calibration.
            on_ready: called once the model can be used, in the loading thread.
        """
        self._store = store
        self._load = load
        self._index = index
        self._floor = floor
        self._on_ready = on_ready
        self._leg: VectorLeg | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="perdure-model", daemon=True)
        self.state = "loading" if load else "off by setting"

    def start(self) -> None:
        """Begin to load."""
        if self._load is None:
            self._done.set()
        else:
            self._thread.start()

    def wait(self, timeout: float) -> bool:
        """Wait until loading has ended, well or not; return whether the model can be used."""
        self._done.wait(timeout)
        return self._leg is not None

    def leg(self) -> VectorLeg | None:
        """Return the vector leg, or None while there is no model."""
        return self._leg

    def index(self) -> VectorIndex | None:
        """Return the index of the store's space, or None while there is none."""
        return self._leg.index if self._leg else None

    def embedder(self) -> Embedder | None:
        """Return the embedder, or None while there is none."""
        return self._leg.embedder if self._leg else None

    def close(self, patience: float = 2.0) -> None:
        """Let go of the model; one that is still loading is left to end by itself."""
        if self._thread.is_alive():
            self._thread.join(patience)
        if self._leg is not None:
            self._leg.embedder.interrupt()
            self._leg.index.close()

    def _run(self) -> None:
        try:
            self._prepare()
        except PerdureError as error:
            self.state = f"lexical only: {error}"
            _log.warning("no vector leg, recall goes by words: %s", error)
        finally:
            self._done.set()
        if self._leg is not None:
            self._on_ready()

    def _prepare(self) -> None:
        if self._load is None:
            return
        embedder = GuardedEmbedder(self._load())
        identity = embedder.identity
        space = VectorSpace(identity.id, identity.dims, asdict(identity))
        if not self._store.adopt_space(space):
            theirs = self._store.space()
            name = theirs.description.get("model") if theirs else "another"
            self.state = f"lexical only: this store's vectors are of model {name}, not of {identity.model}"
            _log.warning("no vector leg: the store's vectors are of model %s, not of %s", name, identity.model)
            return
        # The first call allocates and compiles; no turn should pay for it.
        embedder.embed(["warm"], query=True)
        calibration = Calibration.of(identity.model, fixed=self._floor)
        self._leg = VectorLeg(embedder, self._index(space), calibration)
        self.state = f"ready: {identity.model}"
