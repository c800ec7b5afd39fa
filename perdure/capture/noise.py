"""Code, logs, markup and other pasted text: told by its shape, whatever the language."""

from __future__ import annotations

from perdure.regex import lazy
from perdure.secrets.redact import redact

MAX_EMOJI = 3
_QUOTED = lazy(r"\s*[>|]")
_PAIR = lazy(r"\s*[\"']?[\w.-]{1,60}[\"']?\s?[:=](?:\s|$)")
# In a group a host may put the speaker's name in front. A key of a file is written small, and its value is short.
_SPOKEN = lazy(r"\s*(?![a-z])[^\W\d_][\w'-]{0,20}(?: [^\W\d_][\w'-]{0,20})?\s?[:\uff1a] ?(?:\S+\s+){3}\S")
_LOG = lazy(
    r"\s*(?:\d\d:\d\d:\d\d\b|\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
    r"|(?i:cron|poll|heartbeat|keepalive|scheduled|automated|reminder trigger)\b[^:.]{0,30}:"
    r"|(?:GET|POST|PUT|DELETE|HEAD|PATCH) /|(?:FAILED|PASSED|ERROR|WARN|npm|pip)\b "
    r"|(?i:info|debug|warn|warning|error|fatal|trace|critical|system)\b ?[:\]]"
    r"|(?:remote|make|panic|hint|usage|stderr|stdout)\b ?[:=]|level="
    r"|at [\w.$<>]+ ?\(|File \"|Traceback|#!|//)"
)
_FAULT = lazy(r"\s*\w*(?:Error|Exception):")
_CODE = lazy(
    r"\s*(?:(?:curl|wget|kubectl|sudo) "
    r"|(?:git|npm|pnpm|yarn|docker|cd|ls|brew|apt|pip|cargo|make) [\w./-]+(?: -|$| &&| [\w./-]+$)"
    r"|SELECT .* FROM\b|(?:ALTER|CREATE|DROP|INSERT|UPDATE|DELETE) (?:TABLE|INTO|FROM|\w+ SET)\b"
    r"|(?:import|from) [\w.]+(?: import\b|$| as )"
    r"|(?:def|class|fn|func|function) \w+ ?[(:{]|(?:const|let|var) \w+ ?=|return\b(?:.*;| [\w.]+[(\[])"
    r"|(?:if|for|while) .*[:{]\s*(?:$|\w+\()|assert .*[=(]|[\w.\[\]]+ ?[:+-]?= ?\S|\w+\[\w+\]:)"
)
_MARKS = lazy(
    r"\b(?:FATAL|ERROR|CRITICAL)\b|[✗✓✔✘]|\w/*\.\w{1,4}:\d|\w \{.*\}|"
    r"/\*|\*/|\s//\s|=>|==|!=|&&|\|\||::|</|[\w-]: [^;]*;\s*$"
)
_OPENING = ("<", "{", "[", "$", "#", "}", "@@", "//", "/*", "*/")


def prose(text: str) -> str:
    """Return the text without fenced code, quoted lines and lines of logs, code and structured data."""
    outside = "\n".join(text.split("```")[::2])
    lines = outside.split("\n")
    pairs = [bool(_PAIR.match(line)) and not _SPOKEN.match(line) for line in lines]
    kept: list[str] = []
    for place, line in enumerate(lines):
        # One "name: value" may be speech, two in a row are a file.
        listed = pairs[place] and (pairs[place - 1 : place] == [True] or pairs[place + 1 : place + 2] == [True])
        if not listed and not _QUOTED.match(line) and not is_noise(line):
            kept.append(line)
    return "\n".join(kept)


def is_noise(line: str) -> bool:
    """Return whether a line or sentence is code, a log or markup, or holds more symbols than words should."""
    if line.lstrip().startswith(_OPENING) or _LOG.match(line) or _CODE.match(line) or _MARKS.search(line):
        return True
    emoji = sum(0x1F300 <= ord(char) <= 0x1FAFF for char in line)
    symbols = sum(char in "{}[]();=<>|\\_`$#" for char in line)
    return emoji > MAX_EMOJI or symbols > 3 + len(line) // 15


def is_fault(sentence: str) -> bool:
    """Return whether a sentence is the last line of a stack trace; what follows it may be speech."""
    return bool(_FAULT.match(sentence))


def is_secret(sentence: str) -> bool:
    """Return whether a sentence holds a secret, or held one."""
    return "[redacted" in sentence or bool(redact(sentence).kinds)
