"""The words that slots are made out by, in English."""

from __future__ import annotations

import re

from perdure.regex import lazy

KEYS = {
    "e-mail": "email", "email": "email", "mail": "email", "email address": "email", "e-mail address": "email",
    "date of birth": "birthday", "home town": "hometown", "hometown": "hometown", "profession": "job",
    "occupation": "job", "mother tongue": "language", "native language": "language", "first language": "language",
    "phone number": "phone", "mobile number": "phone", "mobile": "phone", "food allergy": "allergy",
}  # fmt: skip
"""Nouns for what has a fixed key."""

QUALIFIERS = lazy(r"^(?:(?:new|current|own|actual|real|present|the|my|our)\b ?)+", re.IGNORECASE)
"""What stands before a noun and does not belong to it."""

NOBODY = frozenset(
    [
        "it",
        "this",
        "that",
        "there",
        "he",
        "she",
        "they",
        "we",
        "you",
        "i",
        "which",
        "who",
        "what",
        "the",
        "a",
        "an",
        "my",
        "our",
        "your",
        "his",
        "her",
        "its",
        "their",
        "these",
        "those",
        "and",
        "but",
        "so",
        "or",
        "if",
        "when",
        "where",
        "how",
        "why",
        "not",
        "no",
        "yes",
        "ok",
        "okay",
        "please",
        "also",
        "then",
        "now",
        "today",
        "tomorrow",
        "yesterday",
        "actually",
        "always",
        "never",
        "from",
        "by",
        "just",
        "still",
        "only",
        "since",
        "because",
        "internally",
        "correction",
        "sorry",
        "thanks",
        "here",
        "let",
        "everyone",
        "nobody",
        "somebody",
        "someone",
        "anyone",
        "all",
        "both",
        "each",
        "every",
        "one",
        "two",
        "some",
        "any",
        "most",
        "correct",
        "decision",
        "final",
        "turns",
        "hi",
        "hello",
    ]
)
"""Words with a capital at the beginning of a sentence that are nobody's name."""

KIN = frozenset(
    [
        "mother",
        "father",
        "mum",
        "mom",
        "dad",
        "brother",
        "sister",
        "son",
        "daughter",
        "wife",
        "husband",
        "partner",
        "girlfriend",
        "boyfriend",
        "ex",
        "cousin",
        "uncle",
        "aunt",
        "niece",
        "nephew",
        "grandma",
        "grandpa",
        "grandmother",
        "grandfather",
        "gran",
        "granddad",
        "nan",
        "flatmate",
        "roommate",
        "housemate",
        "friend",
        "boss",
        "manager",
        "colleague",
        "neighbour",
        "neighbor",
        "brother-in-law",
        "sister-in-law",
        "mother-in-law",
        "father-in-law",
        "kid",
        "kids",
        "child",
        "children",
        "parents",
        "godson",
        "goddaughter",
        "fiance",
        "fiancee",
        "stepson",
        "stepdaughter",
        "twin",
        "dog",
        "cat",
    ]
)
"""Nouns for who belongs to somebody; what these are is said of them, not of the user."""

DIETS = lazy(
    r"(?:an? )?(?:strict |mostly |lifelong )?(?:vegan|vegetarian|veggie|pescatarian|pescetarian|flexitarian|coeliac|"
    r"celiac|gluten[- ]free|lactose[- ]free|dairy[- ]free|halal|kosher|keto|teetotal)\b",
    re.IGNORECASE,
)

NOT_JOBS = frozenset(
    [
        "father",
        "mother",
        "brother",
        "sister",
        "daughter",
        "member",
        "beginner",
        "lover",
        "believer",
        "follower",
        "stranger",
        "person",
        "number",
        "winner",
        "christian",
        "vegetarian",
        "parent",
        "owner",
        "user",
        "customer",
        "lover",
        "sufferer",
        "beginner",
        "reader",
        "sleeper",
        "eater",
        "early-riser",
        "riser",
        "loner",
        "owner",
        "fan",
        "plant",
        "ant",
        "elephant",
        "giant",
        "infant",
        "woman",
        "man",
        "letter",
        "computer",
        "server",
        "matter",
        "letter",
        "corner",
        "monster",
        "hamster",
        "tiger",
        "spider",
        "panther",
        "mirror",
        "color",
        "colour",
        "floor",
        "door",
        "hour",
        "terrier",
        "retriever",
        "pointer",
        "setter",
        "setter",
        "italian",
        "german",
        "indian",
        "russian",
        "norwegian",
        "brazilian",
        "asian",
        "european",
        "american",
        "canadian",
        "australian",
        "egyptian",
    ]
)
"""Words that end like a profession and are none."""

LIKINGS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (verb, lazy(pattern, re.IGNORECASE))
    for verb, pattern in (
        ("dislike", r"(?:do(?:es)?(?:n't| not)|don't) (?:really )?(?:like|enjoy|love|care for)|dislikes?|"
                    r"not (?:really )?(?:a (?:big |huge |great )?fan of|keen on|fond of|into|crazy about)"),
        ("hate", r"hates?|(?:can't|cannot|can not|couldn't) (?:stand|bear|abide|stomach)|loathes?|detests?|despises?"),
        ("prefer", r"prefers?"),
        ("love", r"loves?|adores?|(?:crazy|mad|nuts|wild) about|obsessed with|addicted to|hooked on|"
                 r"(?:a )?(?:big |huge |great )?(?:fan of|sucker for)|really into|fond of|keen on"),
        ("like", r"likes?"),
        ("enjoy", r"enjoys?"),
        ("want", r"wants?|(?:'d|would) (?:\w+ )?(?:like|love)"),
        ("avoid", r"avoids?"),
        ("need", r"needs?"),
    )
)  # fmt: skip
"""Patterns of what people feel about things, by the verb that stands for them."""

PREFERENCES = frozenset(["prefer", "like", "love", "hate", "dislike", "enjoy", "want", "avoid", "diet"])

BASE_FORMS = {
    "has": "have", "have got": "have", "has got": "have", "got": "have", "studies": "study", "studying": "study",
    "driving": "drive", "carries": "carry", "teaches": "teach", "watches": "watch", "catches": "catch",
    "owned": "own", "using": "use", "playing": "play", "runs": "run", "ran": "run",
} | {
    f"{verb}s": verb
    for verb in (  # noqa: SIM905
        "use own drive play need cost weigh take contain hold support read write collect sing listen expire "
        "rent sell build keep wear speak report supply serve handle store cover last measure close open start "
        "end meet rotate manage lead train coach breed grow sleep earn charge host power require depend "
        "commute cycle drink eat"
    ).split()
}  # fmt: skip
"""The base form of a verb, by its other forms."""

BASES = frozenset(BASE_FORMS.values())

VERBS = "|".join(
    sorted(
        {*BASE_FORMS, *BASE_FORMS.values()} - {"got", "have got", "last", "end", "open", "close"}, key=len, reverse=True
    )
)
