"""Tokens are put together from parts, so that no scanner of repositories takes them for real ones."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.secret_samples import Sample, look_alikes, secret_samples
from bench.secrets import hostile
from perdure.secrets.redact import redact
from tests.kit import for_each

_MIXED = "aB3dE6gH9jK2mN5pQ8sT1vW4xY7z"
_KEY = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldY"
_BEGIN = "-----BEGIN RSA PRIVATE" + " KEY-----"
_END = "-----END RSA PRIVATE" + " KEY-----"

# (kind, text around the secret with {} in its place, secret)
SECRETS = [
    ("api-key", "key {} end", "sk-" + _MIXED),
    ("api-key", "{}", "sk-proj-" + _MIXED),
    ("anthropic-key", "use {}.", "sk-ant-" + "api03-" + _MIXED),
    ("github-token", "({})", "ghp_" + _MIXED),
    ("github-token", "{}", "gho_" + _MIXED),
    ("github-token", "{}", "ghs_" + _MIXED),
    ("github-token", "{}", "github_pat_" + _MIXED),
    ("gitlab-token", "{}", "glpat-" + _MIXED[:20]),
    ("slack-token", "{}", "xoxb-" + "123456789012-" + _MIXED),
    ("aws-key", "id={}", "AKIA" + "IOSFODNN7KZMPL3Q"),
    ("aws-key", "id={}", "ASIA" + "Y34FZKBOKMUTVV7A"),
    ("google-key", "{}", "AIza" + "SyA1234567890abcdefghijklmnopqrstuv"),
    ("huggingface-token", "{}", "hf_" + _MIXED),
    ("npm-token", "{}", "npm_" + _MIXED + "abcdefgh"),
    ("pypi-token", "{}", "pypi-" + "AgEIcHlwaS5vcmc" + _MIXED),
    ("sendgrid-key", "{}", "SG." + _MIXED + "." + _MIXED),
    ("stripe-key", "{}", "sk_live_" + _MIXED),
    ("stripe-key", "{}", "rk_live_" + _MIXED),
    ("webhook", "post to {}", "https://hooks.slack.com/" + "services/T00000000/B00000000/" + _MIXED),
    ("webhook", "post to {}", "https://discord.com/" + "api/webhooks/123456789012345678/" + _MIXED),
    ("jwt", "{}", "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + _MIXED),
    ("private-key", "a\n{}\nb", f"{_BEGIN}\n{_KEY}\nQUJD\n{_END}"),
    ("private-key", "a\n{}\nand so on", f"{_BEGIN}\n{_KEY}\n{_KEY}"),
    ("private-key", '{{"k": "{}\\n"}}', f"{_BEGIN}\\n{_KEY}"),
    ("authorization", "Authorization: Basic {}", "YW5uYTpodW50ZXIy"),
    ("authorization", 'curl -H "authorization: Bearer {}"', "abc123def456ghi7"),
    ("url-password", "postgres://anna:{}@db.local:5432/x", "p4ss@word"),
    ("url-password", "https://:{}@example.org/", "hunter2"),
    ("password", "my password is {}", "hunter2"),
    ("password", "My password is {}.", "swordfish"),
    ("password", "the wifi password: {}", "sunlit-meadow-42"),
    ("password", "wifi password {}", "hunter2"),
    ("password", "password for the wifi at the cabin is {}, ok?", "bluefin77"),
    ("password", "I changed my password to {} today", "hunter2"),
    ("password", "DB_PASSWORD={}", "s3cr3t!x&y"),
    ("password", "PASSWORD={}\nUSER=anna", "swordfish"),
    ("password", '{{\\"password\\": \\"{}\\"}}', "hunter2"),
    ("password", 'config["password"] = "{}"', "hunter2"),
    ("password", 'my password is "{}"', "correct horse battery"),
    ("password", "password:\n  {}", "hunter2"),
    ("password", "mysql --password {} -u root", "hunter2"),
    ("password", "curl -u anna:{} https://example.org", "hunter2"),
    ("password", "<password>{}</password>", "hunter2"),
    ("password", "Mein Passwort ist {}", "geheim123"),
    ("password", "mot de passe : {}", "azerty99"),
    ("password", "mi contraseña es {}", "gatito99"),
    ("password", "我的密码是{}", "hunter2"),
    ("password", "パスワードは{}です", "hunter2"),
    ("password", "password={}", "a1" * 400),
    ("password", "openssl enc -aes-256-cbc -k {} -in a", "Hunter2Zebra99"),
    ("password", "openssl rsa -passin pass:{} -in a", "Hunter2Zebra99"),
    ("password", "zip -P {} a.zip b", "Hunter2Zebra99"),
    ("password", "htpasswd -b f bob {}", "Hunter2Zebra99"),
    ("password", "htpasswd -B -b f bob {}", "Hunter2Zebra99"),
    ("password", "htpasswd -nb bob {} > f", "Hunter2Zebra99"),
    ("password", "ldapsearch -w {} -D cn=x", "Hunter2Zebra99"),
    ("password", "error: password {} was refused for bob", "Hunter2Zebra99"),
    ("password", "password {} rejected", "Hunter2Zebra99"),
    ("password", "Passwort {} wurde abgelehnt", "Hunter2Zebra99"),
    ("github-token", "fix/token-{}", "ghp_" + "a1B2" * 9),
    ("passphrase", "my passphrase is {}.", "correct horse battery staple"),
    ("seed-phrase", "seed phrase: {}", "abandon ability able about above absent absorb abstract"),
    ("pin", "my PIN is {}", "4821"),
    ("pin", "The pin for the alarm is {}.", "482199"),
    ("api-key", '"api_key": "{}"', "a8f5f167f44f4964e6c998dee827110c"),
    ("api-key", "AccountKey={};EndpointSuffix=core", _MIXED + "+/=="),
    ("api-key", "aws_secret_access_key = {}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYKZMPL3QAB"),
    ("token", "the token is {}", "8f3a9c2b7d11"),
    ("token", "A_TOKEN={}\n\nSECRET_PLACE=here", "8f3a9c2b7d11"),
    ("card", "card {} exp 12/27", "4111 1111 1111 1111"),
    ("card", "in 2026 {}", "5500-0000-0000-0004"),
    ("card", "{}", "378282246310005"),
    ("ssn", "SSN {}", "123-45-6789"),
    ("ssn", "my social security number is {}", "123456789"),
    ("iban", "to {} AND thanks", "DE89 3704 0044 0532 0130 00"),
    ("iban", "{}", "GB29NWBK60161331926819"),
]

LOOK_ALIKES = [
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "id 550e8400-e29b-41d4-a716-446655440000",
    "password = get_password()",
    'password = os.environ["DB_PASS"]',
    "token: str",
    'token: str = Field(default="")',
    'def login(user: str, password: str = "") -> None:',
    "prompt='Password: ', stream=None)",
    "I forgot my password.",
    "Please reset my password, it does not work.",
    "YOUR_API_KEY",
    'api_key="YOUR_API_KEY"',
    "api_key: <your-api-key>",
    "export TOKEN=${TOKEN}",
    "sk-your-api-key-goes-here",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "password: required",
    "The password is too short",
    "password: 12 characters",
    "max_tokens = 4096, tokens: 123456789",
    "the token is expired",
    "password authentication was refused",
    "openssl req -key server.pem -out a.csr",
    "htpasswd -c f bob",
    "zip -r a.zip b",
    "cache-key-5d41402abc4b2a76b9719d911017c592",
    "My secret is that I like jazz from 1969",
    "My password manager is Bitwarden",
    "const token = await getToken();",
    "if (password !== confirmPassword) {",
    "self.password = password",
    "connect(password=settings.db.password, port=5432)",
    "the password is stored in 1Password",
    "my passphrase is too long to remember",
    '<input type="password" name="password" placeholder="Password">',
    '"password": "Enter your password"',
    "call me at 555-123-4567",
    "order 1234567890123456 of 2024-05-01",
    "shopping pinned at 12:30, GPIO pin 13, my PIN has 4 digits",
    "https://example.com:8080/path/@anna",
    "mail anna@example.com",
    "We use Bearer token authentication",
    "secret santa 2024",
    "hash the password with SHA256.",
    "timestamp 1719838293847, isbn 978-3-16-148410-0",
    "DE89 3704 0044 0532 0130 01",
    "-----BEGIN PUBLIC KEY-----",
    f"My key file starts with {_BEGIN} as always",
]

FRAGMENTS = [
    *(
        '"',
        "'",
        ":",
        "=",
        " ",
        "\n",
        "\\n",
        ",",
        ".",
        "]",
        "[",
        ">",
        "<",
        "</",
        "-",
        "_",
        "/",
        "1",
        "a",
        "@",
        "://",
        ";",
    ),
    *(
        "password",
        "my password is ",
        "passphrase: ",
        "token: ",
        "PIN ",
        "4821",
        "hunter2",
        "bearer ",
        " is ",
        " for ",
    ),
    *(
        "[redacted password]",
        "[redacted token]",
        "密码是",
        "İ",
        "ssn ",
        "--token ",
        "://a:b@",
        " -u a:",
        "key",
    ),
    *(_BEGIN, _END, _KEY, "sk-" + _MIXED, "AKIA" + "IOSFODNN7EXAMPLE", "4111 1111 1111 1111", "123-45-6789"),
]


@for_each(("kind", "around", "secret"), SECRETS)
def test_a_secret_is_replaced_and_nothing_else(kind: str, around: str, secret: str) -> None:
    result = redact(around.format(secret))
    assert result.text == around.format(f"[redacted {kind}]")
    assert result.kinds == (kind,)
    assert redact(result.text).text == result.text


@for_each("text", LOOK_ALIKES)
def test_a_look_alike_passes(text: str) -> None:
    assert redact(text).text is text
    assert redact(text).kinds == ()


def test_a_secret_far_behind_a_name_without_one_is_found() -> None:
    text = "a token " + "of words " * 77 + "then GITHUB_TOKEN=abcdefghijklmnop60f0da15c9"
    for length in range(40):
        assert redact("x" * length + text).kinds == ("token",), length


@for_each(("kind", "sample"), [(sample.kind, sample) for sample in secret_samples(3)], by="kind")
def test_every_kind_is_caught_in_every_place(kind: str, sample: Sample) -> None:
    once = redact(sample.text).text
    assert [part for part in sample.parts if part in once] == []
    assert redact(once).text == once


def test_the_kinds_and_look_alikes_are_many() -> None:
    assert len({sample.kind for sample in secret_samples(3)}) >= 45
    assert len({kind for kind, _ in look_alikes(3)}) >= 45


@for_each(("kind", "text"), look_alikes(4))
def test_a_look_alike_of_the_bench_passes(kind: str, text: str) -> None:
    assert redact(text).text == text, kind


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_secret_in_any_surroundings_is_gone(data: st.DataObject) -> None:
    sample = data.draw(st.sampled_from(secret_samples(5)))
    before, after = data.draw(st.text(max_size=40)), data.draw(st.text(max_size=40))
    text = f"{before}\n\n{sample.text}\n\n{after}"
    once = redact(text).text
    assert [part for part in sample.parts if part in once and part not in before and part not in after] == []
    assert redact(once).text == once


@for_each(("name", "text"), hostile(1).items())
def test_hostile_texts_come_to_an_end_and_are_redacted_once(name: str, text: str) -> None:
    once = redact(text[:20_000]).text
    assert redact(once).text == once


def test_several_secrets_in_one_text() -> None:
    result = redact(f"My PIN is 4821, my password is hunter2 and the key sk-{_MIXED} is new. My PIN is 9999.")
    assert result.text == (
        "My PIN is [redacted pin], my password is [redacted password] and the key [redacted api-key] is new. "
        "My PIN is [redacted pin]."
    )
    assert set(result.kinds) == {"pin", "password", "api-key"}
    assert len(result.kinds) == 3


@settings(max_examples=100)
@given(st.text(alphabet=st.characters(codec=None, exclude_categories=())))
def test_any_text_is_accepted(text: str) -> None:
    once = redact(text).text
    assert redact(once).text == once


def test_redacting_twice_changes_nothing_more() -> None:
    rng = random.Random(5)
    for _ in range(3000):
        once = redact("".join(rng.choices(FRAGMENTS, k=rng.randint(1, 12)))).text
        twice = redact(once)
        assert twice.text == once
        assert twice.kinds == ()


@pytest.mark.parametrize(
    "piece", ["eyJ", "sk-", _BEGIN, "password: ", "passphrase: a ", "4111 ", "://a:", "DE89 ", "İ"]
)
def test_hostile_repetition_ends(piece: str) -> None:
    once = redact(piece * (40_000 // len(piece))).text
    assert redact(once).text == once


def test_line_numbers_stay_true_where_they_are_asked_for() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\ndef\n-----END RSA PRIVATE KEY-----"
    text = f"one\n{key}\nlast"
    kept = redact(text, keep_lines=True).text.split("\n")
    assert len(kept) == len(text.split("\n"))
    assert (kept[0], kept[-1]) == ("one", "last")
    assert "MIIabc" not in "".join(kept)
