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
        ("lose my phone number", "phone number", False),
        ("I'd like all traces of Marcus deleted, he has moved", "Marcus", False),
        ("Delete my hat size from memory.", "hat size", False),
        ("My PIN hint should vanish from your memory", "PIN hint", False),
        ("There's no need to know about my panic attacks.", "panic attacks", False),
        ("Wann ich geboren bin, geht dich nichts an.", "geboren", False),
        ("Alles, was mit Herrn Brandt zu tun hat, kannst du vergessen, ich bin umgezogen", "Brandt", False),
        ("J'aimerais que tu n'aies plus rien sur Thibault", "Thibault", False),
        ("Me gustaría que olvidaras por completo a Nuria", "Nuria", False),
        ("Deixa de guardar a minha morada", "morada", False),
        ("Che sono diabetico non ti riguarda, eliminalo.", "diabetico", False),
        ("Haz como si no te lo hubiera contado", "", True),
        ("Please strike my previous message from your memory", "", True),
        ("I no longer row, you can bin that", "row", False),
        ("my pens needn't be in there, but journaling is fine to keep", "pens", False),
        ("Oskar wouldn't want you knowing where he is staying", "staying", False),
        ("Hör auf, dir meine Schuhgröße zu merken", "Schuhgröße", False),
        ("Meine Telefonnummer soll nirgends gespeichert sein", "Telefonnummer", False),
        ("L'info sur mon frère n'est plus à jour, retire-la", "frère", False),
        ("Para de guardar a minha morada", "morada", False),
        ("Non voglio che la mia diagnosi resti scritta da qualche parte", "diagnosi", False),
    ],
)
def test_an_order_names_what_is_to_go(text: str, target: str, last: bool) -> None:
    [order] = orders_to_forget(text)
    assert order.last is last
    assert target in order.target


@for_each(
    ("text", "target"),
    [
        ("My medication is private. Can you take it out of your memory?", "medication"),
        ("So, about my savings. I don't feel good about you knowing that. Delete?", "savings"),
        ("La date de la bêta, elle est plus bonne, vire-la", "bêta"),
        ("You remember my star sign? Delete that, silly stuff", "star sign"),
        ("That I applied to Veltra shouldn't be stored. My boss reads this, so take it out, will you?", "Veltra"),
    ],
)
def test_what_is_named_before_is_meant_by_it(text: str, target: str) -> None:
    assert target in next(orders_to_forget(text)).target


def test_an_order_that_is_given_twice_means_no_more() -> None:
    text = "That I applied to Veltra shouldn't be stored. My boss reads this, so take it out, will you?"
    assert len(list(orders_to_forget(text))) == 1


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
        "forget it",
        "Forget about Redis, let's use Postgres.",
        "delete my name wherever it appears in these slides",
        "don't keep my weight in a float, use Decimal",
        "Please remove all mentions of my salary from the spreadsheet",
        "the garbage collector should remove the home object from memory",
        "My father should forget his garden, he is 80",
        "she told me to forget about her",
        "Pretend that I am a knight and tell me a story.",
        "My grandmother's motto was: wear clean socks, you never know.",
        "Esqueci o aniversário da minha mãe",
        "quita mi dirección del currículum",
        "Lass uns das mit dem Urlaub vergessen",
        "Laisse tomber, Baptiste a déjà réservé le gîte.",
        "Kill the server that hangs on port 3000",
        "Toss a coin for me",
        "You mustn't forget that I'm deaf in my left ear.",
        "Mi hermana ya no está ahí.",
    ],
)
def test_to_speak_of_forgetting_is_no_order(text: str) -> None:
    assert not list(orders_to_forget(text))
