"""The embedding model of an open store: loaded in the background, used only if it fits the store."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from functools import partial

from perdure.embed.base import Embedder, EmbedderIdentity, GuardedEmbedder
from perdure.embed.catalogue import RECALL, SUCCESSORS, OnnxModel, models
from perdure.embed.load import load_model
from perdure.engine.composing import REMOTE
from perdure.engine.extensions import ExtensionManager
from perdure.engine.settings import Settings
from perdure.errors import EndpointError, ModelError, PerdureError, StoreError
from perdure.index.calibrate import known, measure
from perdure.index.trigger_index import TriggerIndex
from perdure.index.vector_index import Surveyor
from perdure.ranking.calibration import Scale
from perdure.recall.gate import LearnedGate, shipped
from perdure.recall.turn import VectorLeg
from perdure.store import spaces
from perdure.store.spaces import VectorSpace
from perdure.store.store import Store
from perdure.text.pluralize import counted

RECIPE = (
    "embedder", "embedder_model", "model_path", "embedder_endpoint", "embedder_key_env", "embedder_dims",
    "embedder_fallbacks",
)  # fmt: skip
"""The settings that decide which model is loaded."""
SAME_MODEL = ("model", "dims", "max_tokens", "pooling", "query_prefix", "document_prefix", "settings")
"""What spaces have in common that only the files of their model tell apart."""
RETRY_SECONDS = 60.0
"""A server that did not answer at the start is asked again after so long."""
_log = logging.getLogger("perdure.plugin")


@dataclass(frozen=True, slots=True)
class Recipes:
    """How a space's embedder is made: the settings that made it are kept with the space.

    So every process can use the model of the store, whatever its own settings name.
    """

    settings: Settings
    extensions: ExtensionManager

    def space(self, identity: EmbedderIdentity) -> VectorSpace:
        """Return the space of the embedder that the settings name, with the settings that made it."""
        values = self.settings.model_dump(mode="json", include=set(RECIPE))
        recipe = {name: value for name, value in values.items() if value not in (None, [])}
        return VectorSpace(identity.id, identity.dims, asdict(identity) | {"settings": recipe})

    def own(self) -> Embedder | None:
        """Make the embedder that the settings name, or None if they want none."""
        if self.settings.embedder == "none":
            return None
        return GuardedEmbedder(self.extensions.get("embedders", self.settings.embedder)(self.settings))

    def embedder(self, space: VectorSpace) -> Embedder | None:
        """Make the embedder of a space: as it was made before, or else as the settings say; None if neither fits."""
        if self.settings.embedder == "none":
            return None
        recipe = space.description.get("settings", {})
        noted = {name: recipe.get(name, Settings.model_fields[name].default) for name in RECIPE}
        if noted["embedder"] in REMOTE and not noted["embedder_model"]:
            # The provider's usual model may have been another one.
            noted["embedder_model"] = space.description["model"]
        theirs = Settings.model_validate(self.settings.model_dump() | noted) if "embedder" in recipe else None
        makers: list[Callable[[], Embedder | None]] = [
            Recipes(settings, self.extensions).own for settings in (theirs, self.settings) if settings
        ]
        # A former default goes by the same settings as the present one.
        makers += [partial(self._of_catalogue, model) for model in models().values() if model.identity.id == space.id]
        for make in makers:
            try:
                embedder = make()
            except PerdureError as error:
                _log.warning("model %s cannot be loaded: %s", space.name, error)
                continue
            if embedder is not None and embedder.identity.id == space.id:
                return embedder
        return None

    def _of_catalogue(self, model: OnnxModel) -> Embedder:
        return GuardedEmbedder(load_model(model))


@dataclass(eq=False)
class Model:
    """Holds the vector leg once it is there, and follows the store to another space."""

    store: Store  # whose vector space the model must fit
    load: Callable[[], Embedder] | None  # makes the embedder that the settings name; None: none is wanted
    index: Callable[[VectorSpace], Surveyor]
    floor: float | None  # cosine from which a hit is evidence; None: set for each query by the calibration
    on_ready: Callable[[], None]  # called once the model can be used, in the loading thread
    _: KW_ONLY
    recipes: Recipes | None = None  # makes the embedders of spaces that are not the settings' own
    switch_by_itself: bool = False  # to a model of the settings that this store has never had
    # By the space of a former default, that of its successor: such a store switches by itself.
    successors: Mapping[str, str] = field(default_factory=lambda: SUCCESSORS)
    on_switch: Callable[[], None] = lambda: None  # called when a switch is under way: starts the worker
    retry: float = RETRY_SECONDS
    pause: Callable[[], None] = lambda: None  # called every few milliseconds while a model is measured

    def __post_init__(self) -> None:
        self._leg: VectorLeg | None = None
        self._early: tuple[str, Surveyor] | None = None  # the index of a space whose model is not loaded
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="perdure-model", daemon=True)
        self._seen: str | None = None
        self._retry_at: float | None = None
        self._closed = False
        self._state = "loading" if self.load else "disabled by setting"

    @property
    def state(self) -> str:
        """What can be used, or why recall goes by words alone, and how far a switch is; for people."""
        try:
            with self.store.database.read() as connection:
                space = spaces.building(connection)
                if space is None:
                    return self._state
                done, total = spaces.progress(connection, space.id)
                problem = spaces.problem(connection)
        except StoreError:
            return self._state
        stalled = f", stalled: {problem}" if problem else ""
        return f"{self._state}; switching to {space.name}: {done} of {counted(total, 'memory')}{stalled}"

    def start(self) -> None:
        """Begin to load."""
        if self.load is None:
            self._done.set()
        else:
            self._thread.start()

    def wait(self, timeout: float) -> bool:
        """Wait until loading has ended, well or not; return whether the model can be used."""
        self._follow()
        self._done.wait(timeout)
        return self._leg is not None

    def leg(self) -> VectorLeg | None:
        """Return the vector leg of the store's space, or None while there is none."""
        self._follow()
        return self._leg

    def embedder(self) -> Embedder | None:
        """Return the embedder of the store's space, or None while there is none."""
        leg = self.leg()
        return leg.embedder if leg else None

    def shipped_index(self) -> Surveyor | None:
        """Return the index of the store's vectors if the shipped encoder has made them, also before it is loaded."""
        leg, space = self.leg(), self.store.space()
        if space is None or space.description.get("digest") != RECALL.sha256:
            return None
        with self._lock:
            if leg is not None and leg.embedder.identity.id == space.id:
                self._drop_early()
                return leg.index
            if self._closed:
                return None
            if self._early is None or self._early[0] != space.id:
                self._drop_early()
                self._early = space.id, self.index(space)
            return self._early[1]

    def scale(self) -> Scale:
        """Return what brings the model's cosines onto the scale of the default model's."""
        leg = self._leg
        return leg.calibration.scale if leg else Scale()

    def close(self, patience: float = 2.0) -> None:
        """Let go of the model; one that is still loading is left to end by itself."""
        with self._lock:
            self._closed = True
        if self._thread.is_alive():
            self._thread.join(patience)
        self._drop_early()
        if self._leg is not None:
            self._leg.embedder.interrupt()
            self._leg.close()

    def _drop_early(self) -> None:
        early, self._early = self._early, None
        if early is not None:
            early[1].close()

    def _follow(self) -> None:
        """Load anew, in the background, if the store has another space than when the model was loaded."""
        if self.load is None or not self._done.is_set():
            return
        try:
            space = self.store.space()
        except StoreError:
            return  # whoever asks will find out; a leg that is there agrees with its own index in any case
        self._recalibrate(space)
        again = self._retry_at is not None and time.monotonic() >= self._retry_at
        followed = space is None or space.id == self._seen
        if followed and not again:
            return
        with self._lock:
            if self._closed or not self._done.is_set() or not (again or (space and space.id != self._seen)):
                return
            leg, self._leg = self._leg, None
            self._retry_at = None
            if space is not None and not followed:
                self._state = f"loading: this store's vectors are now from model {space.name}"
            self._done.clear()
            self._thread = threading.Thread(target=self._run, name="perdure-model", daemon=True)
            self._thread.start()
        if leg is not None:
            leg.close()

    def _recalibrate(self, space: VectorSpace | None) -> None:
        # The worker has measured anew, as the store has grown.
        with self._lock:
            if space is None or self._leg is None or space.id != self._leg.embedder.identity.id:
                return
            found = known(space, self.floor)
            if found is not None and found != self._leg.calibration:
                self._leg = replace(self._leg, calibration=found)

    def _run(self) -> None:
        try:
            self._load_leg()
            if self._leg is not None:
                self.on_ready()
            if self._switching():
                self.on_switch()
        finally:
            self._done.set()

    def _load_leg(self) -> None:
        try:
            space = self.store.space()
            self._seen = space.id if space else None
            self._prepare()
        except PerdureError as error:
            if self._closed:
                return
            self._go_by_words(error)
            if isinstance(error, EndpointError):
                self._retry_at = time.monotonic() + self.retry

    def _switching(self) -> bool:
        try:
            return self.store.database.query(spaces.building) is not None
        except StoreError:
            return False

    def _prepare(self) -> None:
        if self.load is None:
            return
        # Native libraries import a part of numpy by its full name, and so wait for the whole while they hold the part;
        # a thread that imports the whole at that moment holds it and needs the part, and one of both imports fails.
        import numpy  # noqa: F401

        embedder: Embedder = GuardedEmbedder(self.load())
        identity = embedder.identity
        plain = VectorSpace(identity.id, identity.dims, asdict(identity))
        own = self.recipes.space(identity) if self.recipes else plain
        if self.store.space() is None:
            # Nothing binds a store to a model that has never answered.
            embedder.embed(["warm"], query=True)
        if self.store.adopt_space(own):
            self._use(embedder, own, "")
            return
        theirs = self.store.space()
        if theirs is None:
            self._state = "keyword only: this store has no vectors yet"
            return
        self._seen = theirs.id
        # Nobody has chosen another model, so nobody need agree to it.
        renewed = all(own.description.get(name) == theirs.description.get(name) for name in SAME_MODEL)
        succeeds = self.successors.get(theirs.id) == own.id
        if (self.switch_by_itself or renewed or succeeds) and self.store.refusal is None:
            with self.store.database.write() as connection:
                spaces.begin_if_new(connection, own, self.store.clock.now())
                begun = spaces.building(connection)
            if renewed and begun is not None and begun.id == own.id:
                self._go_by_words(
                    f"the files of model {own.name} have changed, so every memory is re-embedded automatically"
                )
                return
        advice = (
            f"this store's vectors are from model {theirs.name}, not from {own.name} as configured; switch with:"
            " perdure model switch"
        )
        fitting = self.recipes.embedder(theirs) if self.recipes else None
        if fitting is not None:
            self._use(fitting, theirs, f"; {advice}")
            return
        self._go_by_words(advice)

    def _go_by_words(self, why: object) -> None:
        self._state = f"keyword only: {why}"
        _log.warning("semantic search unavailable, using keyword search: %s", why)

    def _use(self, embedder: Embedder, space: VectorSpace, remark: str) -> None:
        # The first call allocates and compiles; no turn should pay for it.
        embedder.embed(["warm"], query=True)
        self._seen = space.id
        calibration = measure(self.store, space, embedder, self._step_aside, self.floor)
        triggers = TriggerIndex(self.store.database, space.id, space.dims)
        self._leg = VectorLeg(embedder, self.index(space), calibration, self._gate(embedder), triggers=triggers)
        self._state = f"ready: {embedder.identity.model}{remark}"

    def _gate(self, embedder: Embedder) -> LearnedGate | None:
        """Return the gate that was fitted on this embedder, unless the settings have a floor of their own."""
        if self.floor is not None or embedder.identity.digest != RECALL.sha256:
            return None
        gate = shipped()
        return gate if gate.encoder == embedder.identity.digest else None

    def _step_aside(self) -> None:
        self.pause()
        if self._closed:
            raise ModelError("the store is closing; the model will be measured at the next start")
