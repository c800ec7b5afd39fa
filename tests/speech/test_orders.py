"""Orders to remember, in many languages, and what is none."""

from __future__ import annotations

from perdure.speech.orders import asks_to_remember, without_order
from tests.kit import for_each


@for_each(
    ("sentence", "wanted"),
    [
        ("Remember that I'm allergic to peanuts.", "I'm allergic to peanuts."),
        ("make a note: the plumber is called Gary", "the plumber is called Gary"),
        ("Memo to you: no emojis ever", "no emojis ever"),
        ("can you remember that I take the 72 bus?", "I take the 72 bus?"),
        ("never forget: main branch = trunk", "main branch = trunk"),
        ("Don't forget I'm deaf in my left ear.", "Don't forget I'm deaf in my left ear."),
        ("Merk dir bitte, dass mein Hausarzt Pohl heißt.", "mein Hausarzt Pohl heißt."),
        ("Souviens-toi que je suis végane", "je suis végane"),
        ("Ricorda che sono allergico alle arachidi.", "sono allergico alle arachidi."),
        ("Onthoud dat ik allergisch ben.", "ik allergisch ben."),
        ("Запам'ятай, що в мене алергія.", "в мене алергія."),
        ("Hãy nhớ rằng tôi bị dị ứng.", "tôi bị dị ứng."),
        ("תזכור שאני אלרגי לבוטנים.", "תזכור שאני אלרגי לבוטנים."),
    ],
)
def test_an_order_is_heard_and_what_it_is_about_is_told(sentence: str, wanted: str) -> None:
    assert asks_to_remember(sentence)
    assert without_order(sentence) == wanted


@for_each(
    "sentence",
    [
        "Do you remember that I live in Ghent?",
        "I remember my first school well.",
        "Remember when we went to Rome?",
        "Remember to run the tests.",
        "Save this to a file named notes.txt",
        "Che tempo fa oggi a Gand?",
        "Kun je dit bestand voor mij openen?",
        "Weißt du noch, wie er heißt?",
    ],
)
def test_to_speak_of_remembering_is_no_order(sentence: str) -> None:
    assert not asks_to_remember(sentence)
