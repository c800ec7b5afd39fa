"""Secrets that are known by their shape: a table of rules, and a scanner for private keys.

To add a provider, add a row to `RULES`. What keeps every rule linear and cheap:
its hints are literals that are looked for first; it begins where no run of the same characters
goes on (`_LEFT`), so no run is read twice; its quantifiers are possessive or bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple


class Span(NamedTuple):
    """A secret in a text: from `start` up to `end`, and what it is."""

    start: int
    end: int
    kind: str


def _any(_: str) -> bool:
    return True


def _has_digit(secret: str) -> bool:
    """A generated token has digits; a placeholder such as sk-your-key-here has none."""
    return any(char.isdigit() for char in secret)


def _varied(secret: str) -> bool:
    return len(set(secret)) >= 8


@dataclass(frozen=True, slots=True)
class Rule:
    """One shape of secret.

    Attributes:
        kind: what stands in the place of the secret.
        hints: the pattern is tried only on texts that hold one of these literals.
        pattern: the secret is its group "secret", or else all it matches.
        accept: whether what was matched is a secret.
    """

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    accept: Callable[[str], bool] = _any

    def spans(self, text: str) -> Iterator[Span]:
        """Yield the secrets of this shape, in order, none over another."""
        # The last character of a prefix is often one that prose has not: `_` costs next to nothing to miss.
        if not any(hint[-1] in text and hint in text for hint in self.hints):
            return
        group = "secret" if "secret" in self.pattern.groupindex else 0
        for match in self.pattern.finditer(text):
            if self.accept(match[group]):
                yield Span(*match.span(group), self.kind)


# In JSON a token may follow an escaped line break: the letter of \n is then no part of it.
_LEFT = r"(?:(?<![\w-])|(?<=\\[nrt]))"


def _token(kind: str, prefixes: str, body: str, accept: Callable[[str], bool] = _has_digit) -> Rule:
    """Return the rule for tokens that begin with one of the prefixes (separated by spaces)."""
    hints = tuple(prefixes.split())
    starts = "|".join(map(re.escape, hints))
    return Rule(kind, hints, re.compile(f"{_LEFT}(?:{starts}){body}", re.ASCII), accept)


RULES: tuple[Rule, ...] = (
    Rule(
        "webhook",
        ("hooks.slack.com/", "/api/webhooks/", "/webhooks/"),
        re.compile(
            r"https://(?:hooks\.slack\.com/(?:services|workflows|triggers)/[\w/+-]{8,}+"
            r"|(?:\w{1,20}\.)?discord(?:app)?\.com/api/(?:v\d{1,3}/)?webhooks/\d{1,30}/[\w-]{8,}+)"
        ),
    ),
    # `user:` may be empty; the last @ in front of the path ends the password.
    Rule(
        "url-password",
        ("://",),
        re.compile(r"://[^\s/@:\"'<>]{0,200}:(?P<secret>(?![$%{<*]|\[redacted )[^\s/\"'<>]{1,200})@"),
    ),
    Rule("jwt", ("eyJ",), re.compile(_LEFT + r"eyJ[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+){0,3}")),
    _token("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", r"\w{10,}+"),
    _token("webhook-key", "whsec_", r"[\w+/=]{16,}+"),
    _token("anthropic-key", "sk-ant-", r"[\w-]{16,}+"),
    _token("api-key", "sk-", r"[\w-]{16,}+"),
    _token(
        "api-key",
        "gsk_ xai- r8_ pplx- tvly- fw_ lin_api_ ntn_ figd_ dop_v1_ shpat_ dckr_pat_",
        r"[\w-]{20,}+",
    ),
    _token("github-token", "ghp_ gho_ ghs_ ghu_ ghr_", r"\w{20,}+"),
    _token("github-token", "github_pat_", r"\w{20,}+"),
    _token("gitlab-token", "glpat- gldt- glrt-", r"[\w-]{16,}+"),
    _token("slack-token", "xoxa- xoxb- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs- xapp-", r"[\w.-]{10,}+"),
    _token("aws-key", "AKIA ASIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])", _varied),
    _token("google-key", "AIza", r"[\w-]{35}"),
    _token("google-key", "GOCSPX- ya29.", r"[\w-]{20,}+"),
    _token("huggingface-token", "hf_", r"[A-Za-z0-9]{20,}+"),
    _token("npm-token", "npm_", r"[A-Za-z0-9]{30,}+"),
    _token("pypi-token", "pypi-", r"[\w-]{40,}+"),
    _token("sendgrid-key", "SG.", r"[\w-]{16,}+\.[\w-]{16,}+"),
    _token("private-key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{20,}+"),
    Rule("bot-token", (":AA",), re.compile(r"(?<![\w-])\d{8,10}:AA[\w-]{33}(?![\w-])")),
    Rule(
        "authorization",
        ("uthorization", "UTHORIZATION"),
        re.compile(
            r"authorization[\"'\\]{0,3}\s{0,4}[:=]\s{0,4}[\"'\\]{0,3}"
            r"(?:bearer|basic|token|digest|bot|apikey|negotiate)\s{1,4}"
            r"(?P<secret>(?![$%{<*]|your)[^\s\"'\\,;\[\]<>]{6,})",
            re.IGNORECASE,
        ),
    ),
    Rule(
        "authorization",
        ("earer ", "EARER "),
        re.compile(r"\bbearer\s{1,4}(?P<secret>[\w.~+/=-]{12,}+)", re.IGNORECASE),
        _has_digit,
    ),
    Rule(
        "password",
        (" -u", "--user"),
        re.compile(r"(?<!\S)(?:-u|--user)[\s=]{0,2}[\"']?[^\s:\"'$]{1,64}:(?P<secret>(?![$%{<*\[])[^\s\"']{3,128})"),
    ),
)

_BEGIN = "-----BEGIN "
_END = "-----END "
_KEY_HEADER = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_FOOTER = re.compile(r"-----END [A-Z0-9 ]{0,60}-----")
_BREAK = r"(?:\\[nr]|[\"'+,\s|>]){1,40}+"
# The body of a key whose end is missing: lines of base64, and header lines such as "DEK-Info: ...".
_KEY_BODY = re.compile(
    rf"(?:{_BREAK}(?:[A-Za-z0-9+/=]{{16,}}+|(?:Proc-Type|DEK-Info|Version|Comment):[^\n\\]{{1,200}}+))*+"
    rf"(?:(?:\\n|\n)[A-Za-z0-9+/=]{{4,}}+(?=\s|\\|[\"']|$))?"
)


def private_keys(text: str) -> Iterator[Span]:
    """Yield the private keys in PEM form, whether their end is there or not."""
    start = text.find(_BEGIN)
    end = -1
    while start >= 0:
        following = text.find(_BEGIN, start + 1)
        header = _KEY_HEADER.match(text, start)
        if header is not None:
            if 0 <= end < start or end == -1:
                end = text.find(_END, start)
                end = len(text) if end < 0 else end
            footer = _KEY_FOOTER.match(text, end)
            if footer is not None and (following < 0 or end < following):
                yield Span(start, footer.end(), "private-key")
            else:
                body = _KEY_BODY.match(text, header.end())
                if body is not None and body.end() > body.start():
                    yield Span(start, body.end(), "private-key")
        start = following
