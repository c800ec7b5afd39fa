"""Secrets of thirty-seven kinds, plain and wrapped so that nobody finds them by their form; and the ways to tell one.

In a pattern `<16A>` stands for characters of a class, see `bench.secret_samples`; `<20l>` for letters alone.
"""

from __future__ import annotations

import base64
import random
import re
import string
from collections.abc import Callable, Mapping

from bench.secret_samples import Sample, checked, fill
from perdure.secrets.numbers import luhn, mod_97
from perdure.secrets.shapes import seed_words
from perdure.text.normalise import fold

_PASSWORD = "<3a><2d>Zq!<4w>"

KINDS: Mapping[str, tuple[str, str]] = {
    "aws-access-key": ("my key id is {}", "AKIA<16A>"),
    "aws-secret-key": ("aws_secret_access_key = {}", "<40b>"),
    "google-key": ("use {} for the maps", "AIza<35s>"),
    "google-oauth": ("the client has {}", "GOCSPX-<28s>"),
    "gcp-key-id": ('"private_key_id": "{}"', "<40h>"),
    "azure-secret": ("azure gave me {}", "<3w>8Q~<34w>"),
    "github-token": ("push with {}", "ghp_<36w>"),
    "github-fine": ("{} is the new one", "github_pat_<22w>_<59w>"),
    "gitlab-token": ("gitlab: {}", "glpat-<20l>"),
    "slack-token": ("the bot uses {}", "xoxb-<12d>-<13d>-<24w>"),
    "discord-token": ("our bot runs with {}", "M<25w>.<6w>.<38w>"),
    "telegram-token": ("botfather said {}", "<10d>:AA<33w>"),
    "stripe-key": ("billing runs with {}", "sk_live_<24w>"),
    "openai-key": ("put {} into the shell", "sk-proj-<64w>"),
    "anthropic-key": ("put {} into the shell", "sk-ant-api03-<80w>"),
    "huggingface-token": ("log in with {}", "hf_<34l>"),
    "npm-token": ("publish with {}", "npm_<36w>"),
    "pypi-token": ("twine wants {}", "pypi-AgEIcHlwaS5vcmc<80w>"),
    "sendgrid-key": ("mails go out by {}", "SG.<22w>.<43w>"),
    "twilio-key": ("the sid is {}", "SK<32h>"),
    "twilio-token": ("Twilio auth token {}", "<32h>"),
    "mailgun-key": ("mailgun gave {}", "key-<32h>"),
    "databricks-token": ("the cluster wants {}", "dapi<32h>"),
    "jwt": ("the session is {}", "eyJ<30w>.eyJ<60w>.<43w>"),
    "bearer": ("Authorization: Bearer {}", "<40w>"),
    "basic": ("Authorization: Basic {}", "<24w>="),
    "api-key-letters": ("API_KEY={}", "<32l>"),
    "env-token": ("export DEPLOY_TOKEN={}", "<40h>"),
    "password": ("My password is {}", _PASSWORD),
    "password-setting": ("DB_PASSWORD={}", _PASSWORD),
    "url-password": ("postgres://anna:{}@db.local/x", "<14w>"),
    "passphrase": ("my passphrase is {}", "<7a> <6a> <8a> <5a>"),
    "pin": ("my PIN is {}", "<6d>"),
    "card": ("my card is {}", "4<3d> <4d> <4d> <4d>"),
    "iban": ("send it to {}", "DE<2d> <4d> <4d> <4d> <4d> <2d>"),
    "ssn": ("my ssn is {}", "1<1d>1-4<1d>-5<3d>"),
    "seed-phrase": ("write this down: {}", "seed"),
}
"""Of each kind: a text around it, and its pattern."""

_LOOKS = str.maketrans("aceopxyABCEHKMOPTX", "асеорхуАВСЕНКМОРТХ")
_WIDE = str.maketrans(string.digits, "０１２３４５６７８９")


def _halves(value: str, between: str) -> str:
    middle = (len(value) + 1) // 2
    return value[:middle] + between + value[middle:]


WRAPS: Mapping[str, Callable[[str], str]] = {
    "plain": lambda value: value,
    "two lines": lambda value: _halves(value, "\n"),
    "hyphen at the line end": lambda value: _halves(value, "-\n"),
    "hyphens between groups": lambda value: "-".join(value[at : at + 8] for at in range(0, len(value), 8)),
    "zero-width": lambda value: "\u200b".join(value),
    "look-alike letters": lambda value: value.translate(_LOOKS),
    "full-width digits": lambda value: value.translate(_WIDE),
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
}
"""What is done to a value, by name."""

WORDINGS: Mapping[str, tuple[str, ...]] = {
    "later": (
        "I set a new password. It is {}.", "I changed the wifi password yesterday. It's {} now.",
        "New passcode for the alarm app! It is {}", "Mein Passwort wurde geändert. Es lautet {}.",
    ),
    "table": (
        "| service | user | password |\n|---|---|---|\n| GitHub | anna | {} |",
        "| Dienst | Passwort |\n| :-- | --: |\n| Router | `{}` |\n| Drucker | none |",
        "Service | Password | Notes\n--- | --- | ---\nnetflix | {} | shared",
    ),
    "csv": (
        "name,url,username,password\nGitHub,https://github.com,anna,{}\n",
        "login;passwort;notiz\nanna;{};alt\n", 'site,password,note\n"a, b","{}",x', "user\tpassword\nanna\t{}",
    ),
    "spaces": (
        'my password is "{} blue tiger"', "The wifi password is correct {} battery staple.",
        "Passwort: 'grün {} tanzt'", "my password is purple monkey dishwasher {}",
    ),
    "labelled": (
        "**Password:** `{}`", "Password (router): {}", "Passwort WLAN: {}", "pw = {}", "What's the password? {}",
        "Password for the NAS \u2192 {}", "The password was changed to {} yesterday", "Login: anna / {}",
    ),
    "reversed": ("use {} as the password", "{} is my new password.", "{} ist das Passwort für das WLAN."),
    "German": ("Das Passwort für den Router ist {}", "Das Kennwort zum Tresor lautet {}.", "Das WLAN-Passwort: {}"),
    "French": ("Le mot de passe du wifi est {}", "mon mot de passe pour la banque, c'est {}", "Mot de passe : {}"),
    "Spanish": ("La contraseña del wifi es {}", "mi contraseña para el banco es {}", "Contraseña: {}"),
    "Italian": ("La password del wifi è {}", "la mia password per la banca è {}", "Parola d'ordine: {}"),
    "Portuguese": ("A senha do wifi é {}", "minha palavra-passe para o banco é {}", "Senha: {}"),
    "Dutch": ("Het wachtwoord van de wifi is {}", "mijn wachtwoord voor de bank is {}", "Wachtwoord: {}"),
    "Polish": ("Hasło do wifi to {}", "moje hasło do banku brzmi {}", "Hasło: {}"),
    "Turkish": ("Wifi şifresi {}", "Banka için parolam: {}", "Şifre: {}"),
    "Russian": ("Пароль от вайфая — {}", "мой пароль для банка: {}", "Пароль от роутера {}"),
    "Ukrainian": ("Пароль від вайфаю — {}", "мій пароль до банку: {}"),
    "Czech": ("Heslo k wifi je {}", "moje heslo do banky zní {}"),
    "Swedish": ("Lösenordet till wifi är {}", "mitt lösenord för banken är {}"),
    "Danish": ("Adgangskoden til wifi er {}", "min adgangskode: {}"),
    "Norwegian": ("Passordet til wifi er {}", "passord: {}"),
    "Finnish": ("Wifin salasana on {}", "salasanani on {}"),
    "Hungarian": ("A wifi jelszó: {}", "A jelszavam {}"),
    "Romanian": ("Parola de la wifi este {}", "parola mea: {}"),
    "Greek": ("Ο κωδικός του wifi είναι {}", "κωδικός: {}"),
    "Japanese": ("Wi-Fiのパスワードは{}です", "パスワード：{}", "銀行のパスワードは「{}」です。"),
    "Chinese": ("我的密码是{}", "WiFi密码：{}", "银行的密码为{}。", "無線網路的密碼是 {}"),
    "Korean": ("와이파이 비밀번호는 {}입니다", "비밀번호: {}"),
    "Arabic": ("كلمة المرور هي {}", "كلمة السر: {}"),
    "Hebrew": ("הסיסמה היא {}", "סיסמה: {}"),
    "Hindi": ("वाईफाई का पासवर्ड {} है", "पासवर्ड: {}"),
    "Vietnamese": ("Mật khẩu wifi là {}", "mật khẩu: {}"),
    "Indonesian": ("Kata sandi wifi adalah {}", "kata sandi: {}"),
    "Thai": ("รหัสผ่านคือ {}", "รหัสผ่าน: {}"),
}  # fmt: skip
"""Ways to tell a password, {} in its place, by language or form."""

_MARK = re.compile(r"\[redacted [\w-]+\]")
_TRACE = 6
"""So many characters of a value in a row are a trace of it."""


def _value(rng: random.Random, kind: str) -> str:
    if kind == "seed-phrase":
        return " ".join(rng.sample(sorted(seed_words()), 12))
    checks = {"card": luhn, "iban": lambda number: mod_97(number) == 1}
    return checked(rng, KINDS[kind][1], checks.get(kind, lambda number: True))


def wrapped_samples(seed: int) -> dict[str, list[Sample]]:
    """Return a text of every kind for each wrapping; `parts` are what was wrapped and how it looks then."""
    rng = random.Random(seed)
    values = {kind: _value(rng, kind) for kind in KINDS}
    return {name: [_wrapped(kind, name, value) for kind, value in values.items()] for name in WRAPS}


def _wrapped(kind: str, wrap: str, value: str) -> Sample:
    hidden = WRAPS[wrap](value)
    return Sample(kind, wrap, KINDS[kind][0].format(hidden), (value, hidden))


def worded_samples(seed: int) -> dict[str, list[Sample]]:
    """Return texts that tell a password, by language or form."""
    rng = random.Random(seed)
    return {
        name: [Sample(name, "prose", told.format(value), (value,)) for told in ways for value in [fill(rng, _PASSWORD)]]
        for name, ways in WORDINGS.items()
    }


def traces(sample: Sample, text: str) -> list[str]:
    """Return what a text still shows of the values of a sample: so many characters in a row, however set apart.

    Args:
        sample: the sample.
        text: what became of it.
    """
    left, around = _squeezed(_MARK.sub(" ", text)), _squeezed(sample.text.replace(sample.parts[-1], " "))
    found: list[str] = []
    for part in map(_squeezed, sample.parts):
        size = min(_TRACE, len(part))
        windows = [part[at : at + size] for at in range(len(part) - size + 1)]
        found += [window for window in windows if window in left and window not in around]
    return found


def _squeezed(text: str) -> str:
    return "".join(filter(str.isalnum, fold(text)))
