"""The model of an open store: it fits the store or is not used, and follows the store to another space."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from perdure.api.memory import Memory
from perdure.embed.catalogue import SUCCESSORS
from perdure.engine.composing import BUILTINS, embedder_factory
from perdure.engine.extensions import ExtensionManager
from perdure.engine.model import Model, Recipes
from perdure.engine.settings import Settings
from perdure.errors import SettingsError
from perdure.hooks.types import Channel
from perdure.index.reembed import Reembedder
from perdure.index.vector_index import ExactIndex
from perdure.recall.options import LEXICAL, RecallOptions
from perdure.recall.pipeline import Recaller
from perdure.store import spaces
from perdure.store.fact import Fact
from perdure.store.scope import Audience
from perdure.store.search import View
from perdure.store.sql import run
from perdure.store.store import Store
from perdure.store.transaction import Author
from tests.waiting import until

EXTENSIONS = ExtensionManager.load(disabled=(), builtins=BUILTINS)
TEXT = "The heron database is staging"


class Opened:
    """A model on a store, and how often it called back."""

    def __init__(
        self,
        store: Store,
        hold: threading.Event | None = None,
        auto: bool = False,
        successors: Mapping[str, str] = SUCCESSORS,
        **given: Any,
    ) -> None:
        settings = Settings.load({"embedder": "hash", **given}, environ={})
        load = embedder_factory(settings, EXTENSIONS)
        self.ready: list[str] = []
        self.switching: list[str] = []

        def index(space: spaces.VectorSpace) -> ExactIndex:
            if hold is not None:
                hold.wait(30)
            return ExactIndex(store.database, space.id, space.dims)

        self.model = Model(
            store,
            load,
            index,
            None,
            lambda: self.ready.append(self.model.state),
            recipes=Recipes(settings, EXTENSIONS),
            switch_by_itself=auto,
            successors=successors,
            on_switch=lambda: self.switching.append("start"),
        )
        self.model.start()

    def dims(self) -> int | None:
        """Return the dimensions of the leg that recall would use now."""
        leg = self.model.leg()
        return leg.embedder.identity.dims if leg else None


OpenModel = Callable[..., Opened]


@pytest.fixture
def open_model(store: Store) -> Iterator[OpenModel]:
    opened: list[Opened] = []

    def open_(**arguments: Any) -> Opened:
        opened.append(Opened(store, **arguments))
        return opened[-1]

    yield open_
    for item in opened:
        item.model.close()


def space(dims: int) -> spaces.VectorSpace:
    settings = Settings.load({"embedder": "hash", "embedder_model": str(dims)}, environ={})
    recipes = Recipes(settings, EXTENSIONS)
    embedder = recipes.own()
    assert embedder is not None
    return recipes.space(embedder.identity)


def uncalibrated(store: Store) -> spaces.VectorSpace | None:
    """Return the store's space as it was before anything was measured in it."""
    found = store.space()
    if found is None:
        return None
    description = {name: value for name, value in found.description.items() if name not in ("calibration", "shadow")}
    return spaces.VectorSpace(found.id, found.dims, description)


def change(store: Store, dims: int) -> None:
    """Switch the store to a model of other dimensions, as the worker would."""
    with store.database.write() as connection:
        assert spaces.begin(connection, space(dims), store.clock.now())
    build(store)
    assert uncalibrated(store) == space(dims)


def build(store: Store) -> None:
    """Do what the worker does with a switch that has begun."""
    recipes = Recipes(Settings.load({"embedder": "hash"}, environ={}), EXTENSIONS)
    reembedder = Reembedder(store, recipes.embedder)
    while reembedder.step():
        pass


def with_other_files(present: spaces.VectorSpace) -> spaces.VectorSpace:
    """Return the space of the same model as its files, or how they are counted, were before."""
    return spaces.VectorSpace("former", present.dims, {**present.description, "digest": "former"})


def legs(store: Store, model: Model) -> list[tuple[str, str]]:
    """Recall; return texts and the legs that found them."""
    recaller = Recaller(store, RecallOptions(), model.leg, store.clock)
    scope = Audience.of()
    recall, _ = recaller.recall("Which database is staging?", scope)
    recaller.close()
    return [(item.text, item.leg) for item in recall.items] if recall else []


def add(store: Store, text: str = TEXT) -> str:
    scope = Audience.of().home
    assert scope is not None
    with store.write(Author(Channel.LIBRARY)) as tx:
        return tx.add(Fact(text, channel=Channel.LIBRARY, scope=scope.kind, scope_target=scope.target)).id


def test_the_first_model_gives_the_store_its_space(store: Store, open_model: OpenModel) -> None:
    opened = open_model(embedder_model="32")
    assert opened.model.wait(30)
    assert uncalibrated(store) == space(32)
    assert opened.ready == ["ready: hash"]
    assert opened.switching == []


def test_another_process_uses_the_models_of_the_store_and_says_so(store: Store, open_model: OpenModel) -> None:
    store.adopt_space(space(32))
    opened = open_model(embedder_model="48")
    assert opened.model.wait(30)
    assert opened.dims() == 32
    assert "hash (32 dimensions)" in opened.model.state
    assert "not from hash (48 dimensions)" in opened.model.state
    assert "perdure model switch" in opened.model.state
    assert uncalibrated(store) == space(32)


def test_a_model_that_cannot_be_made_here_leaves_words(store: Store, open_model: OpenModel) -> None:
    theirs = spaces.VectorSpace("theirs", 32, {"model": "theirs", "settings": {"embedder": "theirs"}})
    store.adopt_space(theirs)
    add(store)
    opened = open_model()
    assert not opened.model.wait(30)
    assert opened.model.state.startswith("keyword only: this store's vectors are from model theirs (32 dimensions)")
    assert legs(store, opened.model) == [(TEXT, LEXICAL)]
    assert store.space() == theirs


def test_a_recipe_that_makes_something_else_now_is_not_used(store: Store, open_model: OpenModel) -> None:
    recipe = {"embedder": "hash", "embedder_model": "32"}
    store.adopt_space(spaces.VectorSpace("former", 32, {"model": "hash", "settings": recipe}))
    opened = open_model()
    assert not opened.model.wait(30)
    assert opened.dims() is None


def test_the_store_notes_how_its_model_is_made(store: Store, open_model: OpenModel) -> None:
    bare = space(32)
    description = {name: value for name, value in bare.description.items() if name != "settings"}
    store.adopt_space(spaces.VectorSpace(bare.id, bare.dims, description))
    assert open_model(embedder_model="32").model.wait(30)
    assert uncalibrated(store) == bare


def test_it_follows_a_switch_and_goes_by_words_meanwhile(store: Store, open_model: OpenModel) -> None:
    store.adopt_space(space(32))
    fact_id = add(store)
    hold = threading.Event()
    hold.set()
    opened = open_model(embedder_model="32", hold=hold)
    assert opened.model.wait(30)
    assert opened.dims() == 32
    hold.clear()
    change(store, 48)
    assert legs(store, opened.model) == [(TEXT, LEXICAL)]
    assert opened.dims() is None
    assert opened.model.embedder() is None
    assert opened.model.state.startswith("loading: this store's vectors are now from model hash (48 dimensions)")
    hold.set()
    assert opened.model.wait(30)
    assert opened.dims() == 48
    assert TEXT in [text for text, _ in legs(store, opened.model)]
    leg = opened.model.leg()
    assert leg is not None
    [hit] = leg.index.search(leg.embedder.embed([TEXT])[0], View(Audience.of(), store.clock.now()), 5)
    assert (hit.id, round(hit.cosine, 5)) == (fact_id, 1.0)


def test_it_follows_the_way_back(store: Store, open_model: OpenModel) -> None:
    store.adopt_space(space(32))
    add(store)
    change(store, 48)
    opened = open_model(embedder_model="48")
    assert opened.model.wait(30)
    assert opened.model.state == "ready: hash"
    with store.database.write() as connection:
        spaces.rollback(connection, store.clock.now())
    assert opened.model.wait(30)
    assert opened.dims() == 32
    assert opened.ready[0] == "ready: hash"
    assert opened.ready[1].startswith("ready: hash; this store's vectors are from model hash (32 dimensions)")


class TestSwitchByItself:
    def test_only_if_it_is_allowed(self, store: Store, open_model: OpenModel) -> None:
        store.adopt_space(space(32))
        opened = open_model(embedder_model="48")
        opened.model.wait(30)
        with store.database.read() as connection:
            assert spaces.building(connection) is None

    def test_it_begins_and_has_the_worker_started(self, store: Store, open_model: OpenModel) -> None:
        store.adopt_space(space(32))
        add(store)
        opened = open_model(embedder_model="48", auto=True)
        assert opened.model.wait(30), "the former model answers meanwhile"
        assert opened.dims() == 32
        opened.model.close()
        assert opened.switching == ["start"]
        assert opened.model.state.endswith("switching to hash (48 dimensions): 0 of 1 memory")

    def test_the_same_model_with_other_files_needs_no_word(self, store: Store, open_model: OpenModel) -> None:
        store.adopt_space(with_other_files(space(32)))
        add(store)
        opened = open_model(embedder_model="32")
        assert not opened.model.wait(30), "vectors of other files must not be compared"
        assert opened.model.state == (
            "keyword only: the files of model hash (32 dimensions) have changed, so every memory is re-embedded "
            "automatically; switching to hash (32 dimensions): 0 of 1 memory"
        )
        assert legs(store, opened.model) == [(TEXT, LEXICAL)]
        assert opened.switching == ["start"]
        build(store)
        assert opened.model.wait(30)
        assert uncalibrated(store) == space(32)
        with store.database.read() as connection:
            assert [state.vectors for state in spaces.every(connection) if state.space.id == space(32).id] == [1]

    def test_the_same_model_with_other_files_is_not_gone_back_to(self, store: Store, open_model: OpenModel) -> None:
        former = with_other_files(space(32))
        store.adopt_space(former)
        change(store, 32)
        with store.database.write() as connection:
            spaces.rollback(connection, store.clock.now())
        opened = open_model(embedder_model="32")
        assert not opened.model.wait(30)
        assert opened.switching == []
        assert "perdure model switch" in opened.model.state

    def test_what_was_rolled_back_stays_so(self, store: Store, open_model: OpenModel) -> None:
        store.adopt_space(space(32))
        change(store, 48)
        with store.database.write() as connection:
            spaces.rollback(connection, store.clock.now())
        opened = open_model(embedder_model="48", auto=True)
        assert opened.model.wait(30)
        opened.model.close()
        assert opened.switching == []
        assert uncalibrated(store) == space(32)


def test_a_switch_that_was_begun_goes_on_at_the_next_start(store: Store, open_model: OpenModel) -> None:
    store.adopt_space(space(32))
    with store.database.write() as connection:
        spaces.begin(connection, space(48), store.clock.now())
        spaces.report(connection, "the model is away")
    opened = open_model(embedder_model="32")
    assert opened.model.wait(30)
    opened.model.close()
    assert opened.switching == ["start"]
    assert opened.model.state.endswith("0 of 0 memories, stalled: the model is away")


def test_without_an_embedder_nothing_is_loaded_or_followed(store: Store, open_model: OpenModel) -> None:
    store.adopt_space(space(32))
    opened = open_model(embedder="none")
    assert not opened.model.wait(30)
    change(store, 48)
    assert opened.dims() is None
    assert opened.model.state == "disabled by setting"
    recipes = Recipes(Settings.load({"embedder": "none"}, environ={}), EXTENSIONS)
    assert recipes.own() is None
    assert recipes.embedder(space(48)) is None


def test_closed_it_follows_no_more(store: Store, open_model: OpenModel) -> None:
    opened = open_model(embedder_model="32")
    assert opened.model.wait(30)
    opened.model.close()
    change(store, 48)
    assert opened.dims() == 32
    assert opened.ready == ["ready: hash"]


def test_the_hash_embedder_takes_its_dimensions(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedder="hash", embedder_model="256") as memory:
        assert memory.ready()
        vector = memory.admin.embed("heron")
        assert vector is not None
        assert len(vector) == 256
    with pytest.raises(SettingsError, match="many"):
        Recipes(Settings.load({"embedder": "hash", "embedder_model": "many"}, environ={}), EXTENSIONS).own()


def test_a_memory_goes_on_through_a_switch(tmp_path: Path) -> None:
    """Whatever this process may load, what is stored and recalled after the switch is right."""
    with Memory.open(tmp_path, embedder="hash", embedder_model="32") as memory:
        assert memory.ready()
        memory.store(TEXT)
        store = Store(tmp_path)
        change(store, 48)
        memory.ready()
        fresh = memory.store("The kestrel database is live")
        recall = memory.recall("Which database is staging?")
        assert recall is not None
        assert recall.items[0].text == TEXT
        with store.database.read() as connection:
            rows = run(connection, "SELECT e.dims, length(v.vector), e.state FROM vectors v JOIN embeddings e ON e.id ="
                       " v.embedding_id WHERE v.fact_id = ?", (fresh.id,))  # fmt: skip
        store.close()
    assert all(row == (48, 4 * 48, "active") for row in rows)


def test_the_first_recall_waits_for_the_model_and_no_other_one(store: Store) -> None:
    waited: list[float] = []
    recaller = Recaller(store, RecallOptions(deadline=4.0), lambda: None, store.clock, loaded=waited.append)
    _, receipt = recaller.recall("Which database is staging?", Audience.of())
    recaller.recall("Which database is staging?", Audience.of())
    recaller.close()
    assert waited == [3.0]
    assert receipt.states["lance"] == "no model, or not loaded yet"


def test_a_store_of_the_former_default_model_goes_over_by_itself(store: Store, open_model: OpenModel) -> None:
    former, new = space(32), space(48)
    assert store.adopt_space(former)
    add(store)
    opened = open_model(embedder_model="48", successors={former.id: new.id})
    assert opened.model.wait(30)
    assert opened.dims() == 32, "the former one answers until all have a vector of the new one"
    until(lambda: opened.switching == ["start"])
    build(store)
    until(lambda: opened.model.wait(30) and opened.dims() == 48)
    assert TEXT in [text for text, _ in legs(store, opened.model)]
    with store.database.write() as connection:
        assert spaces.rollback(connection, store.clock.now()).id == former.id
    until(lambda: opened.model.wait(30) and opened.dims() == 32)
    opened.model.close()
    assert uncalibrated(store) == former, "who went back is not taken along again"
    assert opened.switching == ["start"]


def test_nobody_is_taken_along_to_a_model_that_succeeds_another_one(store: Store, open_model: OpenModel) -> None:
    assert store.adopt_space(space(32))
    opened = open_model(embedder_model="48", successors={space(16).id: space(48).id, space(32).id: space(64).id})
    assert opened.model.wait(30)
    with store.database.read() as connection:
        assert spaces.building(connection) is None
