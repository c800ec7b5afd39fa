"""Category, slot, reason, lifetime and tags of a statement."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.capture.describe import MAX_FIELD, Description, compile_categories, describe, extract_tags, importance
from perdure.capture.slots import Slot
from perdure.capture.statements import Statement, cue_of
from perdure.errors import SettingsError
from perdure.store.fact import CATEGORIES
from tests.kit import for_each


def described(sentence: str) -> Description:
    return describe(Statement(sentence, cue_of(sentence) or "stored"))


@for_each(
    ("sentence", "entity", "key", "value"),
    [
        ("My name is Robert Jansen.", "user", "name", "Robert Jansen"),
        ("Call me Bob.", "user", "name", "Bob"),
        ("My favourite colour is teal.", "user", "favourite colour", "teal"),
        ("My new phone number is +43 660 1234567.", "user", "phone", "+43 660 1234567"),
        ("Call the office at +43 660 1234567 in emergencies.", "office", "phone", "+43 660 1234567"),
        ("You can reach me at robert@example.com.", "user", "email", "robert@example.com"),
        ("I live in Graz.", "user", "location", "Graz"),
        ("I moved to Lisbon.", "user", "location", "Lisbon"),
        ("We're based in Wels.", "user", "location", "Wels"),
        ("I was born on 3 May 1984.", "user", "birthday", "3 May 1984"),
        ("I was born in 1981 in Linz.", "user", "birthday", "1981"),
        ("I was born in Linz in 1981.", "user", "birthday", "1981"),
        ("We will use pnpm from now on.", "convention", "use pnpm", "from now on"),
        ("I live in Linz from now on.", "user", "location", "Linz"),
        ("My sister moved to Kirchdorf.", "sister", "location", "Kirchdorf"),
        ("We moved to a bigger flat.", "user", "location", "a bigger flat"),
        ("My birthday is 3 May.", "user", "birthday", "3 May"),
        ("My sister's birthday is 3 May.", "sister", "birthday", "3 May"),
        ("Anna's manager is Lukas.", "Anna", "manager", "Lukas"),
        ("My dog is called Fido.", "dog", "name", "Fido"),
        ("Our standup starts at 9:30.", "user", "standup", "9:30"),
        ("My dentist appointment was moved to Friday.", "user", "dentist appointment", "Friday"),
        ("I'm 41 years old.", "user", "age", "41"),
        ("I'm allergic to peanuts.", "user", "allergy", "peanuts"),
        ("I work at Siemens.", "user", "employer", "Siemens"),
        ("I now work as a pilot.", "user", "job", "pilot"),
        ("I love hiking in the Alps.", "user", "love", "hiking in the Alps"),
        ("I prefer tea over coffee because it calms me.", "user", "prefer", "tea over coffee"),
        ("We went with Terraform instead of Pulumi.", "decision", "Terraform over Pulumi", "Terraform"),
        ("We decided to use FastAPI because it is async.", "decision", "use FastAPI", "use FastAPI"),
        ("Always use tabs in Makefiles.", "convention", "use tabs in Makefiles", "always"),
        ("Never deploy on Fridays.", "convention", "deploy on Fridays", "never"),
        ("I have two kids.", "user", "have", "two kids"),
        ("I don't like cilantro.", "user", "dislike", "cilantro"),
        ("I can't bear horror films.", "user", "hate", "horror films"),
        ("I'd rather have tea than coffee.", "user", "prefer", "tea over coffee"),
        ("My brother is a pilot.", "brother", "job", "pilot"),
        ("My mother turned 70 last week.", "mother", "age", "70"),
        ("My wife doesn't eat pork.", "wife", "diet", "doesn't eat pork"),
        ("We're based in Bergen, Norway.", "user", "location", "Bergen, Norway"),
        ("I speak Dutch, French and a bit of Polish.", "user", "language", "Dutch, French and a bit of Polish"),
        ("I grew up in Ghent.", "user", "hometown", "Ghent"),
        ("We switched from Jenkins to Buildkite.", "decision", "Buildkite over Jenkins", "Buildkite"),
        ("We swapped Slack for Mattermost.", "decision", "Mattermost over Slack", "Mattermost"),
        ("We settled on weekly demos.", "decision", "weekly demos", "weekly demos"),
        ("Don't ever share my calendar.", "convention", "share my calendar", "never"),
        ("Our staging server runs Debian.", "staging server", "run", "Debian"),
        ("The API gateway uses Kong.", "API gateway", "use", "Kong"),
        ("Dora's phone number is 555-0199.", "Dora", "phone", "555-0199"),
        ("I don't live in Bremen any more, I moved to Kassel.", "user", "location", "Kassel"),
        ("From now on answer in German.", "convention", "answer in German", "from now on"),
        ("From now on my job is to test.", "convention", "my job is to test", "from now on"),
        ("From now on I work at night.", "convention", "work at night", "from now on"),
        ("From now on your name is Max.", "convention", "your name is Max", "from now on"),
        ("From now on call me Max.", "user", "name", "Max"),
        ("From now on I work at Siemens.", "user", "employer", "Siemens"),
        ("From now on my sister lives in Oslo.", "sister", "location", "Oslo"),
        ("I was born on the third of May.", "user", "birthday", "the third of May"),
        ("I was born on the twenty-first of June in Graz.", "user", "birthday", "the twenty-first of June"),
    ],
)
def test_slots(sentence: str, entity: str, key: str, value: str) -> None:
    slot = described(sentence).slot
    assert slot is not None
    assert (slot.entity, slot.key, slot.value) == (entity, key, value)


@for_each(
    "sentence",
    [
        "I was born in Linz.",
        "I was born on a farm.",
        "I was born on the third floor.",
        "We moved to Revit.",
        "We moved to Revit from Tekla.",
        "We moved to the Berlin office.",
        "We moved to Phoenix Svelte.",
        "I moved to Neovim.",
        "I moved to Emacs for work.",
        "I moved to TypeScript.",
        "I moved to Marketing.",
        "I moved to Dr. Weber.",
        "I moved to a new laptop.",
        "Our team moved to Slack.",
        "We're moving to Kubernetes.",
        "My team moved to Slack.",
        "I graduated from TU Wien in 2007.",
        "Standup is 9:40.",
        "It is raining in Graz.",
        "I don't live in Graz any more.",
        "My brother is tired.",
        "From 2009 to 2013 I lived in Leuven.",
    ],
)
def test_a_slot_is_not_guessed(sentence: str) -> None:
    assert described(sentence).slot is None


@pytest.mark.parametrize(
    ("sentence", "entity", "key", "value"),
    [
        ("I live in Graz now.", "user", "location", "Graz"),
        ("I moved to Lisbon last month.", "user", "location", "Lisbon"),
        ("I moved to Oslo from Bergen.", "user", "location", "Oslo"),
        ("I moved to Berlin for work.", "user", "location", "Berlin"),
        ("I moved to Munich to study.", "user", "location", "Munich"),
        ("We moved to Prague two years ago.", "user", "location", "Prague"),
        ("I moved to Oslo and bought a boat.", "user", "location", "Oslo"),
        ("I moved to Berlin-Kreuzberg.", "user", "location", "Berlin-Kreuzberg"),
        ("We moved to West Berlin last week.", "user", "location", "West Berlin"),
        ("I moved to Timbuktu.", "user", "location", "Timbuktu"),
        ("I moved to Steyr.", "user", "location", "Steyr"),
        ("I moved to St. Gallen.", "user", "location", "St. Gallen"),
        ("I moved to Stratford-upon-Avon after school.", "user", "location", "Stratford-upon-Avon"),
        ("I work at Siemens as a data engineer.", "user", "employer", "Siemens"),
        ("My sister moved to Berlin.", "sister", "location", "Berlin"),
    ],
)
def test_slots_hold_the_bare_value(sentence: str, entity: str, key: str, value: str) -> None:
    slot = described(sentence).slot
    assert slot is not None
    assert (slot.entity, slot.key, slot.value) == (entity, key, value)


@pytest.mark.parametrize(
    ("sentence", "category"),
    [
        # A decision that is worded as a preference is a decision.
        ("I chose tea over coffee because I like it more.", "decision"),
        ("Every service gets a runbook.", "decision"),
        ("We decided that we like FastAPI, named after speed.", "decision"),
        ("Always use my favourite formatter.", "decision"),
        # A preference that names something is a preference.
        ("I like the bar that is called Heron.", "preference"),
        ("My sister hates heights.", "preference"),
        ("I'm vegan.", "preference"),
        # An entity that is something is an entity.
        ("My name is Robert Jansen.", "entity"),
        ("My e-mail is robert@example.com.", "entity"),
        ("I live in Graz.", "fact"),
        ("My birthday is 3 May.", "fact"),
        ("Remember that milk!", "other"),
    ],
)
def test_the_first_category_that_fits_wins(sentence: str, category: str) -> None:
    assert described(sentence).category == category


@pytest.mark.parametrize(
    ("sentence", "category"),
    [
        ("My sourdough comes out dense every time.", "fact"),
        ("She beats me at chess every time.", "fact"),
        ("I get a headache every time.", "fact"),
        ("O meu pão sai denso sempre.", "fact"),
        ("Мой хлеб всегда получается плотным.", "fact"),
        ("Run the linter every time.", "decision"),
        ("My commits must be signed every time.", "decision"),
        ("Meine Berichte müssen immer auf Deutsch sein.", "decision"),
    ],
)
def test_what_happens_again_and_again_is_no_rule(sentence: str, category: str) -> None:
    assert describe(Statement(sentence, "convention")).category == category


def test_a_switch_is_a_decision() -> None:
    assert described("We switched from Jenkins to GitHub Actions.").category == "decision"


@pytest.mark.parametrize(
    ("sentence", "why"),
    [
        ("We chose tea because it calms everybody.", "it calms everybody"),
        ("I prefer trains since planes are loud.", "planes are loud"),
        ("I use a mirror so that builds are fast.", "builds are fast"),
        ("I live in Graz.", None),
    ],
)
def test_the_reason_is_what_was_said(sentence: str, why: str | None) -> None:
    assert described(sentence).why == why


def test_a_job_is_no_reason() -> None:
    assert described("I work at Siemens as a data engineer.").why is None


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("My Postgres runs in Docker.", ("postgres", "docker")),
        ("My k8s cluster uses OAuth2.", ("auth", "kubernetes")),
        ("My home assistant talks Zigbee and Z-Wave.", ("homeassistant", "zigbee", "z-wave")),
        ("My API key is in the vault.", ("api",)),
        ("I have a happy dockworker.", ()),
    ],
)
def test_tags_are_whole_words(text: str, tags: tuple[str, ...]) -> None:
    assert extract_tags(text) == tags


def test_the_slots_entity_counts_for_tags() -> None:
    assert extract_tags("My docker's port is 80", "docker") == ("docker",)


@settings(max_examples=100)
@given(st.text(max_size=300), st.sampled_from(["factual", "convention", "remember", "of an extension"]))
def test_any_text_is_described_within_bounds(text: str, cue: str) -> None:
    found = describe(Statement(text, cue))
    assert found.category in CATEGORIES
    assert len(found.why or "") <= MAX_FIELD
    if found.slot is not None:
        assert found.slot.entity
        assert found.slot.key


def test_own_categories_come_first() -> None:
    own = compile_categories({"health": r"\bblood\b"})
    assert describe(Statement("My blood type is O negative.", "stored"), own).category == "health"
    assert describe(Statement("I live in Graz.", "stored"), own).category == "fact"


@pytest.mark.parametrize("own", [{"health": "("}, {"": "x"}, {"h" * 41: "x"}])
def test_an_own_category_that_cannot_work_is_refused(own: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="category"):
        compile_categories(own)


@pytest.mark.parametrize(
    "sentence",
    [
        "the heron release train leaves from platform nine",
        "the heron release train never leaves from platform nine",
        "Our deadline has slipped.",
    ],
)
def test_a_noun_that_could_be_a_verb_makes_no_slot(sentence: str) -> None:
    assert described(sentence).slot is None


@pytest.mark.parametrize(
    ("sentence", "entity", "key", "value"),
    [
        ("Our servers use Debian.", "servers", "use", "Debian"),
        ("I'm from Porto.", "user", "hometown", "Porto"),
        ("My sister was born and raised in Oslo.", "sister", "hometown", "Oslo"),
        ("The vet's number is 555-0172.", "vet", "phone", "555-0172"),
        ("Our wedding is the 14th, not the 15th.", "user", "wedding", "the 14th"),
        ("I'd like a bigger desk.", "user", "want", "a bigger desk"),
        ("The codename for the merger is Bluebell.", "merger", "codename", "Bluebell"),
    ],
)
def test_slots_by_grammar(sentence: str, entity: str, key: str, value: str) -> None:
    assert described(sentence).slot == Slot(entity, key, value)


def test_a_preference_over_something_is_no_decision() -> None:
    assert described("I prefer tabs over spaces.").category == "preference"


@given(st.sampled_from(["decision", "preference", "entity", "fact", "other"]), st.floats(0, 1))
def test_importance_keeps_its_bounds(category: str, confidence: float) -> None:
    assert 0.5 <= importance(category, Statement("x", "remember", confidence)) <= 0.9
    assert importance(category, Statement("x", "fact", confidence)) <= importance("decision", Statement("x", "fact"))


def test_a_noun_that_is_only_a_qualifier_is_no_slot() -> None:
    assert describe(Statement("The present is a red bike.", "stored")).slot is None
