"""Secrets and what only looks like one, made by chance from patterns: no literal secret stands here.

In a pattern `<16A>` is sixteen characters of a class: d digits, h hexadecimal, a small letters and digits, A capitals
and digits, L capitals, l letters, w letters and digits, s those with _ and -, b base64.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from perdure.secrets.numbers import luhn
from perdure.secrets.shapes import seed_words

CLASSES = {
    "d": string.digits,
    "h": "0123456789abcdef",
    "a": string.ascii_lowercase + string.digits,
    "A": string.ascii_uppercase + "234567",
    "L": string.ascii_uppercase,
    "l": string.ascii_letters,
    "w": string.ascii_letters + string.digits,
    "s": string.ascii_letters + string.digits + "_-",
    "b": string.ascii_letters + string.digits + "+/",
}
_PART = re.compile(r"<(\d+)([a-zA-Z])>")


@dataclass(frozen=True, slots=True)
class Sample:
    """A text with a secret in it.

    Attributes:
        kind: of the secret.
        place: "prose", "code", "json", "url" or "split".
        text: all of it.
        parts: what must not be found in it any more.
    """

    kind: str
    place: str
    text: str
    parts: tuple[str, ...]


def fill(rng: random.Random, pattern: str) -> str:
    """Return a text of a pattern; of its long parts each has a digit, a capital and a small letter if it may."""

    def made(match: re.Match[str]) -> str:
        count, chars = int(match[1]), CLASSES[match[2]]
        wanted = [rng.choice(sorted(set(chars) & set(kind))) for kind in (string.digits, string.ascii_uppercase,
                  string.ascii_lowercase) if set(chars) & set(kind)]  # fmt: skip
        body = [rng.choice(chars.rstrip("_-+/")), *wanted, *rng.choices(chars, k=max(0, count - len(wanted) - 1))]
        return "".join(body[:count])[: count - 1] + rng.choice(chars.rstrip("_-+/"))

    return _PART.sub(made, pattern)


TOKENS = {
    "aws-access-key": "AKIA<16A>",
    "aws-session-key": "ASIA<16A>",
    "google-api-key": "AIza<35s>",
    "google-oauth-secret": "GOCSPX-<28s>",
    "google-access-token": "ya29.<60s>",
    "azure-client-secret": "<3w>8Q~<34w>",
    "github-token": "ghp_<36w>",
    "github-fine-token": "github_pat_<22w>_<59w>",
    "gitlab-token": "glpat-<20w>",
    "atlassian-token": "ATATT3<180w>",
    "bitbucket-password": "ATBB<32w>",
    "slack-bot-token": "xoxb-<12d>-<13d>-<24w>",
    "slack-app-token": "xapp-1-A<10A>-<13d>-<64h>",
    "slack-webhook": "https://hooks.slack.com/services/T<9A>/B<9A>/<24w>",
    "discord-webhook": "https://discord.com/api/webhooks/<18d>/<68w>",
    "discord-bot-token": "M<25w>.<6w>.<38w>",
    "telegram-bot-token": "<10d>:AA<33w>",
    "stripe-key": "sk_live_<24w>",
    "stripe-restricted-key": "rk_live_<24w>",
    "stripe-webhook-key": "whsec_<32w>",
    "square-secret": "sq0csp-<43w>",
    "square-token": "EAAA<60w>",
    "braintree-token": "access_token$production$<16a>$<32h>",
    "shopify-token": "shpat_<32h>",
    "npm-token": "npm_<36w>",
    "pypi-token": "pypi-AgEIcHlwaS5vcmc<80w>",
    "rubygems-key": "rubygems_<48h>",
    "crates-token": "cio<32w>",
    "nuget-key": "oy2<43a>",
    "docker-token": "dckr_pat_<27w>",
    "openai-key": "sk-proj-<64w>",
    "anthropic-key": "sk-ant-api03-<80w>",
    "huggingface-token": "hf_<34w>",
    "groq-key": "gsk_<52w>",
    "replicate-token": "r8_<37w>",
    "perplexity-key": "pplx-<48w>",
    "xai-key": "xai-<80w>",
    "openrouter-key": "sk-or-v1-<64h>",
    "jwt": "eyJ<30w>.eyJ<60w>.<43w>",
    "sendgrid-key": "SG.<22w>.<43w>",
    "mailgun-key": "key-<32h>",
    "mailchimp-key": "<32h>-us<2d>",
    "twilio-key": "SK<32h>",
    "newrelic-key": "NRAK-<27A>",
    "sentry-token": "sntrys_<80w>",
    "digitalocean-token": "dop_v1_<64h>",
    "databricks-token": "dapi<32h>",
    "doppler-token": "dp.pt.<43w>",
    "vault-token": "hvs.<90w>",
    "terraform-token": "<14w>.atlasv1.<64w>",
    "pulumi-token": "pul-<40h>",
    "netlify-token": "nfp_<40w>",
    "supabase-token": "sbp_<40h>",
    "planetscale-token": "pscale_tkn_<43w>",
    "airtable-token": "pat<14w>.<64h>",
    "notion-token": "ntn_<46w>",
    "linear-key": "lin_api_<40w>",
    "figma-token": "figd_<40w>",
    "postman-key": "PMAK-<24h>-<34h>",
    "grafana-token": "glsa_<32w>_<8h>",
    "dynatrace-token": "dt0c01.<24A>.<64A>",
    "facebook-token": "EAA<100w>",
    "mapbox-token": "sk.eyJ<60w>.<22w>",
    "age-key": "AGE-SECRET-KEY-1<58A>",
    "tailscale-key": "tskey-auth-<12w>-<32w>",
    "hubspot-token": "pat-na1-<8h>-<4h>-<4h>-<4h>-<12h>",
}
_AROUND = {
    "prose": ("here it is: {} - keep it safe", "I just rotated it to {}.", "Use {} for the deploy, please"),
    "code": ('client = Client("{}")', "export SERVICE={}", "run(['tool', '--with', '{}'])"),
    "json": ('{{"config": {{"value": "{}", "retries": 3}}}}', '{{\\"value\\": \\"{}\\"}}'),
    "url": ("https://api.example.org/v1/items?limit=5&v={}", "https://api.example.org/{}/getMe"),
}
_SPLITS = ("{}\n{}", "{}\\\n{}", '"{}"\n    "{}"', "'{}' +\n  '{}'", "{}=\r\n{}")

# Where a name tells what it is: {} is the value.
_PASSWORD = "<3a><2d>Zq!<4w>"
_NAMED = (
    ("password-english", "prose", "the wifi password is {}", _PASSWORD),
    ("password-english", "prose", "My password for the router at home is {}, don't tell", _PASSWORD),
    ("password-english", "prose", "I changed my password to {} today", _PASSWORD),
    ("password-english", "split", "My password is\n{}\nthanks", _PASSWORD),
    ("password-german", "prose", "Mein Passwort ist {}", _PASSWORD),
    ("password-german", "prose", "das WLAN-Passwort lautet {}", _PASSWORD),
    ("password-german", "prose", "Der WLAN-Schl\u00fcssel ist {}", _PASSWORD),
    ("password-french", "prose", "mon mot de passe est {}", _PASSWORD),
    ("password-french", "prose", "le mot de passe du wifi, c'est {}", _PASSWORD),
    ("password-french", "prose", "mdp : {}", _PASSWORD),
    ("password-spanish", "prose", "mi contrase\u00f1a es {}", _PASSWORD),
    ("password-spanish", "prose", "la clave del wifi es {}", _PASSWORD),
    ("pin", "prose", "my pin's {}", "<4d>"),
    ("pin", "prose", "My card PIN is {} by the way", "<4d>"),
    ("pin", "prose", "meine PIN lautet {}", "<4d>"),
    ("pin", "prose", "mon code PIN est {}", "<4d>"),
    ("pin", "prose", "mi PIN es el {}", "<4d>"),
    ("pin", "prose", "the door code is {}", "<4d>"),
    ("pin", "json", '{{"pin": "{}"}}', "<4d>"),
    ("pin", "split", "the alarm code is:\n  {}", "<6d>"),
    ("env-line", "code", "DB_PASSWORD={}", _PASSWORD),
    ("env-line", "code", "export GITHUB_TOKEN={}", "<40h>"),
    ("env-line", "code", "SECRET_KEY='{}'", "<50w>"),
    ("env-line", "split", "export API_KEY=\\\n{}", "<32w>"),
    ("json-assignment", "json", '{{"password": "{}"}}', _PASSWORD),
    ("json-assignment", "json", '{{"clientSecret": "{}", "id": 4}}', "<40w>"),
    ("json-assignment", "json", '{{\\"api_key\\": \\"{}\\"}}', "<32h>"),
    ("json-assignment", "split", '{{"password":\n    "{}"}}', _PASSWORD),
    ("yaml-assignment", "code", "database:\n  password: {}\n  port: 5432", _PASSWORD),
    ("yaml-assignment", "code", "  api-key: {}", "<32w>"),
    ("yaml-assignment", "split", "password: >-\n  {}\nuser: anna", _PASSWORD),
    ("toml-assignment", "code", 'token = "{}"', "<40w>"),
    ("toml-assignment", "code", "[db]\npassword = '{}'", _PASSWORD),
    ("code-assignment", "code", 'auth.password = "{}";', _PASSWORD),
    ("code-assignment", "code", "const apiKey = '{}'", "<32w>"),
    ("code-assignment", "split", "password = (\n    '{}'\n)", _PASSWORD),
    ("aws-secret-key", "code", "aws_secret_access_key = {}", "<40b>"),
    ("aws-secret-key", "json", '"SecretAccessKey": "{}"', "<40b>"),
    ("aws-secret-key", "prose", "The secret access key is {}", "<40b>"),
    ("azure-storage-key", "code", "AccountName=x;AccountKey={};EndpointSuffix=core.windows.net", "<86b>=="),
    ("azure-sas", "url", "https://x.blob.core.windows.net/c/f?sv=2022-11-02&sr=b&sig={}", "<43w>%3D"),
    ("bearer-header", "code", "Authorization: Bearer {}", "<40w>"),
    ("bearer-header", "json", '{{"Authorization": "Bearer {}"}}', "<40w>"),
    ("bearer-header", "prose", "call it with bearer {} in the header", "<40w>"),
    ("basic-header", "code", "curl -H 'Authorization: Basic {}' https://example.org", "<24w>="),
    ("basic-header", "json", '{{"authorization": "Basic {}"}}', "<24w>=="),
    ("api-key-header", "code", "curl -H 'X-API-Key: {}' https://example.org", "<32w>"),
    ("api-key-header", "json", '{{"x-api-key": "{}"}}', "<32w>"),
    ("cookie", "code", "Cookie: theme=dark; sessionid={}; lang=en", "<32a>"),
    ("cookie", "code", "Set-Cookie: auth_token={}; HttpOnly", "<40w>"),
    ("connection-url", "url", "postgres://anna:{}@db.local:5432/x", "<12w>"),
    ("connection-url", "url", "mongodb+srv://app:{}@cluster0.abc.mongodb.net/?w=majority", "<12w>"),
    ("connection-url", "url", "redis://:{}@cache:6379/0", "<12w>"),
    ("connection-url", "code", "DATABASE_URL=mysql://root:{}@127.0.0.1/app", "<12w>"),
    ("connection-string", "code", "Server=db;Database=x;User Id=sa;Password={};Encrypt=True", _PASSWORD),
    ("connection-string", "json", '{{"cs": "Server=db;Uid=sa;Pwd={};"}}', _PASSWORD),
    ("git-remote", "url", "git clone https://anna:{}@github.com/a/b.git", "<40h>"),
    ("git-remote", "url", "https://{}@github.com/a/b.git", "<40h>"),
    ("url-parameter", "url", "https://example.org/cb?access_token={}&x=1", "<40w>"),
    ("url-parameter", "url", "https://example.org/f?api_key={}", "<32h>"),
    ("url-parameter", "url", "wss://x.example.org/s?token={}", "<24w>"),
    ("sentry-dsn", "url", "https://{}@o12345.ingest.sentry.io/678", "<32h>"),
    ("ssh-one-liner", "code", "sshpass -p '{}' ssh root@10.0.0.4", _PASSWORD),
    ("ssh-one-liner", "code", "sshpass -p {} scp a b:", "<12w>"),
    ("curl-user", "code", "curl -u anna:{} https://example.org", "<12w>"),
    ("mysql-option", "code", "mysql -u root -p{} shop", "<12w>"),
    ("mysql-option", "code", "mysqldump --password={} shop", "<12w>"),
    ("docker-login", "code", "docker login -u anna -p {} registry.example.org", "<16w>"),
    ("docker-config", "json", '{{"auths": {{"r.io": {{"auth": "{}"}}}}}}', "<24w>="),
    ("netrc", "code", "machine api.example.org login anna password {}", "<12w>"),
    ("npmrc", "code", "//registry.example.org/:_authToken={}", "<8h>-<4h>-<4h>-<4h>-<12h>"),
    ("otp-secret", "url", "otpauth://totp/Ex:anna?secret={}&issuer=Ex", "<32A>"),
    ("passphrase", "prose", "my passphrase is {}.", "correct<2d> horse battery <4a>"),
    ("heroku-key", "code", "HEROKU_API_KEY={}", "<8h>-<4h>-<4h>-<4h>-<12h>"),
    ("cvv", "prose", "the cvv is {}", "<3d>"),
    ("recovery-codes", "prose", "my recovery codes are {}", "<4h>1-<4h>2"),
    ("recovery-codes", "split", "GitHub recovery codes:\n{}\nand nothing else", "<4h>4-<4h>7"),
    ("recovery-codes", "split", "Backup codes:\n1. {}\n", "<8d>"),
)


def _token_samples(rng: random.Random) -> Iterator[Sample]:
    for kind, pattern in TOKENS.items():
        for place, around in _AROUND.items():
            value = fill(rng, pattern)
            if place != "url" or "://" not in value:
                yield Sample(kind, place, rng.choice(around).format(value), (value,))
        value = fill(rng, pattern)
        cut = max(len(pattern.split("<")[0]) + 20, len(value) // 2)
        if cut + 8 <= len(value):
            halves = value[:cut], value[cut:]
            yield Sample(kind, "split", "use\n" + rng.choice(_SPLITS).format(*halves) + "\nfor it", halves)


def _named_samples(rng: random.Random) -> Iterator[Sample]:
    for kind, place, around, pattern in _NAMED:
        value = fill(rng, pattern)
        yield Sample(kind, place, around.format(value), (value,))


def _key_samples(rng: random.Random) -> Iterator[Sample]:
    for kind in ("RSA ", "EC ", "OPENSSH ", "", "ENCRYPTED "):
        lines = [fill(rng, "<64b>") for _ in range(4)]
        head, foot = f"-----BEGIN {kind}PRIVATE KEY-----", f"-----END {kind}PRIVATE KEY-----"
        name = f"pem-{kind.strip().lower() or 'pkcs8'}"
        yield Sample(name, "split", "\n".join(["my key", head, *lines, foot, "bye"]), tuple(lines))
        yield Sample(name, "json", '{"private_key": "' + "\\n".join([head, *lines, foot]) + '\\n"}', tuple(lines))
        yield Sample("pem-truncated", "split", "\n".join([head, *lines]), tuple(lines))
    lines = [fill(rng, "<64b>") for _ in range(3)]
    block = [
        "-----BEGIN PGP PRIVATE KEY BLOCK-----",
        "Version: 2",
        "",
        *lines,
        "=<a1b2",
        "-----END PGP PRIVATE KEY BLOCK-----",
    ]
    yield Sample("pgp-key", "split", "\n".join(block), tuple(lines))
    yield Sample(
        "putty-key", "split", "\n".join(["PuTTY-User-Key-File-3: x", "Private-Lines: 3", *lines]), tuple(lines)
    )


def checked(rng: random.Random, pattern: str, valid: Callable[[str], bool]) -> str:
    """Return a text of a pattern whose letters and digits pass a check."""
    while True:
        value = fill(rng, pattern)
        if valid(re.sub(r"[^0-9A-Z]", "", value)):
            return value


def _number_samples(rng: random.Random) -> Iterator[Sample]:
    from perdure.secrets import numbers as national
    from perdure.secrets.numbers import mod_97

    cards = ("4<3d> <4d> <4d> <4d>", "4<15d>", "51<2d>-<4d>-<4d>-<4d>", "37<2d> <6d> <5d>")
    for place, around in (("prose", "my card is {} exp 12/27"), ("json", '{{"number": "{}"}}'), ("code", "pay('{}')")):
        value = checked(rng, rng.choice(cards), luhn)
        yield Sample("card", place, around.format(value), (value,))
    value = checked(rng, cards[0], luhn)
    yield Sample("card", "split", f"my card: {value[:9]}\n{value[10:]}", (value[:9], value[10:]))
    for pattern in ("DE<2d> <4d> <4d> <4d> <4d> <2d>", "FR<2d><10d><11d><2d>", "NL<2d> ABNA <4d> <4d> <2d>"):
        value = checked(rng, pattern, lambda number: mod_97(number) == 1)
        yield Sample("iban", "prose", f"transfer it to {value} please", (value,))
        yield Sample("iban", "json", f'{{"account": "{value}"}}', (value,))
    for kind, around, pattern, valid in (
        ("us-ssn", "my ssn is {}", "<1d>1<1d>-4<1d>-5<3d>", lambda n: n[0] != "9" and n[:3] not in ("000", "666")),
        ("uk-nino", "NI number {}", "AB <2d> <2d> <2d> C", lambda n: True),
        ("spanish-dni", "mi DNI es {}", "<8d><1L>", national._dni),
        ("french-nir", "num\u00e9ro de s\u00e9cu {}", "1 85 05 78 <3d> <3d> <2d>", national._nir),
        ("german-tax-id", "meine Steuer-ID ist {}", "<2d> <3d> <3d> <3d>", national._steuer_id),
        ("swedish-personnummer", "personnummer {}", "81122<1d>-<4d>", national._personnummer),
        ("dutch-bsn", "mijn BSN is {}", "<9d>", national._bsn),
        ("brazilian-cpf", "CPF {}", "<3d>.<3d>.<3d>-<2d>", national._cpf),
        ("polish-pesel", "PESEL: {}", "44051<1d><5d>", national._pesel),
        ("finnish-hetu", "hetu {}", "131052-<3d><1L>", national._hetu),
        ("norwegian-fnr", "f\u00f8dselsnummer {}", "13105<1d><5d>", national._fodselsnummer),
        ("belgian-number", "rijksregister {}", "85.07.30-<3d>.<2d>", national._belgian),
        ("italian-code", "codice fiscale {}", "RSSMRA85T10A562<1L>", national._codice_fiscale),
        ("canadian-sin", "my SIN is {}", "<3d> <3d> <3d>", luhn),
        ("indian-aadhaar", "Aadhaar {}", "3<3d> <4d> <4d>", national._verhoeff),
        ("australian-tfn", "TFN: {}", "<3d> <3d> <3d>", national._tfn),
    ):  # fmt: skip
        value = checked(rng, pattern, valid)
        yield Sample(kind, "prose", around.format(value), (value,))


def _phrase_samples(rng: random.Random) -> Iterator[Sample]:
    for count in (12, 24):
        words = rng.sample(sorted(seed_words()), count)
        plain, numbered = " ".join(words), "\n".join(f"{n}. {word}" for n, word in enumerate(words, 1))
        for place, text in (("prose", f"my seed phrase is {plain}"), ("prose", f"hm, {plain}."), ("split", numbered),
                            ("json", f'{{"mnemonic": "{plain}"}}'), ("split", plain.replace(" ", "\n"))):  # fmt: skip
            # Of single words nothing must be said: most of them are left, not so two that follow each other.
            yield Sample(f"seed-{count}", place, text, (f"{words[0]} {words[1]}", *words[4:]))


def secret_samples(seed: int) -> list[Sample]:
    """Return texts with one secret each, of every kind in every place that fits it."""
    rng = random.Random(seed)
    makers = (_token_samples, _named_samples, _key_samples, _number_samples, _phrase_samples)
    return [sample for make in makers for sample in make(rng)]
