"""Secrets that are known by their shape: a table of the tokens that providers give out.

To add a provider, add a row to `TOKENS`. What keeps every row linear and cheap: its prefixes are literals that are
looked for among long words only; it begins where no run of the same characters goes on (`LEFT`), so no run is read
twice; its quantifiers are possessive or bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from perdure.regex import lazy
from perdure.secrets.entropy import has_chance_letters

SHORTEST = 16
"""Characters without white space that every token of the table has at least."""


class Span(NamedTuple):
    """A secret in a text: from `start` up to `end`, and what it is."""

    start: int
    end: int
    kind: str


def lowered(text: str) -> str:
    """Return a text in lower case, each character at its place."""
    # Only one character gets longer when made lower; with it, positions would no longer agree.
    return text.replace("\u0130", "I").lower()


# Providers print such tokens in their manuals: they open nothing.
_DOCUMENTED = lazy(r"EXAMPLE(?:KEY)?$|(?P<same>[xX*])(?P=same){5}|IkpvaG4gRG9lI")

_PIECE = r"(?:[a-z]{1,15}|[A-Z][a-z]{1,15}|[A-Z]{2,10}|[a-z]{1,6}\d{1,3}|\d{1,4}|\d{1,2}[a-z]{1,2})"
_SLUG = lazy(rf"{_PIECE}(?:[-_.]{_PIECE})+\Z")


def is_documented(secret: str) -> bool:
    """Return whether a token only shows what one looks like: AKIA...EXAMPLE, xxxxxx, the token of jwt.io."""
    return _DOCUMENTED.search(secret) is not None


def any_token(secret: str) -> bool:
    """Accept all but documented examples."""
    return not is_documented(secret)


def is_made(secret: str) -> bool:
    """Accept what a machine made: it has a digit, or letters in an order that nobody would choose.

    A placeholder such as sk-your-key-here has neither.
    """
    made = any(map(str.isdigit, secret)) or has_chance_letters(secret.replace("-", ""))
    return made and not is_documented(secret)


def _is_token(secret: str) -> bool:
    """Accept what a machine made and what is no file name such as sk-learn-notes-2024.md."""
    return is_made(secret) and not is_slug(secret)


def is_slug(text: str) -> bool:
    """Return whether a text is words and numbers set apart by hyphens, underscores or dots, as file names are."""
    return _SLUG.match(text) is not None


def _varied(secret: str) -> bool:
    return len(set(secret)) >= 8 and not is_documented(secret)


@dataclass(frozen=True, slots=True)
class Rule:
    """One shape of secret.

    Attributes:
        kind: what stands in the place of the secret.
        hints: the pattern is tried only on texts that hold one of these literals.
        pattern: the secret is its group "secret", or else all it matches.
        accept: whether what was matched is a secret.
        prefixed: whether every match begins with one of the hints.
    """

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    accept: Callable[[str], bool] = any_token
    prefixed: bool = False

    def hinted(self, text: str) -> bool:
        """Return whether a text holds one of the hints."""
        # The last character of a prefix is often one that prose has not: `_` costs next to nothing to miss.
        return any(hint[-1] in text and hint in text for hint in self.hints)

    def spans(self, text: str) -> Iterator[Span]:
        """Yield the secrets of this shape."""
        group = "secret" if "secret" in self.pattern.groupindex else 0
        for match in self._starting(text) if self.prefixed else self.pattern.finditer(text):
            if self.accept(match[group]):
                yield Span(*match.span(group), self.kind)

    def _starting(self, text: str) -> Iterator[re.Match[str]]:
        # Quicker than to try the pattern everywhere.
        for hint in self.hints:
            at = text.find(hint)
            while at >= 0:
                match = self.pattern.match(text, at)
                if match is not None:
                    yield match
                at = text.find(hint, at + len(hint) if match is None else match.end())


# In JSON a token may follow an escaped line break, in a URL an escaped sign: their letters are then no part of it.
LEFT = r"(?:(?<![\w-])|(?<=\\[nrt])|(?<=%[0-9A-F]{2}))"


def _token(kind: str, prefixes: str, body: str, accept: Callable[[str], bool] = _is_token) -> Rule:
    """Return the rule for tokens that begin with one of the prefixes (separated by spaces)."""
    hints = tuple(prefixes.split())
    starts = "|".join(map(re.escape, hints))
    return Rule(kind, hints, re.compile(f"{LEFT}(?:{starts}){body}", re.ASCII), accept, prefixed=True)


TOKENS: tuple[Rule, ...] = (
    Rule(
        "webhook",
        ("hooks.slack.com/", "/api/webhooks/", "/webhooks/", ".webhook.office.com/"),
        lazy(
            r"https://(?:hooks\.slack\.com/(?:services|workflows|triggers)/[\w/+-]{8,}+"
            r"|(?:\w{1,20}\.)?discord(?:app)?\.com/api/(?:v\d{1,3}/)?webhooks/\d{1,30}/[\w-]{8,}+"
            r"|\w{1,60}\.webhook\.office\.com/webhookb2/[\w@/-]{20,}+)"
        ),
    ),
    _token("mapbox-token", "sk.eyJ", r"[\w-]{16,}+\.[\w-]{8,}+"),
    _token("1password-token", "ops_eyJ", r"[\w+/=-]{40,}+"),
    Rule("jwt", ("eyJ",), lazy(LEFT + r"(?<!pk\.)eyJ[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+){0,3}")),
    _token("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", r"\w{10,}+"),
    _token("webhook-key", "whsec_", r"[\w+/=]{16,}+"),
    _token("anthropic-key", "sk-ant-", r"[\w-]{16,}+"),
    _token("api-key", "sk-", r"[\w-]{16,}+"),
    _token(
        "api-key",
        "gsk_ xai- r8_ pplx- tvly- fw_ csk- nvapi- jina_ lin_api_ lin_oauth_ ntn_ secret_ figd_ figu_ dop_v1_ doo_v1_"
        " dor_v1_ pscale_tkn_ pscale_pw_ sbp_ sb_secret_ rubygems_ nfp_ glsa_ glc_ sntrys_ sntryu_ phc_ phx_ pul-"
        " PMAK- NRAK- NRIQ- hvs. hvb. hvr. dp.pt. dp.st. dt0c01. dt0s16. tskey-auth- tskey-api- tskey-client- napi_"
        " shippo_live_ duffel_live_ patp- EZAK xkeysib- xsmtpsib- fm1_ fm2_ fo1_ lsv2_pt_ lsv2_sk_ ctx7sk- e2b_"
        " vcp_ vca_ re_ key_live_ live_ cfut_ cfat_ ATCTT3 HRKU- uk1-pat- sha256~",
        r"[\w.+/=-]{20,}+",
    ),
    _token("github-token", "ghp_ gho_ ghs_ ghu_ ghr_ github_pat_", r"\w{20,}+"),
    _token("gitlab-token", "glpat- gldt- glrt- glptt- glft- glagent- glcbt- gloas- glsoat-", r"[\w.-]{16,}+"),
    _token("atlassian-token", "ATATT3 ATBB", r"[\w=-]{24,}+"),
    _token("slack-token", "xoxa- xoxb- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs- xoxc- xoxd- xapp-", r"[\w.%-]{10,}+"),
    _token("aws-key", "AKIA ASIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])", _varied),
    _token("aws-key", "ABSK bedrock-api-key-", r"[\w+/=-]{40,}+"),
    _token("google-key", "AIza", r"[\w-]{35}"),
    _token("google-key", "GOCSPX- ya29. 1//0", r"[\w-]{20,}+"),
    Rule("azure-key", ("Q~",), lazy(LEFT + r"[\w.~-]{3}\dQ~[\w.~-]{31,34}(?![\w~-])"), is_made),
    _token("huggingface-token", "hf_ api_org_", r"[A-Za-z0-9]{20,}+"),
    _token("npm-token", "npm_", r"[A-Za-z0-9]{30,}+"),
    _token("docker-token", "dckr_pat_ dckr_oat_", r"[\w-]{20,}+"),
    _token("pypi-token", "pypi-", r"[\w-]{40,}+"),
    _token("registry-token", "oy2", r"[a-z0-9]{43}(?![A-Za-z0-9])"),
    _token("registry-token", "cio", r"[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    _token("databricks-token", "dapi dkea", r"[0-9a-f]{32}(?:-\d)?(?![A-Za-z0-9])"),
    _token("shopify-token", "shpat_ shpss_ shpca_ shppa_", r"[0-9a-fA-F]{20,}+"),
    _token("square-token", "sq0atp- sq0csp- sq0idp-", r"[\w-]{20,}+"),
    _token("square-token", "EAAA", r"[\w-]{56,}+"),
    _token("facebook-token", "EAA", r"[A-Za-z0-9]{60,}+"),
    _token("twitter-token", "AAAAAAAAAAAAAAAAAAAA", r"[\w%]{40,}+"),
    _token("braintree-token", "access_token$production$ access_token$sandbox$", r"\w{10,}\$[0-9a-f]{20,}+"),
    _token("twilio-key", "SK", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    _token("mailgun-key", "key-", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    _token("hubspot-token", "pat-na1- pat-na2- pat-eu1-", r"[0-9a-f-]{36}"),
    _token("sendgrid-key", "SG.", r"[\w-]{16,}+\.[\w-]{16,}+"),
    Rule("mailchimp-key", ("-us",), lazy(LEFT + r"[0-9a-f]{32}-us\d{1,2}(?!\w)"), is_made),
    Rule("terraform-token", (".atlasv1.",), lazy(LEFT + r"\w{14}\.atlasv1\.[\w-]{50,}+"), is_made),
    _token("airtable-token", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}(?!\w)"),
    _token("private-key", "AGE-SECRET-KEY-1", r"[A-Z0-9]{20,}+"),
    Rule("bot-token", (":AA",), lazy(r"(?<![\w-])\d{8,10}:AA[\w-]{33}(?![\w-])")),
    Rule(
        "bot-token",
        (".",),
        # The letter comes first: it is quicker to look for.
        lazy(
            r"[MNO](?:(?<![\w-].)|(?<=\\[nrt].)|(?<=%[0-9A-F]{2}.))[\w-]{23,27}+\.(?=[\w-]{0,5}[A-Z0-9_])[\w-]{6}\.[\w-]{27,}+",
            re.ASCII,
        ),
        is_made,
    ),
)


# Between letters and digits, and not where names of classes have it: Outer$Inner.
_SIGN_INSIDE = lazy(r"[!$^](?<=[A-Za-z0-9].)(?=[a-z0-9]|(?<=!)[A-Z])(?<!\$(?=[0-9]))")
_STRONG = lazy(
    r"(?=[A-Za-z!$^]{0,60}[0-9])(?=[A-Z0-9!$^]{0,60}[a-z])(?=[a-z0-9!$^]{0,60}[A-Z])[A-Za-z0-9!$^]{10,64}+(?=[\s\"'`),;:.?]|\Z)"
)
_BEFORE_WORD = lazy(r"(?:^|[\s\"'`(,;:])(?=[A-Za-z0-9!$^]{0,64}\Z)")


def strong_words(text: str) -> Iterator[Span]:
    """Yield words that only a password looks like: capitals, small letters, digits and a sign between them."""
    done = 0
    for match in _SIGN_INSIDE.finditer(text):
        if match.start() < done:
            continue
        low = max(0, match.start() - 64)
        begins = _BEFORE_WORD.search(text[low : match.start()])
        word = _STRONG.match(text, low + begins.end()) if begins is not None else None
        done = match.end() if word is None else word.end()
        if word is not None:
            yield Span(*word.span(), "password")


def tokens(text: str, long: Sequence[str]) -> Iterator[Span]:
    """Yield the tokens of a text.

    Args:
        text: the text.
        long: its words of at least `SHORTEST` characters, in which hints are looked for.
    """
    dense = " ".join(long)
    if dense:
        for rule in TOKENS:
            if rule.hinted(dense) and any(rule.spans(dense)):
                yield from rule.spans(text)
