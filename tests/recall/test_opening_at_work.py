"""What a coding host and a group are told when a session begins: the work, and of what is private what they know."""

from __future__ import annotations

import pytest

from perdure.api.memory import Memory
from perdure.errors import SettingsError
from perdure.hooks.types import TurnContext
from tests.kit import OpenMemory

RULE = "Never push to main without a review."
TOOL = "CI runs on GitHub Actions, and the release job needs the signing key."
PROJECT = "The API returns all dates in ISO 8601, decided in March."
PILLS = "I take 50 mg of sertraline every morning for my depression."
DEBT = "I owe my brother 2,000 euros, and the mortgage runs until 2051."
CHILD = "My son Leo is six and is afraid of dogs at his school."
WORK, PRIVATE = {RULE, TOOL, PROJECT}, {PILLS, DEBT, CHILD}
CODE = "claude-code"


def opened(open_memory: OpenMemory, **settings: object) -> Memory:
    memory = open_memory(embedder="auto", **settings)
    memory.ready()
    for text in (*sorted(WORK), *sorted(PRIVATE)):
        memory.store(text)
    return memory


def begun(memory: Memory, host: str = CODE, **context: str) -> set[str]:
    found = memory.turns.opening(TurnContext(host=host, **context))  # type: ignore[arg-type]
    return {item.text for item in found.items} if found else set()


def test_a_coding_host_is_told_the_work_alone_and_others_all(open_memory: OpenMemory) -> None:
    memory = opened(open_memory)
    found = memory.turns.opening(TurnContext(host=CODE))
    assert found is not None
    assert {item.text for item in found.items} == WORK
    assert found.more == ""  # no count, and no topic, of what is withheld
    assert begun(memory, "openclaw") == WORK | PRIVATE
    looked = memory.turns.opening(host=CODE)
    assert looked is not None
    assert {item.text for item in looked.items} == WORK


def test_the_last_line_in_a_coding_host_names_no_private_topic(open_memory: OpenMemory) -> None:
    memory = opened(open_memory, opening_tokens=130)
    more = {
        "Branches are named after their ticket.", "Commit subjects are imperative.",
        "The staging server is called heron and runs Debian.",
    }  # fmt: skip
    for text in sorted(more):
        memory.store(text)
    here, elsewhere = memory.turns.opening(host=CODE), memory.turns.opening(host="openclaw")
    assert here is not None
    assert elsewhere is not None
    assert here.more.startswith(f"{len(WORK | more) - len(here.items)} more")
    assert elsewhere.more.startswith(f"{len(WORK | PRIVATE | more) - len(elsewhere.items)} more")
    assert not {"health", "money", "children"} & set(here.more.replace(",", " ").split())
    assert {"health", "money", "children"} & set(elsewhere.more.replace(",", " ").split())


def test_what_was_told_in_a_coding_host_comes_up_there_and_in_no_other(open_memory: OpenMemory) -> None:
    memory = opened(open_memory)
    said = "I have had type 2 diabetes since 2014 and inject insulin."
    memory.turns.after([{"role": "user", "content": said}], True, TurnContext(session_id="a", host=CODE))
    assert memory.settle()
    assert {text for text in begun(memory) if "diabetes" in text}
    assert begun(memory, "codex") == WORK
    # Said once more in another, it was told there as well.
    memory.turns.after([{"role": "user", "content": said}], True, TurnContext(session_id="b", host="codex"))
    assert memory.settle()
    assert {text for text in begun(memory, "codex") if "diabetes" in text}


def test_what_is_pinned_comes_up_in_every_host(open_memory: OpenMemory) -> None:
    memory = opened(open_memory)
    memory.pin(next(fact.id for fact in memory.admin.list() if fact.text == PILLS))
    assert begun(memory) == WORK | {PILLS}


def test_a_host_that_the_settings_name_is_told_all(open_memory: OpenMemory) -> None:
    memory = opened(open_memory, private_hosts=(CODE,))
    assert begun(memory) == WORK | PRIVATE
    assert begun(memory, "codex") == WORK


def test_the_settings_name_coding_hosts_alone(open_memory: OpenMemory) -> None:
    with pytest.raises(SettingsError, match="claude-code"):
        open_memory(private_hosts=("word",))


def test_a_group_is_told_nothing_private_whatever_is_pinned(open_memory: OpenMemory) -> None:
    memory = opened(open_memory, recall_in_groups=True)
    memory.pin(next(fact.id for fact in memory.admin.list() if fact.text == PILLS))
    assert begun(memory, "openclaw", chat="group") == WORK


def test_an_instruction_is_withheld_only_if_it_is_likeliest_private(open_memory: OpenMemory) -> None:
    memory = open_memory(embedder="auto")
    memory.ready()
    answer, pork = "Always answer in German.", "I never eat pork, and always ask what is in a dish."
    for text in (answer, pork):
        memory.store(text, category="preference")
    assert begun(memory) == {answer}


def test_a_hook_that_has_no_model_goes_by_the_vectors_that_are_there(open_memory: OpenMemory) -> None:
    opened(open_memory).close()
    assert begun(open_memory(embedder="none")) == WORK


def test_without_vectors_a_coding_host_is_told_what_is_plainly_a_rule_or_of_the_project(
    open_memory: OpenMemory,
) -> None:
    memory = open_memory(embedder="hash", scopes=["project:boat"])
    rule, build = "I always write tests first.", "The launch is built with cmake."
    for text in (PILLS, DEBT, "I prefer to take my insulin at eight."):
        memory.store(text)
    memory.store(rule, category="preference")
    memory.store(build, scope="project:boat")
    assert begun(memory, project="project:boat") == {rule, build}
    assert begun(memory) == {rule}


@pytest.mark.parametrize("embedder", ["auto", "hash"])
def test_how_replies_should_be_opens_every_host_whatever_words_say_it(open_memory: OpenMemory, embedder: str) -> None:
    memory = open_memory(embedder=embedder)
    if embedder == "auto":
        memory.ready()
    how = {
        "Answer briefly, in British English.", "Please answer in German.", "Be brief.", "Antworte kurz, auf Deutsch.",
        "Réponds toujours en français.", "Keep your answers under ten lines.",
    }  # fmt: skip
    for text in sorted(how):
        memory.store(text)
    memory.store(PILLS)
    found = memory.turns.opening(TurnContext(host=CODE))
    assert found is not None
    assert {(item.text, item.why) for item in found.items} == {(text, "rule") for text in how}


def test_how_replies_should_be_is_told_in_one_repository_for_all(open_memory: OpenMemory) -> None:
    memory = open_memory(embedder="auto")
    memory.ready()
    how = "Always answer briefly, in British English."
    for host, project in ((CODE, "project:one"), ("codex", "project:two")):
        context = TurnContext(session_id=host, host=host, project=project)
        memory.turns.after([{"role": "user", "content": how}], True, context)
        assert memory.settle()
        assert begun(memory, project="project:three") == {how}


def test_a_rule_of_the_users_body_faith_money_or_relations_is_no_plain_rule(open_memory: OpenMemory) -> None:
    memory = open_memory(embedder="hash", opening_tokens=2_000)
    plain = {"Always use pnpm.", "Never leave technical debt behind."}
    private = {
        "Never mention my epilepsy to anybody.", "Always remind me to take my insulin at noon.",
        "Never tell my colleagues that I have HIV.", "Never tell anybody about my divorce.",
        "Never tell my boss that I am pregnant.", "Always hide my debts from Lena.",
        "Never schedule anything during my chemotherapy.", "Never mention that I go to AA meetings.",
        "Always call me Anna, not Tom: I am trans.", "Never schedule anything while I am at church.",
    }  # fmt: skip
    for text in sorted(plain | private):
        memory.store(text, entity="convention", key=str(hash(text)), category="preference")
    assert begun(memory) == plain
