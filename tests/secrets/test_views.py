"""A reading leads back to the text: whatever was read otherwise, the secret is taken out where it stands."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.secret_samples import KINDS, WRAPS, Sample, traces, worded_samples, wrapped_samples
from bench.secrets import REPEATED, blind
from perdure.secrets.redact import redact
from perdure.secrets.shapes import has_chance_letters
from perdure.secrets.views import Span, View, plain

LEAST = {"two lines": 36, "hyphen at the line end": 34, "hyphens between groups": 32, "base64": 36}
"""Of 37 kinds, where not all can be told: half of a passphrase in the next line is a word like any other."""


def test_a_span_of_a_reading_stands_where_its_text_came_from() -> None:
    view = View("ab--cd ef", [(2, 4, ""), (7, 9, "xyz")])
    assert view.text == "abcd xyz"
    assert view.place(Span(0, 4, "k")) == Span(0, 6, "k")
    assert view.place(Span(2, 3, "k")) == Span(4, 5, "k")
    assert view.place(Span(6, 7, "k")) == Span(7, 9, "k")  # of "xyz" nobody knows which part is which
    assert list(view.touched([Span(0, 2, "k"), Span(2, 4, "k"), Span(1, 3, "k")])) == [Span(1, 5, "k")]


def test_a_part_knows_where_it_begins() -> None:
    assert View("cd ef", [(2, 3, "")], 10).place(Span(1, 3, "k")) == Span(11, 14, "k")


@given(st.data())
def test_every_character_that_stays_leads_back_to_itself(data: st.DataObject) -> None:
    text = data.draw(st.text(alphabet="abcdef", max_size=30))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    news = st.sampled_from(["", "X", "XYZ"])
    edits = [(start, end, data.draw(news)) for start, end in zip(cuts[::2], cuts[1::2], strict=False)]
    view = View(text, edits)
    for place, char in enumerate(view.text):
        found = view.place(Span(place, place + 1, "k"))
        if char in "XYZ":
            assert any(start <= found.start and found.end <= end for start, end, _ in edits)
        else:
            assert text[found.start : found.end] == char


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("ｐａｓｓ１２３", "pass123"),
        ("g\u200bh\u2060p_\ufeffx", "ghp_x"),
        ("ghр_аbс1", "ghp_abc1"),
        ("пароль2 рост", "пароль2 рост"),
        ("contrasen\u0303a", "contraseña"),
        ("p\u0336w\u0336d", "pwd"),
        ("𝗽𝗮𝘀𝘀①", "pass1"),
        ("我，是：他（好）！", "我，是：他（好）！"),
        ("schön – für „dich“", "schön – für „dich“"),
    ],
)
def test_what_looks_like_another_character_is_read_as_it(text: str, reading: str) -> None:
    assert plain(text).text == reading


@pytest.mark.parametrize("wrap", WRAPS)
def test_a_wrapped_secret_is_found(wrap: str) -> None:
    missed = set()
    for sample in (sample for seed in (1, 2) for sample in wrapped_samples(seed)[wrap]):
        once = redact(sample.text).text
        assert redact(once).text == once
        if traces(sample, once):
            missed.add(sample.kind)
    assert len(KINDS) - len(missed) >= LEAST.get(wrap, len(KINDS)), missed


@pytest.mark.parametrize(("language", "samples"), worded_samples(7).items(), ids=worded_samples(7))
def test_a_password_is_found_however_it_is_told(language: str, samples: list[Sample]) -> None:
    for sample in samples:
        once = redact(sample.text).text
        assert not traces(sample, once), sample.text
        assert redact(once).text == once


@pytest.mark.parametrize(
    "text",
    [
        "sk-learn-experiments-2024-final.md",
        "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",
        "API_KEY=someEnvironmentVariableName",
        "Das Passwort ist falsch.",
        "Das Passwort für den Router ist abgelaufen.",
        "Le mot de passe est incorrect.",
        "La contraseña es incorrecta.",
        "La password è scaduta.",
        "A senha está errada, a senha é fraca.",
        "Het wachtwoord is verlopen.",
        "Hasło to podstawa bezpieczeństwa.",
        "Пароль был неверный.",
        "密码是必须的",
        "I changed the password on GitHub.",
        "I forgot my password. It is annoying.",
        "The password is case sensitive.",
        "Password: minimum eight characters",
        "| Feature | Password | Token |\n|---|---|---|\n| Supports MFA | Yes | No |",
        "| Field | Type |\n|---|---|\n| password | string |",
        "name,password\nthe first is required, the second optional",
        'KEYS = [\n    "password",\n    "swordfish1",\n]',
        "Enter user, password\nand then 1234abcd!",
        "data:text/plain;base64,SGVsbG8gd29ybGQsIHRoaXMgaXMgZmluZQ==",
        "we moved to\nb2b-sales-2024 and it works",
        "Python3 is the password hashing library's language",
        "a passphrase that is given: `Vault(folder, passphrase=...)`",
        "sk-landing-hero-v3-final-2x.png",
        "POSTGRES_PASSWORD: ${POSTGRES_PASSWORD:?set me}",
        "a day's ski pass is 120€/day",
        "at com.example.MyService$Handler2.run and Outer$Inner1Class",
        "Pin 2024 goals to the top.",
        "token_type=bearer expires_in=3600",
        "all-MiniLM-L6-v2 and 2026-01-15T10:00",
    ],
)
def test_what_only_looks_so_passes(text: str) -> None:
    assert redact(text).text == text


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("| user | password |\n|---|---|\n| anna | hunter2x |\n| bob | none |\n\nhunter2y",
         "| user | password |\n|---|---|\n| anna | [redacted password] |\n| bob | none |\n\nhunter2y"),
        ('id,"api key",note\n1,"abc12345def","x, y"\n', 'id,"api key",note\n1,"[redacted api-key]","x, y"\n'),
        ("I set a new password. It is hunter2x, ok?", "I set a new password. It is [redacted password], ok?"),
        ("hunter2x is my new password", "[redacted password] is my new password"),
        ("my password is purple monkey dishwasher.", "my password is [redacted password]."),
        ("use ghp_aB3dE6gH9jK2mN5\npQ8sT1vW4xY7zabcd now", "use [redacted github-token] now"),
        ("Mein Passwort ist Schwertfisch.", "Mein Passwort ist [redacted password]."),
        ("I went for Gr8nny$pud on that one", "I went for [redacted password] on that one"),
        ("the password of the shop, the easy one, Churros&Cafe22, is old",
         "the password of the shop, the easy one, [redacted password], is old"),
        ("my login is brenda, the pass is Marigold-52-Shed", "my login is brenda, the pass is [redacted password]"),
        ("| host | pw |\n| :- | :- |\n| nas | b4ck-up |", "| host | pw |\n| :- | :- |\n| nas | [redacted password] |"),
        ("the passphrase is ochre Lantern 9 (with spaces)", "the passphrase is [redacted passphrase] (with spaces)"),
        ("Twilio auth token 3f786850e387550fdab836ed7e6dc881 works", "Twilio auth token [redacted token] works"),
    ],
)  # fmt: skip
def test_only_the_secret_goes(text: str, result: str) -> None:
    assert redact(text).text == result
    assert redact(result).text == result


def test_the_set_that_was_written_blind_fares_as_it_did() -> None:
    gone, secrets, taken, look_alikes = blind()
    assert (gone, secrets) >= (50, 60)
    assert (taken, look_alikes) == (0, 60)


def calls(text: str) -> int:
    """Return how many functions are called to redact a text."""
    count = 0

    def note(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(note)
    try:
        redact(text)
    finally:
        sys.setprofile(None)
    return count


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(REPEATED), min_size=1, max_size=3).map("".join))
def test_twice_the_text_is_at_most_twice_the_work(piece: str) -> None:
    # What a pattern does within itself is not seen here: the bench times it.
    size = max(1, 6_000 // len(piece))
    assert calls(piece * 2 * size) <= 2.4 * calls(piece * size) + 2_000


def test_letters_drawn_by_chance_are_told_from_names() -> None:
    assert has_chance_letters("kTzQbRwXypLmVdGh")
    assert has_chance_letters("xkqzvbnwrtpdfghjklmc")
    assert not has_chance_letters("EncoderDecoderModelForSequence")
    assert not has_chance_letters("internationalizationsupport")
    assert not has_chance_letters("kTzQbRw")
