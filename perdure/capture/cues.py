"""The words that tell statements from talk: patterns over folded text, unless a name says otherwise."""

from __future__ import annotations

import re

from perdure.text.normalise import fold

QUESTION = re.compile(
    r"(?:(?:and|but|so|ok|okay|hey|hi|oh|well)[, ]+)*"
    r"(?:what|who|whom|whose|where|when|why|which|how)(?:'s|'re|'d| (?:is|are|was|were|do|does|did|can|could|should|"
    r"would|will|about|many|much|long|often|to))\b"
    r"|(?:can|could|would|will|do|does|did|is|are|was|were|should|shall|have|has|may|am) "
    r"(?:you|i|we|it|there|this|that|they|he|she|the|my|our|your|anyone|someone)\b"
)
EXPLICIT = (
    ("remember", re.compile(
        r"\b(?:remember|do ?n[o']t forget|keep in mind|note|for the record|fyi|make a note)\b"
        r"(?: that|:|,| my| our| i\b)"
    )),
    ("convention", re.compile(
        r"^(?:please |and |but |so |ok |okay )?(?:always|never|from now on|going forward|in (?:the )?future|by "
        r"default)\b|\b(?:i|we|you|must|should|please) (?:should |must )?(?:always|never)\b|\bfrom now on\b"
    )),
)  # fmt: skip
TALK = re.compile(
    r"(?:(?:oh|ah|well|yeah|yes|no|ok|okay|hey|hi|hello|thanks|thank you|wow|great|cool|nice|sure|haha|lol|"
    r"hmm)[,.! ]+)*"
    r"(?:i(?:'m| am) (?:fine|good|ok|okay|well|great|sorry|glad|happy (?:to|for)|sure|not sure|afraid|"
    r"here|back|done|"
    r"ready|in|so (?:glad|happy|proud|sorry)|really (?:glad|happy|proud)|proud of you|listening|impressed|curious)\b"
    r"|i (?:see|agree|understand|know|guess|mean|hope|bet|think so|do n[o']t know|don't know|get it|told you|said|"
    r"asked|appreciate|wonder|suppose|can imagine|can't wait to (?:hear|see)|'ll let you know|will let you know)\b"
    r"|(?:let me|let's|lets|hope|good luck|congrat|take care|see you|talk|that's|that is|it's|it is|this is|sounds|"
    r"what a|how)\b)"
)
REQUEST = re.compile(
    r"(?:please |ok |okay |now |then |and |so |just )*(?:write|show|tell|give|explain|fix|help|make|create|add|run|"
    r"find|list|check|open|send|draft|summari[sz]e|translate|generate|update|change|delete|remove|try|look|use|read|"
    r"compare|suggest|recommend|plan|book|set|put|refactor|implement|review|test|build|do|go|stop|start|call(?! me)|"
    r"search|continue)\b"
    r"|i(?: want|'d like| would like| need) you to\b|i need (?:help|your)\b"
)
PASSING = re.compile(
    r"\bi(?:'m| am| was) (?:just )?(?:getting|seeing|trying|running|looking|wondering|asking|having|reading|testing|"
    r"debugging|working on it|about to|going to (?:try|check|look))\b|\b(?:error|exception|traceback|stack trace)\b"
    r"|\bi(?:'ll| will) (?:try|check|look|think|see|be back|get back)\b|\b(?:you|it) (?:keep|don't|didn't|doesn't)\b"
)
UNSURE = re.compile(
    r"^(?:if|suppose|imagine|what if|let's say|assume)\b|\b(?:maybe|perhaps|probably|i might|we might|i could|"
    r"i would)\b"
)
CUES = (
    ("decision", re.compile(
        r"\b(?:i|we|i've|we've|team|they)\b[^.]{0,40}\b(?:decided|chose|went with|are going with|going with|picked|"
        r"selected|settled on|opted|agreed|switched|will use|are using)\b|\bdecision\b|\binstead of\b"
    )),
    ("preference", re.compile(
        r"\b(?:i|we)(?:'d| would)? (?:really |also |much |still |now )?(?:prefer|like|love|hate|dislike|enjoy|adore|"
        r"can't stand|cannot stand|don't like|do not like|want|favou?r|avoid)\b|\b(?:favou?rite|preferred)\b"
        r"|\b(?:allergic|vegetarian|vegan|intolerant)\b"
    )),
    ("entity", re.compile(
        r"[\w.+-]{1,64}@[\w-]{1,64}\.\w{2,}|\+\d[\d -]{8,}|\b(?:is|are) (?:called|named)\b|\bname is\b|\bcall me\b"
    )),
    ("factual", re.compile(
        r"\b(?:my|our) [\w' -]{1,40}? (?:is|are|was|were|has|have|lives?|works?|got|moved|changed|starts?|turns?)\b"
        r"|\bi(?:'m| am) (?:a|an|the|from|based|married|single|divorced|engaged|pregnant|diabetic|\d+ years)\b"
        r"|\bi (?:live|work|moved|grew up|was born|studied|study|speak|own|drive|play|run|teach|use|have|had|got|"
        r"bought|started|joined|finished|quit|stopped|signed up|adopted|graduated|visited|went|took|lost|won|made)\b"
        r"|\bbirthday\b|\banniversary\b|\bdeadline\b|\bdue (?:on|by)\b"
        r"|\bthe [\w -]{1,30} (?:moved|changed|was moved|is now|has moved|was renamed) (?:to )?"
    )),
)  # fmt: skip
NAMED = re.compile(
    r"(?!(?:The|This|That|It|There|They|He|She|You|We|What|Here|Those|These|Thanks|Sounds|Yes|No|Not|So|But|And|Oh|"
    r"Well|Hey|Hi|Wow|Great)\b)[A-Z][\w-]+(?:'s)?(?: [A-Z][\w-]+)?(?: [\w-]+){0,2} (?:is|was|lives?|works?|has|"
    r"likes?|loves?|hates?|prefers?|moved|started|joined|got|runs?|owns?|plays?|speaks?|needs?|uses?|will|starts?|opens?)\b"
)
FIGURE = re.compile(r"[Tt]he [\w -]{1,40}? (?:is|are|starts?|ends?|opens?|runs?) (?:[a-z]+ ){0,3}[\"']?(?:\d|[A-Z])")
CONTINUES = re.compile(
    r"(?:it|that|this|they|he|she|its|his|her|their)(?:'s|'re| (?:is|was|are|were|has|had|lives?|works?))\b"
)
LEANS = re.compile(r"\b(?:it|that|this|them|him|her|so|too|there)[.!]*$")
"""The end of a clause that says nothing without the one before it: "I keep forgetting it"."""
LOG = re.compile(
    r"\d{4}-\d\d-\d\d[t ]\d\d:\d\d|(?:info|debug|warn|warning|error|fatal|trace)\b[ :\]]|at \w[\w.]*\(|file \""
)
_SELF = """
    i my mine me we our ours
    ich mein meine meinen meiner wir unser unsere
    je j mon mes nous notre
    yo mi mis nosotros nuestro
    eu meu minha
    jag mitt mina vår
    já můj moje mám náš
    я мой моя моё мои мне мы наш
"""
SELF = frozenset(fold(word) for word in _SELF.split())
"""Words for oneself, without what follows an apostrophe. Those that are common words of another language are
left out."""
DENSE_SELF = ("我", "咱", "私", "僕", "俺", "나는", "내 ", "제 ", "저는", "우리", "나의", "ฉัน", "ผม", "ดิฉัน", "หนู")
