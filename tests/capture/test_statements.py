"""Statements worth keeping, told from talk."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.capture.statements import Statement, capital, cue_of, statements
from perdure.speech.orders import asked_for
from tests.kit import for_each

KEPT = [
    ("My name is Robert Jansen.", "entity"),
    ("You can reach me at robert@example.com.", "entity"),
    ("My phone number is +43 660 1234567.", "entity"),
    ("My dog is called Fido.", "entity"),
    ("The staging database is called heron.", "entity"),
    ("I live in Graz now.", "factual"),
    ("I moved to Lisbon last month.", "factual"),
    ("I was born on 3 May 1984.", "factual"),
    ("I'm 41 years old.", "factual"),
    ("I work at Siemens as a data engineer.", "factual"),
    ("I have two kids, Mia and Ben.", "factual"),
    ("I speak Czech and a bit of Swedish.", "factual"),
    ("I graduated from TU Wien in 2007.", "factual"),
    ("I usually run 10 km on Saturdays.", "factual"),
    ("My wife works at the hospital.", "factual"),
    ("My sister's birthday is 3 May.", "factual"),
    ("Our standup starts at 9:30.", "factual"),
    ("Anna's manager is Lukas.", "factual"),
    ("The deadline for the report is 12 December.", "factual"),
    ("I prefer PostgreSQL over MySQL because of JSONB.", "preference"),
    ("I don't like cilantro.", "preference"),
    ("I hate meetings before 10.", "preference"),
    ("I love hiking in the Alps.", "preference"),
    ("I can't stand cold coffee.", "preference"),
    ("My favourite colour is teal.", "preference"),
    ("I'm allergic to peanuts.", "preference"),
    ("I'm a vegetarian.", "preference"),
    ("We decided to use FastAPI for the backend because it is async.", "decision"),
    ("We went with Terraform instead of Pulumi.", "decision"),
    ("We switched from Jenkins to GitHub Actions.", "decision"),
    ("We agreed on trunk-based development.", "decision"),
    ("Always use tabs in Makefiles.", "convention"),
    ("Never deploy on Fridays.", "convention"),
    ("From now on answer in German.", "convention"),
    ("By default, format code with ruff.", "convention"),
    ("Remember that the garage code word is Heron.", "remember"),
    ("Please remember that my flight leaves at 7.", "remember"),
    ("Note that the rate limit is 500 per minute.", "remember"),
    ("Don't forget that the plumber comes on Tuesday.", "remember"),
    ("Ich wohne seit drei Jahren in Wien.", "factual"),
    ("Mein Lieblingsessen ist Gulasch mit Knödeln.", "preference"),
    ("Jag bor i Malmö med min familj.", "factual"),
    ("Vivo en Madrid con mi esposa y mi perro.", "factual"),
    ("J'habite à Lyon avec mes enfants.", "factual"),
    ("Я живу в Праге и работаю в банке.", "factual"),
    ("我住在北京。", "factual"),
    ("私は東京に住んでいます。", "factual"),
    ("저는 서울에 살아요.", "factual"),
]

PASSED_OVER = {
    "greetings and thanks": [
        "Hi there!",
        "Good morning",
        "Thanks a lot for your help!",
        "Sounds good, thanks.",
        "Yes, go ahead.",
        "I see, that makes sense.",
        "That's great!",
        "lol",
    ],
    "questions": [
        "Hello, how are you?",
        "What's the weather in Graz?",
        "Why does my build fail?",
        "What is my name?",
        "do you remember where I live?",
        "Is my flight on time?",
        "Can you write a function that sorts a list?",
        "So, where did I leave my keys",
    ],
    "requests": [
        "Please fix the bug in main.py.",
        "Show me the logs of the last run.",
        "Run the tests again.",
        "I want you to translate this text.",
        "I need help with my homework.",
        "Explain the difference between TCP and UDP.",
        "Stop doing that.",
        "Summarize my notes from today.",
    ],
    "code, logs and markup": [
        "def main(): return 42",
        "import os; os.getcwd()",
        "$ sudo apt install nginx",
        '<div class="x">my name is x</div>',
        '{"name": "my name is Bob"}',
        "> my name is Alice",
        "```\nmy_name = 'I live in Graz'\n```",
        "2026-11-21 10:00:01 ERROR my service failed to connect to the database",
        "[INFO] my job is done",
        "Traceback (most recent call last):",
        "at com.example.Main.run(Main.java:12)",
    ],
    "frustration": [
        "This is so annoying!",
        "Ugh, it keeps crashing.",
        "You don't understand what I want.",
        "It doesn't work.",
    ],
    "hypotheticals": [
        "If I lived in Paris I would eat croissants.",
        "Maybe I should move to Berlin.",
        "What if we used Rust?",
        "I might switch to Vim.",
        "Suppose my server is in Tokyo.",
        "Imagine I am a pirate.",
        "Let's say my budget is 500 euros.",
        "Perhaps my sister will come.",
    ],
    "passing things": [
        "Let me think about it.",
        "I'm just testing this.",
        "I'm getting an error when I run it.",
        "I'm looking at the screen right now.",
        "I'll try that tomorrow.",
        "I guess so.",
        "I wonder whether my code is slow.",
    ],
    "secrets": [
        "My API key is sk-abcdefghijklmnop1234567890.",
        "My password is hunter2-Xk93.",
        "My card is 4111 1111 1111 1111.",
    ],
}


@for_each(("sentence", "cue"), KEPT)
def test_what_a_person_says_of_their_world_is_kept(sentence: str, cue: str) -> None:
    kept = capital(asked_for([sentence])[0] or "") if cue == "remember" else sentence
    assert [(found.text, found.cue) for found in statements(sentence)] == [(kept, cue)]


@for_each(("kind", "sentence"), [(kind, text) for kind, all_ in PASSED_OVER.items() for text in all_], by="kind")
def test_talk_is_passed_over(kind: str, sentence: str) -> None:
    assert statements(sentence) == []


@pytest.mark.parametrize("sentence", ["Mám rád svíčkovou a dobré pivo s pěnou.", "Můj pes se prý jmenuje Azor."])
def test_words_for_oneself_with_accents_are_known(sentence: str) -> None:
    assert [found.text for found in statements(sentence)] == [sentence]


def test_talk_is_judged_as_it_was_written() -> None:
    assert statements("wtf is wrong with you") == []


def test_a_log_line_is_no_statement() -> None:
    assert statements("ERROR: my service is down") == []


def test_call_me_gives_a_name() -> None:
    assert statements("Call me Bob, please.") == [Statement("Call me Bob, please.", "entity")]


def test_a_short_statement_with_we_is_kept() -> None:
    assert [found.text for found in statements("We're based in Wels.")] == ["We're based in Wels."]


def test_statements_are_found_among_talk_in_their_order() -> None:
    message = (
        "Hey! I live in Graz. Can you help me with my CV? My sister is called Eva.\n"
        "- I prefer tea over coffee.\n"
        "```\nmy_home = 'I live in Code'\n```\n"
        "> I live in a quotation.\n"
        "Thanks!"
    )
    assert [found.text for found in statements(message)] == [
        "I live in Graz.",
        "My sister is called Eva.",
        "I prefer tea over coffee.",
    ]


@for_each(
    ("text", "before", "asked", "kept"),
    [
        (
            "It's in my garden in York.",
            "",
            "Where is the hive?",
            ["It's in my garden in York. (asked by the assistant: Where is the hive?)"],
        ),
        ("Mine is from 2019.", "My bike is a Gazelle.", "", ["Mine is from 2019. (after: My bike is a Gazelle.)"]),
        ("What a week. They moved to Graz for good.", "", "", ["They moved to Graz for good. (after: What a week.)"]),
        ("He lives in Graz.", "", "", []),
        ("Oh and he's coeliac so no normal cake", "", "", []),
        ("Yes, always.", "", "Should I always push to main?", []),
        ("Yes, always push to main, that is how we work.", "", "Should I push to main?", []),
        ("Yes, always with tests.", "", "Which commits go to main?", []),
        ("I live in Graz.", "", "Should I push to main?", ["I live in Graz."]),
    ],
)
def test_what_leans_on_something_is_kept_with_it_and_assent_is_no_rule(
    text: str, before: str, asked: str, kept: list[str]
) -> None:
    assert [each.text + each.after for each in statements(text, (), None, before, asked)] == kept


def test_a_sentence_that_leans_on_the_one_before_stays_with_it() -> None:
    assert statements("We have two dogs at home. They are beagles. Are they cute?") == [
        Statement("We have two dogs at home. They are beagles.", "factual")
    ]
    assert statements("It is a beagle.") == []


def test_a_sentence_about_the_one_just_named_stands_alone() -> None:
    found = statements("My dog is called Fido. He is a beagle. Is he cute?")
    assert [statement.text for statement in found] == ["My dog is called Fido.", "Fido is a beagle."]


def test_what_only_speaks_of_oneself_is_less_sure() -> None:
    [sure, less] = statements("I live in Graz. On the ferry I finally talked to the captain about engines.")
    assert sure.confidence == 1.0
    assert less.confidence < sure.confidence


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ("My sister lives in Tromso, can you find something to do there?", ["My sister lives in Tromso."]),
        ("from now on use metric, ok?", ["From now on use metric."]),
        ("As background for all of this: I work as a nurse.", ["I work as a nurse."]),
        ("I have a dentist on 3 May. lol", []),
        ("This is ridiculous. I restarted the whole thing twice since noon.", []),
        ("name: Bob\ncity: my home", []),
    ],
)
def test_only_what_is_said_of_the_user_is_left(message: str, kept: list[str]) -> None:
    assert [found.text for found in statements(message)] == kept


@pytest.mark.parametrize(
    "sentence",
    [
        "Im no longer with the bank.",
        "We dont eat pork.",
        "I'll be away from the tenth of May until the end of June.",
        "On Fridays we close at noon; in this office nobody works late.",
        "Shellfish gives me a rash.",
        "The cellar door opens at 8 in the evening.",
        "Three cats, all of them rescued.",
        "Metric units only.",
        "Spiders frighten me.",
        "The cellar door sticks in winter.",
        "Sold the car, keeping the bicycle.",
        "I'd sooner take the train, don't ever offer me flights.",
    ],
)
def test_notes_are_kept_although_a_word_or_an_apostrophe_is_missing(sentence: str) -> None:
    assert statements(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "The children are painting the kitchen table.",
        "I have got about ten minutes.",
        "Great, another letter from the tax office in Graz.",
        "The app has lost my order for the third time.",
        "My parrot has asked our lawyers for a salary.",
        "Never lend a poet money, he rhymes it with honey.",
        "She was like I never said that in Rome.",
        "The man on the radio announced that we should all move to Mars.",
        "Our gutter leaks, what would you do?",
        "The hero of the game is called Otto and lives in a mill.",
        "One has to laugh at times.",
        "Everybody loves a holiday.",
    ],
)
def test_what_is_over_soon_or_not_meant_is_passed_over(sentence: str) -> None:
    assert statements(sentence) == []


def test_a_statement_behind_a_colon_or_dash_stands_alone() -> None:
    [found] = statements("I keep getting lost in these menus, but since you ask - I have two sisters in Ghent.")
    assert found.text == "I have two sisters in Ghent."


def test_half_a_surrogate_pair_costs_nothing() -> None:
    [found] = statements("I live in Graz. \ud83d")
    assert found.text == "I live in Graz."


@pytest.mark.parametrize(
    "sentence",
    [
        "I met Dr. Wagner at St. Anna in Graz.",
        "I work from 9 a.m. to 5 p.m. on weekdays.",
        "I have approx. 40 plants.",
    ],
)
def test_abbreviations_end_no_sentence(sentence: str) -> None:
    assert [found.text for found in statements(sentence)] == [sentence]


def test_a_secret_in_the_middle_costs_only_its_own_sentence() -> None:
    found = statements("I live in Graz. My password is hunter2-Xk93. I like tea very much.")
    assert [statement.text for statement in found] == ["I live in Graz.", "I like tea very much."]


def test_further_rules_are_asked_after_the_built_in_ones() -> None:
    asked: list[str] = []

    def rule(sentence: str) -> str | None:
        asked.append(sentence)
        return "ticket" if "PERD-" in sentence else None

    assert statements("I live in Graz. See PERD-17 for that. Nothing else here.", (rule,)) == [
        Statement("I live in Graz.", "factual"),
        Statement("See PERD-17 for that.", "ticket"),
    ]
    assert asked == ["See PERD-17 for that.", "Nothing else here."]


@settings(max_examples=100)
@given(st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=300))
def test_no_text_is_too_odd(text: str) -> None:
    for found in statements(text):
        assert found.text
        assert found.cue


@settings(max_examples=100)
@given(st.sampled_from(KEPT), st.sampled_from([str.upper, str.title]))
def test_a_question_mark_makes_a_question_of_anything(kept: tuple[str, str], case: object) -> None:
    assert cue_of(kept[0].rstrip(".。") + "?") is None


def test_a_clause_that_says_nothing_alone_stays_with_its_sentence() -> None:
    [whole] = statements("My partner's birthday is the 9th of October, I love it.")
    assert whole.text == "My partner's birthday is the 9th of October, I love it."
    [lasting] = statements("My partner's birthday is the 9th of October, I keep forgetting it.")
    assert lasting.text == "My partner's birthday is the 9th of October"
    assert len(statements("I live in Lisbon and I work as a nurse.")) == 2
