# ruff: noqa: RUF001 (the letters and marks of ten languages)
"""Statements in ten languages beside English: what is kept, what is not, and what slot it fills."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perdure.capture
from perdure.capture.describe import describe
from perdure.capture.language import ANYWHERE, CODES, STARTS, foreign_cue, foreign_slot, language, language_of
from perdure.capture.statements import Statement, statements
from perdure.text.normalise import fold

DATA = Path(perdure.capture.__file__).parent / "data"
KEPT = {
    "de": ["Meine Schwester wohnt in Bremen.", "Kaffee trinke ich nur schwarz.", "Wir haben uns für Rust entschieden.",
           "Antworte mir ab jetzt auf Deutsch.", "Das Meeting ist um vier, nicht um drei."],
    "fr": ["Ma sœur habite à Brest.", "Je préfère le thé au café.", "On a choisi Postgres pour le projet.",
           "Réponds-moi toujours en français.", "Je me marie en octobre."],
    "es": ["Mi hermana vive en Bilbao.", "No soporto el cilantro.", "Al final nos quedamos con Postgres.",
           "A partir de ahora háblame de usted.", "Trabajo de noche en un hospital."],
    "pt": ["Minha irmã mora em Natal.", "Não suporto coentro.", "A gente decidiu usar Postgres.",
           "Daqui pra frente, responda sempre em português.", "O nosso cachorro chama-se Pastel."],
    "sv": ["Min syster bor i Malmö.", "Jag gillar te bättre än kaffe.", "Vi bestämde oss för Postgres.",
           "Svara mig alltid på svenska.", "Vår katt heter Fru Svensson."],
    "cs": ["Moje sestra bydlí v Brně.", "Nesnáším koriandr.", "Nakonec jsme se rozhodli pro Postgres.",
           "Odteď mi odpovídej česky.", "Testovacímu serveru říkáme Krteček."],
    "pl": ["Moja siostra mieszka w Gdańsku.", "Nie znoszę kolendry.", "W końcu zdecydowaliśmy się na Postgresa.",
           "Od teraz odpowiadaj mi po polsku.", "Nasz kot nazywa się Mruczek."],
    "tr": ["Kız kardeşim Ankara'da yaşıyor.", "Kişnişten nefret ediyorum.", "Sonunda Postgres'e geçmeye karar verdik.",
           "Bundan sonra bana Türkçe cevap ver.", "Bizim kedinin adı Boncuk."],
    "ar": ["أختي تعيش في الإسكندرية.", "لا أطيق الكزبرة.", "قررنا في النهاية استخدام Postgres.",
           "من الآن فصاعدا أجبني بالعربية.", "قطتنا اسمها لولو."],
    "hi": ["मेरी बहन पुणे में रहती है।", "मुझे धनिया बिल्कुल पसंद नहीं है।", "आख़िर में हमने Postgres चुना।",
           "अब से मुझे हिंदी में जवाब दो।", "हमारी बिल्ली का नाम मोती है।"],
    "ru": ["Моя сестра живёт в Казани.", "Терпеть не могу кинзу.", "Мы решили перейти на Postgres.",
           "С этого момента отвечай мне по-русски.", "Нашу кошку зовут Муся."],
    "zh": ["我妹妹在成都当护士。", "我吃不了辣。", "我们决定用 Postgres。", "以后注释一律用中文。", "我家猫叫年糕。"],
    "ja": ["妹は福岡で看護師をしています。", "辛いものは食べられない。", "Postgresを使うことにしました。",
           "これからは英語で書いてください。", "うちの猫の名前はきなこです。"],
    "ko": ["제 여동생은 부산에서 간호사로 일해요.", "매운 건 잘 못 먹어요.", "우리는 Postgres를 쓰기로 했어요.",
           "앞으로는 반말로 대답해 줘.", "우리 고양이 이름은 나비예요."],
}  # fmt: skip
DROPPED = {
    "de": ["Was ist der Unterschied zwischen Tee und Kaffee?", "Schreib mir bitte ein Gedicht über den Herbst.",
           "Wenn ich reich wäre, würde ich in Rom wohnen.", "Sie sagte: „Ich hasse meinen neuen Job.“",
           "Bin gerade im Zug, bis gleich.", "Das geht schon wieder nicht, verdammt!"],
    "fr": ["C'est quoi la différence entre un thé et un café ?", "Écris-moi un poème sur l'automne.",
           "Si j'étais riche, j'habiterais à Rome.", "Elle a dit : « Je déteste mon nouveau travail. »",
           "Je suis dans le train, à tout à l'heure.", "Ça ne marche toujours pas, j'en ai marre !"],
    "es": ["¿Cuál es la diferencia entre el té y el café?", "Escríbeme un poema sobre el otoño.",
           "Si fuera rico, viviría en Roma.", "Ella dijo: «Odio mi nuevo trabajo».",
           "Estoy en el tren, luego te escribo.", "Otra vez no funciona, estoy harta."],
    "pt": ["Qual é a diferença entre chá e café?", "Escreve um poema sobre o outono, por favor.",
           "Se eu fosse rico, moraria em Roma.", "Ela disse: «Odeio o meu novo trabalho».",
           "Estou no ônibus, já volto.", "Não funciona de novo, que raiva!"],
    "sv": ["Vad är skillnaden mellan te och kaffe?", "Skriv en dikt om hösten åt mig.",
           "Om jag vore rik skulle jag bo i Rom.", "Hon sa: ”Jag hatar mitt nya jobb.”",
           "Sitter på tåget, strax framme.", "Nu funkar det inte igen, jag blir galen!"],
    "cs": ["Jaký je rozdíl mezi čajem a kávou?", "Napiš mi básničku o podzimu.",
           "Kdybych byl bohatý, bydlel bych v Římě.", "Řekla: „Nenávidím svou novou práci.“",
           "Jsem ve vlaku, za chvíli jsem tam.", "Zase to nefunguje, já se zblázním!"],
    "pl": ["Jaka jest różnica między herbatą a kawą?", "Napisz mi wiersz o jesieni.",
           "Gdybym był bogaty, mieszkałbym w Rzymie.", "Powiedziała: „Nienawidzę mojej nowej pracy”.",
           "Jestem w pociągu, zaraz będę.", "Znowu nie działa, zwariuję!"],
    "tr": ["Çay ile kahve arasındaki fark nedir?", "Bana sonbahar hakkında bir şiir yaz.",
           "Zengin olsaydım Roma'da yaşardım.", "\"Yeni işimden nefret ediyorum\" dedi.",
           "Şu an trendeyim, birazdan gelirim.", "Yine çalışmıyor, delireceğim!"],
    "ar": ["ما الفرق بين الشاي والقهوة؟", "اكتب لي قصيدة عن الخريف.", "لو كنت غنيا لعشت في روما.",
           "قالت: \"أكره عملي الجديد جدا\".", "أنا في القطار، أصل بعد قليل.", "لا يعمل مرة أخرى، سأجن!"],
    "hi": ["चाय और कॉफ़ी में क्या अंतर है?", "मुझे पतझड़ पर एक कविता लिखो।",
           "अगर मैं अमीर होता तो रोम में रहता।", "उसने कहा, \"मुझे अपनी नई नौकरी से नफ़रत है।\"",
           "मैं अभी ट्रेन में हूँ, थोड़ी देर में आता हूँ।", "फिर से काम नहीं कर रहा, मैं पागल हो जाऊँगा!"],
    "ru": ["Какая разница между чаем и кофе?", "Напиши мне стихотворение про осень.",
           "Если бы я был богат, я бы жил в Риме.", "Она сказала: «Ненавижу свою новую работу».",
           "Я в поезде, скоро буду.", "Опять не работает, я сойду с ума!"],
    "zh": ["茶和咖啡有什么区别？", "帮我写一首关于秋天的诗。", "如果我是有钱人，就住在罗马了。",
           "电影里她说：“我讨厌我的新工作，再也不去了。”", "我在地铁上，等一下。",
           "又崩了，气死我了！"],
    "ja": ["お茶とコーヒーの違いは何ですか？", "秋の詩を書いてください。",
           "もし私がお金持ちだったら、ローマに住みたいな。",
           "映画で彼女が「私は新しい仕事が大嫌いです」と言っていた。", "今電車の中です、また後で。",
           "また動かない、もう嫌だ！"],
    "ko": ["차와 커피의 차이가 뭐예요?", "가을에 대한 시를 써 줘.", "내가 부자라면 로마에 살 텐데.",
           "영화에서 그녀가 \"나는 새 직장이 정말 싫어요\"라고 했어.", "지금 지하철 안이야, 이따 봐.",
           "또 안 돼, 미치겠네!"],
}  # fmt: skip
SLOTS = [
    ("Ich heiße Anna Weiß.", "entity", ("user", "name", "Anna Weiß")),
    ("Mein Hausarzt ist Dr. Brandt.", "entity", ("user", "hausarzt", "Dr. Brandt")),
    ("J'habite à Lyon depuis 2010.", "fact", ("user", "location", "Lyon")),
    ("Mi perra se llama Croqueta.", "entity", ("perra", "name", "Croqueta")),
    ("Moro em São Paulo.", "fact", ("user", "location", "São Paulo")),
    ("Vår katt heter Fru Svensson.", "entity", ("katt", "name", "Fru Svensson")),
    ("Můj bratr je lékař.", "fact", ("user", "bratr", "lékař")),
    ("Mieszkam w Krakowie od 2019.", "fact", ("user", "location", "Krakowie")),
    ("Benim adım Deniz.", "entity", ("user", "name", "Deniz")),
    ("اسمي ليلى.", "entity", ("user", "name", "ليلى")),
    ("मैं दिल्ली में रहता हूँ।", "fact", ("user", "location", "दिल्ली")),
    ("Меня зовут Алёна.", "entity", ("user", "name", "Алёна")),
    ("我对花生过敏。", "preference", ("user", "allergy", "花生")),
    ("大阪に住んでいます。", "fact", ("user", "location", "大阪")),
    ("제 이름은 김민수입니다.", "entity", ("user", "name", "김민수")),
]
ENGLISH = ["I live in Des Moines with my son.", "Die Hard is on tonight.", "Call me Åsa.", "On me!", "Ok", "42", "",
           "I took the number 12 tram to a place in Malmö."]  # fmt: skip


@pytest.mark.parametrize(("code", "text"), [(code, text) for code, texts in KEPT.items() for text in texts])
def test_a_statement_is_kept_as_it_was_said(code: str, text: str) -> None:
    assert [statement.text for statement in statements(text)] == [text]


@pytest.mark.parametrize(("code", "text"), [(code, text) for code, texts in DROPPED.items() for text in texts])
def test_what_is_asked_wanted_supposed_quoted_or_over_tomorrow_is_not_kept(code: str, text: str) -> None:
    assert statements(text) == []


@pytest.mark.parametrize(
    ("code", "text"), [(code, text) for said in (KEPT, DROPPED) for code, texts in said.items() for text in texts]
)
def test_the_language_of_a_sentence_is_told(code: str, text: str) -> None:
    assert language_of(text, code) == code
    assert language_of(" ".join(KEPT[code])) == code


@pytest.mark.parametrize("text", ENGLISH)
def test_english_and_what_says_too_little_is_taken_for_english(text: str) -> None:
    assert language_of(text) == "en"


def test_what_says_too_little_is_taken_for_the_language_around_it() -> None:
    assert language_of("簿記試験", "ja") == "ja"
    assert language_of("簿記試験") == "zh"
    assert language_of("Biscotte", "fr") == "fr"


@pytest.mark.parametrize(("text", "category", "slot"), SLOTS)
def test_category_and_slot(text: str, category: str, slot: tuple[str, str, str]) -> None:
    [statement] = statements(text)
    described = describe(statement)
    assert described.slot is not None
    assert (described.category, (described.slot.entity, described.slot.key, described.slot.value)) == (category, slot)


def test_what_fills_no_template_has_no_slot() -> None:
    assert describe(Statement("Wir haben uns für Rust entschieden.", "decision")).slot is None


def test_a_rule_is_a_decision_and_a_bare_wish_to_remember_is_neither_here_nor_there() -> None:
    assert describe(Statement("Ab jetzt schreibst du mir auf Deutsch.", "convention")).category == "decision"
    assert describe(Statement("Merk dir bitte das mit dem Schlüssel.", "remember")).category == "other"


def test_a_quotation_that_goes_on_in_the_next_sentence_is_not_kept() -> None:
    assert statements("教科書の例文が「私の名前は健太です。毎朝六時に起きます」だった") == []


def test_a_name_in_quotation_marks_is_no_quotation() -> None:
    assert statements("公司内部那个审批系统大家都管它叫“小黄门”") != []


def test_a_statement_is_kept_without_the_question_behind_it() -> None:
    assert statements("Meine Schwester wohnt in Bremen, wie komme ich da hin?")
    assert statements("Wie komme ich nach Bremen, wo meine Schwester wohnt?") == []


@pytest.mark.parametrize("code", CODES)
def test_every_pattern_is_folded_and_compiles(code: str) -> None:
    content = tomllib.loads((DATA / f"{code}.toml").read_text(encoding="utf-8"))
    slots = content.pop("slots")
    assert set(content) <= {*STARTS, *ANYWHERE, "openers", "spaces", "behind"}
    lists = [values for values in (*content.values(), *slots.values()) if isinstance(values, list)]
    for pattern in (pattern for values in lists for pattern in values):
        assert pattern == fold(pattern)
        re.compile(pattern)


@pytest.mark.parametrize("code", CODES)
def test_no_pattern_matches_everything(code: str) -> None:
    words = language(code)
    for name in (*STARTS, *ANYWHERE):
        assert not getattr(words, name).search("")
        assert not getattr(words, name).fullmatch("x")


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200), st.sampled_from(CODES))
def test_any_text_is_judged_without_an_error(text: str, code: str) -> None:
    assert foreign_cue(text, fold(text), code) in (None, "remember", "convention", "decision", "preference",
                                                      "entity", "factual")  # fmt: skip
    found = foreign_slot(text, code)
    assert found is None or found.value in text or fold(found.value) in fold(text)
    assert language_of(text, code) in (*CODES, "en")


def test_a_sentence_without_end_is_not_judged() -> None:
    assert foreign_cue("ich wohne in Graz " * 100, "ich wohne in graz " * 100, "de") is None
