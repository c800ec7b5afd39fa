"""What is said in a repository belongs to it, but for what is plainly personal or said for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perdure import Memory
from perdure.capture.describe import is_own, slot_of
from perdure.capture.language import language_of
from perdure.hooks.types import TurnContext
from perdure.store.fact import Fact
from tests.kit import for_each

A, B, C = "project:client-a", "project:client-b", "project:client-c"

OWN = (
    "I'm allergic to peanuts.", "My name is Sam.", "Call me Sam.", "My birthday is 9 March.", "I live in Ghent.",
    "We live in Leeds.", "My wife is called Anna.", "Our dog is called Biscuit.", "I have two kids.", "I'm a nurse.",
    "I work at Stripe.", "I'm vegetarian.", "I don't eat meat.", "I have diabetes.", "My dentist is Dr Ruiz.",
    "Leah is allergic to penicillin.", "Oh and he's coeliac so no normal cake", "My favourite editor is Helix.",
    "Always answer in British English.", "Keep your answers short.", "Please reply in German from now on.",
    "I prefer short answers.", "Never use emojis.", "In all my projects I use ruff.", "We use uv everywhere.",
    "Always squash, for every repo.", "Wherever I work I squash.", "We squash in every repository.", "I speak French.",
    "My phone number is 07700 900999.", "My email is sam@example.org.",
    "Ich bin allergisch gegen Nüsse.", "Meine Frau heißt Anna.",
    "Antworte immer auf Deutsch.", "Je m'appelle Sam.", "Mieszkam w Krakowie i lubię herbatę.", "أنا أعيش في القاهرة.",
    "मैं दिल्ली में रहता हूँ।", "我对花生过敏。", "妻の名前は花子です。", "Tengo dos hijos y mi hija es vegetariana.",
    "Answer briefly, in British English.", "From now on, be brief.", "Antworte immer kurz, auf Deutsch.",
)  # fmt: skip
OF_THE_REPOSITORY = (
    "We use uv for everything here.", "We run them against a real postgres.", "Prod is read only from my laptop.",
    "We moved from Buildkite to GitHub Actions.", "I prefer tabs over spaces.", "I want commit messages in English.",
    "I hate mocks.", "My service is called heron.", "My tests run on port 5433.", "The staging database is heron.",
    "We deploy on Fridays.", "The build takes 5 min.", "Never use emojis in commit messages.",
    "The user's address is in the table contacts.", "Use UTC everywhere in this repo.", "My home directory is /srv.",
    "Our child process is called worker.", "I renamed the staging db to egret.", "Wir deployen freitags.",
    "Ich mag keine Tabs.", "Je préfère les onglets.", "我们周五部署。", "デプロイは大丈夫な金曜日だけです。",
    "Keep it under 20 degrees.", "Reply to customers in a day.", "Answer the door in the app.",
)  # fmt: skip


@for_each(("text", "own"), [*((text, True) for text in OWN), *((text, False) for text in OF_THE_REPOSITORY)])
def test_what_goes_with_the_user_out_of_a_repository(text: str, own: bool) -> None:
    assert is_own(text, slot_of(text, language_of(text))) is own


def say(memory: Memory, text: str, project: str | None) -> None:
    context = TurnContext(session_id=f"s-{project}", project=project)
    memory.turns.after([{"role": "user", "content": text}], True, context)
    memory.settle()


def asked(memory: Memory, prompt: str, project: str | None, session: str = "new") -> str:
    recall = memory.turns.before(prompt, TurnContext(session_id=session, project=project))
    return recall.block if recall else ""


def test_a_project_s_memory_stays_silent_in_another(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        assert memory.ready()
        say(memory, "The staging database is called heron.", A)
        assert "heron" in asked(memory, "What is the staging database called?", A)
        assert "heron" not in asked(memory, "What is the staging database called?", B)
        assert "heron" not in asked(memory, "What is the staging database called?", None)


def test_what_is_said_of_the_user_in_a_project_goes_with_them(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        assert memory.ready()
        say(memory, "My favourite editor is Helix.", A)
        assert "Helix" in asked(memory, "Which editor is my favourite?", B)


def test_a_project_s_conversation_stays_silent_in_another(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        say(memory, "Let us look at why the heron cluster drops its connections at night.", A)
        memory.turns.session_end(TurnContext(session_id=f"s-{A}", project=A))
        memory.settle()
    for project, found in ((A, True), (B, False)):
        with Memory.open(tmp_path, scopes=[project]) as memory:
            assert bool(memory.files.search("heron cluster connections").results) is found


def waiting(memory: Memory) -> Sequence[Fact]:
    return memory.admin.review()


def test_a_team_s_ways_said_in_a_repository_stay_in_it(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        assert memory.ready()
        for text in ("We use uv for everything here.", "We moved from Buildkite to GitHub Actions."):
            say(memory, text, A)
        assert memory.admin.list() == []
        assert "uv" in asked(memory, "What do we use for everything?", A)
        assert "uv" not in asked(memory, "What do we use for everything?", B)


def test_what_is_said_the_same_way_in_a_second_repository_is_offered_as_the_user_s(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        assert memory.ready()
        for _ in range(2):
            say(memory, "The linter is called ruff.", A)
        assert waiting(memory) == []
        say(memory, "The linter is called ruff.", B)
        [offered] = waiting(memory)
        assert offered.scope == "user"
        assert "another repository" in offered.metadata["review"]
        assert "ruff" not in asked(memory, "What is the linter called?", C)
        say(memory, "The linter is called ruff.", C)
        assert len(waiting(memory)) == 1
        memory.admin.approve(offered.id)
        assert asked(memory, "What is the linter called?", "project:fourth", "s-4").count("ruff") == 1
        assert asked(memory, "What is the linter called?", A, "s-5").count("ruff") == 1


def test_what_was_rejected_once_is_not_offered_again(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        for project in (A, B):
            say(memory, "The linter is called ruff.", project)
        memory.admin.reject(waiting(memory)[0].id)
        say(memory, "The linter is called ruff.", C)
        assert waiting(memory) == []


def test_a_named_user_is_offered_nothing_that_others_have_said_in_their_repository(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        say(memory, "The linter is called ruff.", A)
        context = TurnContext(session_id="s-eva", user_id="eva", project=B)
        memory.turns.after([{"role": "user", "content": "The linter is called ruff."}], True, context)
        memory.settle()
        assert waiting(memory) == []
    with Memory.open(tmp_path, user="eva") as memory:
        assert waiting(memory) == []
