"""Sentences and clauses, and what pronouns stand for."""

from __future__ import annotations

import pytest

from perdure.capture.sentences import clauses, explained, prose, resolve, sentences
from perdure.capture.statements import statements
from tests.kit import for_each


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I met Dr. Kay. She is nice.", ["I met Dr. Kay.", "She is nice."]),
        ("I have approx. 40 plants. Bye.", ["I have approx. 40 plants.", "Bye."]),
        ("The flat is on Elm St. My rent is 900.", ["The flat is on Elm St.", "My rent is 900."]),
        ("lol ok. brb lunch. oh and I'm vegan", ["lol ok.", "brb lunch.", "oh and I'm vegan"]),
        ("what?? no!! I live in Graz", ["what??", "no!!", "I live in Graz"]),
        ("- I like tea\n2) I live in Graz\n\n* ***", ["I like tea", "I live in Graz"]),
        ("We use v1.2.3 of acme.io. Fine.", ["We use v1.2.3 of acme.io.", "Fine."]),
        ("", []),
    ],
)
def test_sentences_end_where_a_person_would_end_them(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_a_clause_begins_with_oneself_or_a_name() -> None:
    assert clauses("I live in Aarhus, my ex lives in Odense") == ["I live in Aarhus", "my ex lives in Odense"]
    assert clauses("Yolanda works for the council and Greet works for the hospital.") == [
        "Yolanda works for the council",
        "Greet works for the hospital.",
    ]
    assert clauses("I like bread and butter.") == ["I like bread and butter."]


@pytest.mark.parametrize(
    ("sentence", "before", "expected"),
    [
        ("He is a beagle.", "My dog is called Fido.", "Fido is a beagle."),
        ("She's a nurse.", "My sister is called Eva.", "Eva is a nurse."),
        ("Her office is in Riga.", "Ann leads the data team.", "Ann's office is in Riga."),
        ("It is hilly.", "We moved to Lisbon.", "Lisbon is hilly."),
        ("She is a nurse.", "We moved to Lisbon.", None),
        ("She is a nurse.", "I work with Eva and Ann.", None),
        ("They are beagles.", "My dog is called Fido.", None),
        ("It was sad.", 'I read "Charlotte in Love" to them.', None),
    ],
)
def test_a_pronoun_is_replaced_where_only_one_name_can_be_meant(
    sentence: str, before: str, expected: str | None
) -> None:
    assert resolve(sentence, before) == expected


@pytest.mark.timeout(20)  # a rule that is quadratic takes minutes at this length
@for_each(
    "unit",
    [
        "a", ". ", "! ", '"', "'", "(", "[", "{", "<b>", "A.", "Dr. ", "I ", "my ", "is ", "I am ", "so, ", "and ",
        "always ", "every a ", "if ", "the a ", "A b ", "a-", "a@", "1 ", "1.", "/", "\n", "a: ", "- ", "“a ", "maybe ",
        "I live, I am, ",
        "is is today", "use x ", "on ", "'a ", '"a b ', "A-b's ", "+1", "no. ", "lol ",
    ],
)  # fmt: skip
def test_a_long_run_of_anything_ends(unit: str) -> None:
    for chars in (900, 16_000):
        for found in statements((unit * chars)[:chars] + " x"):
            assert found.text


def test_lines_of_a_group_are_speech_and_pairs_of_a_file_are_not() -> None:
    group = "Dom: no glitter on me please, I loathe the stuff.\nMairead: Thursdays are bell practice for me."
    assert sentences(prose(group)) == group.split("\n")
    assert prose("name: a small service for the team\nport: 8080") == ""


@for_each(
    ("sentence", "before", "after"),
    [
        ("It's on Mondays for good.", "When's the partners' meeting?", " (after: When's the partners' meeting?)"),
        ("Per: yes, and she can't have nuts", "Grandma is coming", " (after: Grandma is coming)"),
        ("no its the 16th", "When is the\naway match?", " (after: When is the away match?)"),
        ("I prefer tea.", "When's the partners' meeting?", ""),
        ("Itaca is the new server.", "When's the partners' meeting?", ""),
        ("It's on Mondays for good.", "", None),
        ("It's on Mondays for good.", "x" * 400, None),
        ("It's in my mum's garden.", "", ""),
        ("ours ends in March", "Our lease in Rennes is old", " (after: Our lease in Rennes is old)"),
        ("Yes we're on 3.12", "I need a Dockerfile", " (after: I need a Dockerfile)"),
        ("We bought one in Leeds!", "We want a house.", " (after: We want a house.)"),
        ("We bought one in Leeds!", "", ""),
        ("Yes, always.", "", None),
        ("That one is nicest.", "", None),
        ("That one lives in Bonn.", "My other cat is old.", " (after: My other cat is old.)"),
        ("It expires in May 2029.", "My card is [redacted card].", None),
        ("It makes me tired.", "Please forget that I was diagnosed with HIV.", ""),
        ("It's fine now.", "hi there", None),
        ("The former head of Acme is Bob Miller.", "", ""),
        ("The same server in Frankfurt runs Jenkins.", "", ""),
        ("The new one-pager lives in Confluence.", "", ""),
        ("This one time in 2019 the company sued Oracle.", "", ""),
        ("It's a convention in this repo that tests live beside the code.", "", ""),
        ("It takes the bus 40 minutes from Graz to Linz.", "", ""),
    ],
)
def test_a_sentence_that_says_nothing_alone_is_explained_by_what_was_said_before(
    sentence: str, before: str, after: str | None
) -> None:
    assert explained(sentence, before) == after
