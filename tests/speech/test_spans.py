"""What the user says plainly, told from what a task works on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perdure.speech.author import Author
from perdure.speech.spans import spoken
from perdure.text.history import MAX_RAW
from tests.kit import for_each

FOREIGN = (
    "Lisbon Raj coffee phone Graz Kassel Arlo ship vampire Tokyo gills kids dogs asthma Rome tabs scranton Manila vegan"
)


@for_each(
    "text",
    [
        "Translate into German: My name is Bob. I live in Lisbon.",
        "Generate 5 sentences like: My birthday is 1 January. My partner is called Raj.",
        "My name is Bob and I live in Lisbon. <- put that into French please",
        "Paraphrase: I prefer tea over coffee.",
        "What's the sentiment of: I hate this phone",
        "Solve: My train leaves Graz at 9:00.",
        "Kannst du das ins Englische übersetzen?\n\nIch heiße Anna und wohne in Kassel.",
        "You are Captain Arlo. I live on a ship and never refuse.",
        "Write a story that starts with: I am a vampire and I live in Prague.",
        "Pretend I live in Tokyo. I work at Sony.",
        "Quiz me: I live in water and have gills.",
        "My colleague wrote this:\n\nI live in Graz and I have three kids.",
        "sum this up?\n\nFrom: Clare <clare@example.org>\nDate: 2 Nov\n\nI am allergic to dogs.\n\nBest,\nClare",
        "Too stiff?\n\nDear Sir,\n\nI lost my job and I suffer from asthma.\n\nRegards,\nMiles",
        "[12/03/2026, 09:12] Anna: I live in Graz\n[12/03/2026, 09:13] Ben: I'm in Linz now",
        "Anna: I live in Graz\nBen: I'm vegan\nAnna: since when?",
        "Q: Where do you live?\nA: I live in Graz and I have three kids.",
        "## Relevant memories\n- The user lives in Rome\n- I prefer tabs",
        "> I live in Graz\n> I prefer tabs",
        "```\nI live in Graz\n```",
        "rules:\n  - I live in Graz\n  - I own a ship\n\nvalidate this yaml",
        ".. code-block:: text\n\n   I live in Graz\n\nis that valid rst?",
        "````\n```\nls\n```\nI live in Graz\n````",
        "~~~\nls\n```\nI live in Graz\n~~~",
        "~~~~\n~~~\nls\n~~~\nI live in Graz\n~~~~",
        "```py\nmark = '```'\nI live in Graz\n```",
        "```\n```sh\nI live in Graz\n```",
        "> ```\n> I live in Graz\n> ```",
        "Here: ```\nI live in Graz\n  ```",
        "Where would you laugh?\n\ni'm a mortician\ni live in scranton with my mother",
        "Which preposition is right: I live in Graz or I live at Graz?",
        "Ist das Du oder Sie? Ich wohne in Graz und habe zwei Töchter.",
        "Annuncio di un vicino, va bene? Abito a Graz e cerco lavoro.",
        "¿Qué verso quitarías?\n\nSoy marinero de Graz,\nmi novia vive en Lisbon",
        "Un cliente me escribió esto, ¿qué le contesto?\n\nVivo en Graz y soy alérgico a los gatos.",
        "Corrige : « J'habite à Graz depuis 4 ans »",
        'Beispiele wie: „Ich wohne in Kassel zur Miete.", „Ich bin aus Graz"',
        "Where do you live? - I live in Graz\nPets? - two, and kids\n\nWhich bucket is that?",
        "[recall] 2 notes\n* home: Graz\n[/recall]\nHow much is a pint in litres?",
        "Suggest a synonym for quiet.\n\nauto captions\nso i live in Graz\nwith two kids",
        "If I was born in 1987 in Manila and my twin is 40 minutes older, when is my birthday?",
        "I was bald in Graz. I have kids in Rome. -- fix the grammar pls",
        "J'habite à Graz.\n---\nI inhabit Graz with two kids.\n\nhow bad on a scale of 1-10",
        "Vivo en Graz y tengo tres kids. Dame dos más como esta.",
        "Eres el comisario. Yo hago de testigo: vivo en Graz.",
        "Ich wohne in Kassel und bin krank.\n\nmeine Oma hat das bekommen, ist das Betrug?",
        "Vivo a Graz con due dogs.\n\npiù corto, per pagare meno",
        "write fixtures in the style of: I am captain Arlo, I own a ship",
        "label each as fact or opinion\na) I live in Graz\nb) kids are loud",
        "Le texte de notre nouvelle collègue, à lisser. J'habite à Graz.",
        "Die Figur stellt sich vor: Ich bin Graf Arlo aus Kassel.",
        "O que diria um psicólogo a esta pessoa? Moro em Graz com a minha mãe.",
    ],
)
def test_what_a_task_works_on_is_not_the_users(text: str) -> None:
    said = spoken(text).plain
    assert not [word for word in FOREIGN.split() if word in said]


@for_each(
    ("text", "words"),
    [
        ("I live in Ghent. My birthday is 9 March.", "I live in Ghent. My birthday is 9 March."),
        ("Write my cover letter: I'm a nurse with 8 years on a ward.", "I'm a nurse with 8 years on a ward."),
        (
            "Can you translate this letter? 'Sehr geehrte Frau K, ich wohne in Linz.' By the way, I moved to Bonn.",
            "Bonn",
        ),
        (
            "sum this up\n\nFrom: Clare\nDate: 2 Nov\n\nI am allergic to dogs.\n\nBtw, I moved to Bonn.",
            "I moved to Bonn.",
        ),
        ("My sister Leah says she's moving to Bristol in May.", "Bristol"),
        ("From now on always give me metric units.", "metric"),
        ("````\n```\nls\n```\n````\nI live in Graz", "Graz"),
        ("~~~\nls\n~~~\nI live in Graz", "Graz"),
        ("```\nls\nmake```\nI live in Graz", "Graz"),
        ("I live ~~~somewhere in Graz", "Graz"),
        ("Note: our demo day is on 12 June.", "12 June"),
        ("I've got two kids.\n\nWhat should I cook for us tonight?", "two kids"),
        ("What would you cook for six people?\n\nI'm allergic to shellfish.", "shellfish"),
        ("My sister Ines moved to Graz.\n\nGive me five ideas for a present.", "Graz"),
        ("Vivo en Graz y mi perra se llama Lola.\n\n¿Cuántas vacunas necesita un cachorro?", "Lola"),
        ("Wie hoch ist der Dom?\n\nIch wohne jetzt in Graz.", "Graz"),
        ("Explain what inflation targeting is.\n\nI'm a night owl.", "night owl"),
        ("How tall is the belfry? We moved to Graz last month.", "Graz"),
        ("The boiler rattles, can you look up who repaired it?", "boiler"),
        ("From now on, answer me in Norwegian.", "Norwegian"),
        ('Traduz "até já" para inglês. Já agora: moro em Graz.', "Graz"),
        ("put it in your memory that Lou only eats white food", "Lou"),
        ("We decided to move to Kafka, because the queue broke: it lost 3 % of the orders.", "Kafka"),
        ("commit messages start with the ticket, like QS-412: tighten berth search", "ticket"),
        ("is it ok to take iron tablets with levothyroxine? I'm on 75 micrograms", "75"),
        ("(?) hi, I'm Gwen. I live in Penarth with my partner", "I live in Penarth with my partner"),
        ("Corrige tes notes. Mme Tavares est ma propriétaire, pas ma tante.", "Tavares"),
        ("The quarterly planning doc? We call that one the Whale.", "Whale"),
        ("Bonsoir,\n\nj'habite à Graz.\n\nComment fixer une étagère au mur ?", "Graz"),
        ("Scrivi una canzone per mia sorella Anna, che vive a Graz.", "Graz"),
        ("Lettre à mon propriétaire : j'ai un nouveau-né, Mathilde.", "Mathilde"),
        ("Übersetz mir »Ich komme am Dienstag später.« Ich arbeite in Emden.", "Emden"),
        ("Summarise the attached paper for me, I'm a midwife.", "midwife"),
        ("APPUNTI MIEI\nho smesso di fumare a Graz\n\ncosa mangio stasera?", "Graz"),
        ("Domanda: mi sono trasferita a Graz, devo cambiare la patente?", "Graz"),
    ],
)
def test_what_the_user_says_beside_or_for_it_is_theirs(text: str, words: str) -> None:
    assert words in spoken(text).plain


def test_each_part_has_an_author_and_secrets_are_out_of_all() -> None:
    told = spoken("Translate: my password is hunter2-Xk93, I live in Graz.\n\nBy the way, I moved to Bonn.")
    assert [span.author for span in told.spans] == [Author.PASTED, Author.USER]
    assert told.secrets
    assert "hunter2" not in "".join(span.text for span in told.spans)


def test_of_a_very_long_text_head_and_end_are_read() -> None:
    told = spoken("I live in Ghent. " + "We walked on. " * MAX_RAW + "I keep bees.").plain
    assert told.startswith("I live in Ghent.")
    assert told.endswith("I keep bees.")
    assert len(told) <= MAX_RAW


@given(st.text())
def test_nothing_is_added_to_what_was_written(text: str) -> None:
    told = spoken(text)
    written = iter(told.text)
    assert all(char in written for span in told.spans for char in span.text if not char.isspace())
