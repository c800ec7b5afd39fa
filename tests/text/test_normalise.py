from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.errors import InputError
from perdure.text.lexicon import stop_words
from perdure.text.normalise import fingerprint, fold, fts_text, match_query, match_terms

any_text = st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=60)
Search = Callable[[str], list[int]]

ROWS = {
    1: "我的猫叫咪咪\uff0c住在北京",
    2: "東京タワーに登った。去年は大阪城ホールへ行った",
    3: "우리 고양이는 부산에서 왔어요",
    4: "ฉันชอบกินข้าวผัดกับกุ้ง",
    5: "Můj bratr Řehoř žije v Příbrami",
    6: "Anna's sister was running two bakeries in Łódź",
    7: "İstanbul'da bir kedi; write to anna.k@example.org at 9:15 about C++",
    8: "मेरी हिन्दी भाषा",
    9: "ខ្ញុំចូលចិត្តឆ្មា",
}


@pytest.fixture
def table() -> Iterator[apsw.Connection]:
    connection = apsw.Connection(":memory:")
    connection.execute(
        "CREATE VIRTUAL TABLE t USING fts5(x, content='', contentless_delete=1,"
        " tokenize='porter unicode61 remove_diacritics 2')"
    )
    for rowid, text in ROWS.items():
        connection.execute("INSERT INTO t(rowid, x) VALUES (?, ?)", (rowid, fts_text(text)))
    yield connection
    connection.close()


@pytest.fixture
def search(table: apsw.Connection) -> Search:
    def run(question: str) -> list[int]:
        expression = match_query(match_terms(question))
        if not expression:
            return []
        rows = table.execute("SELECT rowid FROM t WHERE t MATCH ? ORDER BY rowid", (expression,))
        return [int(str(rowid)) for (rowid,) in rows]

    return run


@pytest.mark.parametrize(
    ("question", "row"),
    [
        ("猫", 1),
        ("北京", 1),
        ("你的猫叫什么", 1),
        ("東京", 2),
        ("塔 タワー", 2),
        ("ホール", 2),
        ("ﾀﾜｰ", 2),
        ("고양이", 3),
        ("고양이를", 3),
        ("부산", 3),
        ("부산으로", 3),
        ("ข้าวผัด", 4),
        ("กุ้ง", 4),
        ("กิน", 4),
        ("rehor", 5),
        ("PRIBRAM pribrami", 5),
        ("Řehoř", 5),
        ("anna\u2019s", 6),
        ("bakery", 6),
        ("run", 6),
        ("lodz", 6),
        ("ISTANBUL", 7),
        ("example.org", 7),
        ("9:15", 7),
        ("हिन्दी", 8),
        ("ឆ្មា", 9),
    ],
)
def test_a_word_finds_the_row_that_holds_it(search: Search, question: str, row: int) -> None:
    assert row in search(question)


@pytest.mark.parametrize("question", ["犬", "大京", "タタ", "강아지", "กัน", "cat", "What is it about?", "+++", ""])
def test_a_word_that_no_row_holds_finds_none(search: Search, question: str) -> None:
    assert search(question) == []


def test_every_word_of_a_row_finds_it(search: Search) -> None:
    for row in (5, 6, 7, 8):
        for word in ROWS[row].split():
            if match_terms(word):
                assert row in search(word), word


def test_hostile_questions_raise_nothing(table: apsw.Connection) -> None:
    rng = random.Random(7)
    pieces = [
        *"\"*^:(){}+-'\\;,.",
        "\0",
        "\ud800",
        "\udfff",
        "NEAR(",
        "AND",
        "OR",
        "NOT",
        "x:",
        "t",
        "猫",
        "ก",
        "é",
        " ",
    ]
    for _ in range(6000):
        text = "".join(
            rng.choice(pieces) if rng.random() < 0.7 else chr(rng.randrange(sys.maxunicode))
            for _ in range(rng.randrange(1, 25))
        )
        for expression in (match_query(match_terms(text)), match_query([text])):
            if expression:
                found = table.execute("SELECT count(*) FROM t WHERE t MATCH ?", (expression,)).get
                assert 0 <= int(str(found)) <= len(ROWS)


def test_an_expression_may_be_long(table: apsw.Connection) -> None:
    expression = match_query(f"word{number}" for number in range(2000))
    assert table.execute("SELECT count(*) FROM t WHERE t MATCH ?", (expression,)).get == 0


@settings(max_examples=200)
@given(any_text)
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Příliš ŽLUŤOUČKÝ", "prilis zlutoucky"),
        ("İI\u0131i", "iiii"),
        ("Straße Ærø Łódź", "strasse aero lodz"),
        ("Ёлка Άλφα", "елка αλφα"),
        ("ガｶﾞか\u3099", "ガガが"),
        ("고양\u1100\u1161", "고양가"),
        ("zero\u200bwidth\ufeff so\u00adft", "zerowidth soft"),
        ("Anna\u2019s \uff21\uff22\uff23 \ufb01", "anna's abc fi"),
        ("a\0b\ud800", "ab\ufffd"),
    ],
)
def test_fold(text: str, folded: str) -> None:
    assert fold(text) == folded


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("What's Anna's birthday?", ("anna", "birthday")),
        ("don't forget C++ at 9:15", ("forget", "9", "15")),
        ("Kde bydlí můj bratr?", ("bydli", "bratr")),
        ("Wo wohnt meine Schwester?", ("wohnt", "schwester")),
        ("tea tea TEA", ("tea",)),
        ("北京", ("北 京",)),
        ("猫叫声", ("猫 叫", "叫 声", "猫", "叫", "声")),
        ("猫呢", ("猫 呢", "猫")),
        ("집에", ("집", "집 에")),
        ("กุ้", ("ก ุ ้",)),
        ("is it?", ()),
        ("Did the MOT lapse while she was in the US?", ("mot", "lapse", "us")),
        ("Was it IT, or the WHO's office?", ("it", "who", "office")),
        ("WHO IS IN THE OFFICE?", ("office",)),
        ("WHO東京へ", ("東 京", "京 へ", "東", "京")),
        ("A NO-go at 8 AM, isn't IT2?", ("no", "go", "8", "am", "it2")),
        ("", ()),
    ],
)
def test_match_terms(question: str, terms: tuple[str, ...]) -> None:
    assert match_terms(question) == terms


@given(st.sampled_from(sorted(word for word in stop_words() if word.isascii() and len(word) > 1)))
def test_capitals_among_other_words_are_no_function_words(word: str) -> None:
    assert match_terms(f"about {word.upper()}") == (word,)
    assert match_terms(f"ABOUT {word.upper()}") == match_terms(f"about {word}") == ()


@given(any_text, st.integers(1, 5))
def test_terms_are_distinct_and_at_most_the_limit(text: str, limit: int) -> None:
    terms = match_terms(text, limit)
    assert len(terms) == len(set(terms)) <= limit
    assert terms == match_terms(text)[:limit]


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(InputError, match="limit is 0"):
        match_terms("text", 0)


def test_match_query_quotes() -> None:
    assert match_query(['say "hi"', "b", " "]) == '"say ""hi""" OR "b"'
    assert match_query([]) == ""


def test_stop_words_are_folded() -> None:
    assert {word for word in stop_words() if fold(word) != word} == set()


def test_a_fingerprint_ignores_spelling_details_only() -> None:
    assert fingerprint("  My  sister\nlives in Łódź. ") == fingerprint("my sister lives in lodz")
    assert fingerprint("I like tea") != fingerprint("I like teas")
    assert fingerprint("?") != fingerprint("!")
    assert len(fingerprint("\ud800")) == 64
