"""Secrets that are known by the place where they stand: in a URL, a header, a command, a file of logins.

Each rule is tried only on texts that hold one of its hints, and looks a bounded way ahead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from perdure.regex import lazy
from perdure.secrets.filters import is_code, is_mixed, is_placeholder
from perdure.secrets.shapes import Rule, Span, is_made


def _telling(secret: str) -> bool:
    return not (is_placeholder(secret) or is_code(secret))


def _shown(secret: str) -> bool:
    return not is_placeholder(secret)


def _generated(secret: str) -> bool:
    return is_made(secret) and _telling(secret)


def _is_bearer(secret: str) -> bool:
    # `token_type=bearer expires_in=3600`
    return _generated(secret) and _NEXT_FIELD.match(secret) is None


_NEXT_FIELD = lazy(r"[a-z_]{2,20}=[^=]")

PLACES: tuple[Rule, ...] = (
    # `user:` may be empty; the last @ in front of the path ends the password.
    Rule(
        "url-password",
        ("://",),
        lazy(r"://[^\s/@:\"'<>]{0,200}:(?P<secret>(?![$%{<*]|\[redacted )[^\s/\"'<>]{1,200})@"),
        lambda secret: not is_placeholder(secret) or secret.startswith("#"),
    ),
    # A token in the place of the user, as git and Sentry have it.
    Rule("url-password", ("://",), lazy(r"://(?P<secret>[A-Za-z0-9_-]{20,200})@"), _generated),
    Rule(
        "url-token",
        ("=",),
        lazy(
            r"[?&;](?:(?:access|refresh|id|auth|api|session|private|security|x-amz-security)?[_-]?token|api[_-]?key"
            r"|key|sig|signature|x-amz-signature|x-goog-signature|client[_-]?secret|secret|password|passwd|pwd|pass"
            r"|auth|apikey|app[_-]?id|app[_-]?key|access[_-]?key|code|session(?:id)?|sid|jwt)=(?P<secret>(?![$%{<*\[])[^\s&#\"'<>;)\]]{6,400})",
            re.IGNORECASE,
        ),
        _generated,
    ),
    Rule(
        "authorization",
        ("uthorization", "UTHORIZATION"),
        lazy(
            r"authorization[\"'\\]{0,3}\s{0,4}[:=]\s{0,4}[\"'\\]{0,3}"
            r"(?:bearer|basic|token|digest|bot|apikey|negotiate|ssws|key|aws4-hmac-sha256)\s{1,4}"
            r"(?P<secret>(?![$%{<*]|your)[^\s\"'\\,;\[\]<>]{6,})",
            re.IGNORECASE,
        ),
        _shown,
    ),
    # The literal comes first, so that the search goes from one to the next.
    *(
        Rule("authorization", (hint,), lazy(rf"{hint}(?<=\b[Bb]{hint})\s{{1,4}}(?P<secret>{body})"), _is_bearer)
        for hint, body in (
            ("earer", r"[\w.~+/=-]{12,}+"),
            ("EARER", r"[\w.~+/=-]{12,}+"),
            ("asic", r"(?=\S{0,80}[A-Z=])[\w+/=-]{12,}+"),
        )
    ),
    Rule(
        "cookie",
        ("ookie", "OOKIE"),
        lazy(
            r"\bcookie[\"']?\s?[:=]\s{0,3}[\"']?(?:[\w.-]{1,40}=[^\s;\"']{0,80};\s?){0,6}?"
            r"[\w.-]{0,30}(?:sess|sid|auth|token|jwt|csrf|remember|login)[\w.-]{0,30}="
            r"(?P<secret>(?![$%{<*\[])[^\s;\"',]{8,2000})",
            re.IGNORECASE,
        ),
        _generated,
    ),
    Rule(
        "password",
        (" -u", "--user"),
        lazy(r"(?<!\S)(?:-u|--user)[\s=]{0,2}[\"']?[^\s:\"'$]{1,64}:(?P<secret>(?![$%{<*\[])[^\s\"']{3,128})"),
    ),
    Rule(
        "password",
        ("sshpass",),
        lazy(r"\bsshpass\s{1,3}-p\s{0,3}(?:(?P<q>[\"'])?)(?P<secret>(?![$%{<*\[])[^\s\"']{3,128})"),
        _shown,
    ),
    Rule(
        "password",
        (" -p", " -a", " -U"),
        lazy(
            r"\b(?:mysql\w{0,8}|mariadb\w{0,8}|mongo\w{0,8}|docker login|redis-cli|smbclient|7z)\b[^\n|;]{0,120}?"
            r"\s-(?:p|a|U [^\s%]{1,40}%)\s?[\"']?(?P<secret>(?![$%{<*\[-])(?=\D{0,60}\d)(?=[^\s\"']{0,60}[A-Za-z])"
            r"[^\s\"']{4,128})"
        ),
        lambda secret: _telling(secret) and ":" not in secret,
    ),
    Rule(
        "password",
        ("redential", "ogin", "ugangsdaten"),
        lazy(
            r"(?:redentials?|ogins?|ugangsdaten)\s?(?:are|is|sind|[:=])\s{0,3}[^\s:/,]{2,60}\s?[:/,]\s?"
            r"(?P<secret>[^\s/@,;\"'<>\[]{6,128}+)(?![/@])"
        ),
        lambda secret: is_mixed(secret) and _telling(secret),
    ),
    Rule(
        "password",
        ("machine ",),
        lazy(
            r"\bmachine\s{1,4}\S{1,120}\s{1,8}login\s{1,4}\S{1,120}\s{1,8}password\s{1,4}(?P<secret>[^\s\[]\S{2,200})"
        ),
    ),
    Rule(
        "password",
        (":5432:", ":*:"),
        lazy(r"(?m)^[\w.*-]{1,80}:(?:\d{2,5}|\*):[\w*-]{1,60}:[\w*-]{1,60}:(?P<secret>[^\s\[:][^\s:]{3,128})$"),
    ),
    *(
        Rule("password", (hint,), lazy(rf"{hint}{sign}(?P<secret>[A-Za-z0-9+/]{{10,}}={{0,2}})"), _shown)
        for hint, sign in (('"auth"', r"\s?:\s?\""), ("_auth", r"(?<!\w_auth)\s?=\s?\"?"))
    ),
    Rule(
        "otp-secret",
        ("otpauth",),
        lazy(r"otpauth(?:-migration)?://[^\s\"'<>]{0,300}?[?&](?:secret|data)=(?P<secret>[A-Za-z0-9%+/=]{8,600})"),
    ),
)


def place_secrets(text: str) -> Iterator[Span]:
    """Yield the secrets of all rules."""
    for rule in PLACES:
        if rule.hinted(text):
            yield from rule.spans(text)
