"""Orders to forget, told from talk about forgetting."""

from __future__ import annotations

from perdure.speech.forgetting import orders_to_forget
from tests.kit import for_each


@for_each(
    ("text", "target", "last"),
    [
        ("Forget my birthday.", "birthday", False),
        ("please delete what you know about my salary", "salary", False),
        ("I'd like you to forget everything about Dan, he left", "Dan", False),
        ("Erase where I live from your memory", "live", False),
        ("Could you drop the bit about my allergy from what you remember?", "allergy", False),
        ("You no longer need to know my shoe size.", "shoe size", False),
        ("Vergiss, dass ich in Porto wohne.", "Porto", False),
        ("Efface mon adresse de ta mémoire", "adresse", False),
        ("No quiero que recuerdes mi peso.", "peso", False),
        ("Apaga da memória onde eu moro, por favor.", "moro", False),
        ("Cancella dalla memoria il mio compleanno", "compleanno", False),
        ("don't remember that please", "", True),
        ("Forget what I just said.", "", True),
        ("Merk dir das bitte nicht, was ich gerade gesagt habe.", "", True),
    ],
)
def test_an_order_names_what_is_to_go(text: str, target: str, last: bool) -> None:
    [order] = orders_to_forget(text)
    assert order.last is last
    assert target in order.target


def test_what_the_sentence_before_names_is_meant_by_it() -> None:
    [order] = orders_to_forget("My medication is private. Can you take it out of your memory?")
    assert "medication" in order.target


@for_each(
    "text",
    [
        "forget it, try again",
        "never mind",
        "drop the users table",
        "remove my name from the README",
        "Remove my birthday field from the signup form please",
        "clear the cache",
        "delete it from memory in the destructor",
        "don't let me forget my mum's birthday",
        "I always forget my keys",
        "he forgot my birthday",
        "did you forget where I live?",
        "how do I make my phone forget a wifi network?",
        "You can forget about backwards compatibility for this module.",
        "Delete my appointment on Friday from the calendar",
        "Don't forget that I'm deaf in my left ear.",
        "can you remember that I take the 72 bus?",
        "Vergiss nicht, dass ich in Porto wohne.",
        "Egal, vergiss es.",
        "Supprime la colonne allergies dans la migration",
        "borra la caché de Redis",
    ],
)
def test_to_speak_of_forgetting_is_no_order(text: str) -> None:
    assert not list(orders_to_forget(text))
