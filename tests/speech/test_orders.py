"""Orders to remember, in many languages, and what is none."""

from __future__ import annotations

from perdure.speech.orders import asked_for, asks_to_remember
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
        ("Stick this in your memory bank: bins go out on Wednesday.", "bins go out on Wednesday."),
        ("Worth remembering about me: I can't swim.", "I can't swim."),
        ("memorise this -> teal, not turquoise", "teal, not turquoise"),
        ("Unser WLAN heißt Krokodil, merk dir das.", "Unser WLAN heißt Krokodil"),
        ("the router lives behind the piano - pls remember", "the router lives behind the piano"),
        ("Remember Gary's number: 555 019", "Remember Gary's number: 555 019"),
        ("我对花生过敏,请记住。", "我对花生过敏,请记住。"),
        ("Note to your future self: the export breaks on Fridays", "the export breaks on Fridays"),
        ("One thing worth retaining: the pool has 12 places", "the pool has 12 places"),
        ("Te va a hacer falta más adelante: la caseta es la 6", "la caseta es la 6"),
        ("É bom que isto não se perca: o meu lugar é o 47", "o meu lugar é o 47"),
        ("Vorrei che d'ora in poi tu sapessi che sono astemio.", "sono astemio."),
        ("Tienilo a mente.", ""),
        ("Remember these two things:", ""),
    ],
)
def test_an_order_is_heard_and_what_it_is_about_is_told(sentence: str, wanted: str) -> None:
    assert asks_to_remember(sentence)
    assert asked_for([sentence]) == [wanted]


def test_an_order_that_says_nothing_itself_points_at_what_stands_beside_it() -> None:
    assert asked_for(["I see.", "My bus is the 76.", "Remember that."]) == [None, "My bus is the 76.", ""]
    assert asked_for(["Hi!", "Please remember this.", "My bus is the 76."]) == [None, "", "My bus is the 76."]
    assert asked_for(["Remember these:", "bus 76", "locker 9", "Or not?"]) == ["", "bus 76", "locker 9", None]
    assert asked_for(["Merk dir das bitte!", "Wie spät ist es?"], "Mein Bus ist die 76.") == [
        "Mein Bus ist die 76.",
        None,
    ]


@for_each("order", [
    "Remember it for the tests.", "Remember this for next time.", "Keep that in mind for the release.",
    "Keep it in mind when you write tests.", "Remember it until Friday.", "Remember this in all my projects.",
    "Merk dir das für die Tests.", "Souviens-toi de ça pour les tests.", "Recuérdalo para las pruebas.",
])  # fmt: skip
def test_an_order_that_says_only_what_for_points_at_what_stands_before_it(order: str) -> None:
    said = "The database is called heron"
    assert asked_for([f"{said}.", order]) == [f"{said}.", ""]
    assert asked_for([f"{said}, {order[0].lower()}{order[1:]}"]) == [said]


@for_each(("order", "wanted"), [
    ("Remember that for the tests we use heron.", "for the tests we use heron."),
    ("Remember that in summer Anna sleeps late.", "in summer Anna sleeps late."),
    ("Remember this for later: my code is 5.", "my code is 5."),
    ("Please remember my son takes this for his asthma.", "Please remember my son takes this for his asthma."),
    ("Remember we ship it from Graz.", "Remember we ship it from Graz."),
    ("Keep in mind that Jo wants it in German.", "Jo wants it in German."),
    ("Remember it is for the tests.", "Remember it is for the tests."),
])  # fmt: skip
def test_an_order_that_says_more_is_about_that(order: str, wanted: str) -> None:
    assert asked_for(["I see the shop.", order]) == [None, wanted]


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
        "I can't remember: was it four?",
        "No quiero que recuerdes mi peso.",
        "Merk dir das bitte nicht.",
        "Behalt das lieber nicht.",
        "I don't need you to remember it.",
        "Könntest du aufhören, dir meinen Kontostand zu merken?",
        "Je ne veux plus que tu te souviennes de mon ex",
        "Ya no hace falta que recuerdes dónde trabajo",
        "He said to remember the milk.",
        "你还记得他叫什么吗？",
    ],
)
def test_to_speak_of_remembering_is_no_order(sentence: str) -> None:
    assert not asks_to_remember(sentence)
