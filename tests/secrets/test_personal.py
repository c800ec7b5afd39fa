"""What people tell of themselves and must not be on disk: what opens a door, a log-in, a number of the state."""

from __future__ import annotations

import pytest

from perdure.hooks.types import TurnContext
from perdure.secrets.redact import redact
from tests.kit import OpenHost, OpenMemory, for_each

# A text, and behind the bar what may not be left of it.
SECRETS = """
the door code is 4711#|4711
the gate code is 4711|4711
the gate code: 4711#|4711
door code 4711|4711
alarm code 2580|2580
remember that the alarm code is 2580|2580
the safe combination is 12-34-56|12-34-56
The combination of the safe is 12-34-56.|12-34-56
PIN for my card is 1234|1234
my voicemail PIN is 9081|9081
my phone unlock code is 482915|482915
the code for the front door is 4711|4711
the code for the alarm is 2580|2580
CVV 123|123
the cvv on my card is 123|123
my NI number is QQ 12 34 56 C|12 34 56
QQ 12 34 56 C|12 34 56
AB123456C|AB123456C
my ssn is 123-45-6789|6789
123-45-6789|6789
mijn bsn is 111222333|111222333
Mijn burgerservicenummer is 1112.22.333|333
my rijksregisternummer is 85.07.30-033.28|033.28
85.07.30-033.28|033.28
rijksregisternummer 85073003328|85073003328
meine Steuer-ID ist 86095742719|86095742719
meine Sozialversicherungsnummer ist 65 170839 J 003|170839
65170839J003|170839
mon numéro de sécu est 1 85 05 78 006 084 91|006 084
mi DNI es 12345678Z|12345678Z
12345678Z|12345678Z
mi NIE es X1234567L|X1234567L
il mio codice fiscale è RSSMRA85T10A562S|A562S
o meu NIF é 123456789|123456789
mitt personnummer är 811228-9874|9874
mitt samordningsnummer är 701063-2391|2391
henkilötunnukseni on 131052-308T|308T
henkilötunnukseni on 131052-900W|900W
mój PESEL to 44051401359|44051401359
fødselsnummeret mitt er 15108695088|15108695088
meu CPF é 390.533.447-05|447-05
my SIN is 130 692 544|692 544
my SIN is 046 454 286|454 286
her social insurance number is 823-456-785|456-785
Aadhaar 2341 2341 2346|2341
TFN 123 456 782|456 782
756.9217.0769.85|0769
YE15 CBYE 0001 0188 6123 4567 8912 34|6123
Netflix is tomandmim22, use it to log in|tomandmim22
log in with user tom and fluffy123|fluffy123
login for Netflix: tom / fluffy123|fluffy123
the wifi password is heron-lake-7|heron-lake-7
my security question answer is Fluffy|Fluffy
The answer to my security question is Biscuit.|Biscuit
the answer to the security question is my first dog Biscuit|Biscuit
der Türcode ist 4711|4711
der Code für die Alarmanlage ist 2580|2580
der Alarmcode lautet 2580|2580
die Kombination vom Safe ist 12-34-56|12-34-56
PIN für meine Karte ist 1234|1234
der Code für die Haustür ist 4711#|4711
le code de la porte est 4711|4711
le code d'entrée est 12A45|12A45
le code de l'alarme est le 2580|2580
le code du portail, c'est 4711|4711
la combinaison du coffre est 12-34-56|12-34-56
el código de la puerta es 4711|4711
el código de la alarma es 2580|2580
la combinación de la caja fuerte es 12-34-56|12-34-56
o código da porta é 4711|4711
o código do alarme é 2580|2580
a combinação do cofre é 12-34-56|12-34-56
il codice della porta è 4711|4711
il codice dell'allarme è 2580|2580
la combinazione della cassaforte è 12-34-56|12-34-56
el PIN de mi tarjeta es 1234|1234
il PIN della carta è 1234|1234
o PIN do cartão é 1234|1234
die Antwort auf meine Sicherheitsfrage ist Bello|Bello
la réponse à ma question de sécurité est Médor|Médor
la respuesta a mi pregunta de seguridad es Toby|Toby
a resposta à minha pergunta de segurança é Rex|Rex
la risposta alla mia domanda di sicurezza è Fido|Fido
melde dich mit tom und fluffy123 an|fluffy123
connecte-toi avec tom et fluffy123|fluffy123
inicia sesión con tom y fluffy123|fluffy123
accedi con tom e fluffy123|fluffy123
entra com tom e fluffy123|fluffy123
"""
LOOK_ALIKES = """
error code 4711
the code is in the repo
area code 0470
the area code is 0470
zip code 90210
the zip code is 90210
the door is open
discount code SUMMER20
the discount code is SUMMER20
my PIN tweet
gate 42 at the airport
the alarm is at 7:30
order number 123456789
locker 212
My locker number is 212
the alarm goes off at 0730
the door is 2100 mm high
the exit code is 137
the status code is 4040
the dress code is 1920s
the safe weighs 120 kg
the safe was bought in 2019
the gate closes at 1830
call me on 07700 900999
the meeting is on 12-05-2026
the combination of tea and milk is 50-50
a combination of 12-34 drugs
the code for module 2024 is done
the code for the alarm module is 300 lines long
the door code module has 4000 lines
code review at 1500
my answer is Fluffy
The answer to the question is 42.
the answer to my security question is too long
Netflix is expensive, use it less
Disney is 12.99, use it
log in with user tom
log in with Google
log in with user tom and see page 2024
log in with your email and password
the phone has 256 gb
Der Code ist im Repo.
die Kombination aus Tee und Milch
le code postal est 75011
el código postal es 28013
o código postal é 1000-205
il codice postale è 20121
the bar code is 4006381333931
the source code is 12000 lines
we unlock level 2500 in the game
tax number of houses 123456789
the tin with lot number 46398852464
the PIN is four digits
flight AB123456
the model is 12345678A
product 85.07.30
the code of conduct was written in 2019
the country code for France is 0033
The Code for America summit is 2026
the code on the door of room 212 is green
entry 2020: the door
Route 65 170839 of 2008
"""


@for_each(("text", "secret"), [line.split("|") for line in SECRETS.strip().splitlines()])
def test_a_persons_secret_is_left_out(text: str, secret: str) -> None:
    once = redact(text).text
    assert secret not in once
    assert redact(once).text == once


@for_each("text", LOOK_ALIKES.strip().splitlines())
def test_what_only_sounds_like_one_passes(text: str) -> None:
    assert redact(text).text == text


@pytest.mark.parametrize("order", [
    "Remember that the alarm code is 2580.", "I live in Graz. Please remember: our door code is 2580#.",
    "Bitte merk dir, dass der Alarmcode 2580 ist: der Alarmcode lautet 2580.",
])  # fmt: skip
def test_an_order_to_remember_a_secret_is_answered_once(
    order: str, open_host: OpenHost, open_memory: OpenMemory
) -> None:
    host, memory = open_host(open_memory(embedder="none"))
    host.turn(order, "Noted.")
    assert memory.settle()
    context = TurnContext(session_id="another")
    told = memory.turns.before("What is the weather like in Oslo?", context)
    assert told is not None
    assert "(pin)" in told.block
    assert "perdure vault" in told.block
    assert "2580" not in told.block
    later = memory.turns.before("What is the weather like in Oslo?", context)
    assert later is None or "vault" not in later.block
    # What perdure said is none of the user's words.
    host.turn(f"{told.block}\n\nMy boat is called Heron.", "Noted.")
    assert memory.settle()
    assert all("vault" not in fact.text for fact in memory.admin.list())


def test_a_secret_that_nobody_asked_to_remember_is_left_out_without_a_word(
    open_host: OpenHost, open_memory: OpenMemory
) -> None:
    host, memory = open_host(open_memory(embedder="none"))
    host.turn("The alarm code is 2580. Remember that I live in Graz.", "Noted.")
    assert memory.settle()
    told = memory.turns.before("What is the weather like in Oslo?", TurnContext(session_id="another"))
    assert told is None or "vault" not in told.block
