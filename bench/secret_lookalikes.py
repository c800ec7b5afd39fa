"""What looks like a secret and is none, made by chance from patterns."""

from __future__ import annotations

import random

from bench.secret_samples import fill

PATTERNS: dict[str, tuple[str, ...]] = {
    "git-hash": ("commit <40h>", "fixed in <7h>", "<40h> refs/heads/main", "git checkout <12h>"),
    "uuid": ("id <8h>-<4h>-4<3h>-a<3h>-<12h>", '{"id": "<8h>-<4h>-4<3h>-b<3h>-<12h>"}'),
    "checksum": ("sha256: <64h>", "<32h>  file.tar.gz", "md5 <32h>", "sha256:<64h>"),
    "integrity": ('"integrity": "sha512-<86b>=="', "h1:<43b>="),
    "image": ("data:image/png;base64,iVBORw0KGgo<80b>", "![x](data:image/jpeg;base64,/9j/4AAQ<60b>)"),
    "documented-aws": ("AKIA" + "IOSFODNN7EXAMPLE", "aws_access_key_id = AKIA" + "I44QH8DHBEXAMPLE"),
    "documented-aws-secret": ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY",),
    "documented-token": (
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "xoxb-your-token-goes-here",
        "sk_test_xxxxxxxxxxxxxx",
    ),
    "placeholder": (
        "api_key=YOUR_API_KEY",
        "token: <token>",
        "password: ****",
        "export KEY=${KEY}",
        "{{ secrets.TOKEN }}",
    ),
    "placeholder-key": ("sk-your-api-key-goes-here", "Authorization: Bearer <token>", "Authorization: Bearer $TOKEN"),
    "placeholder-url": ("https://user:${PASSWORD}@host/", "postgres://user:<password>@localhost/db"),
    "environment": ('password = os.environ["X<3d>"]', "token = process.env.TOKEN_<2d>", "os.getenv('API_KEY')"),
    "call": ("password = getPassword()", "const token = await fetchToken(user<2d>);", "secret = generate_secret(32)"),
    "attribute": ("self.password = password", "token=settings.auth.token", "api_key = config.api_key"),
    "type": (
        "password: str",
        "token: string;",
        "secret: Option<String>",
        "def login(user: str, password: str) -> None:",
    ),
    "condition": ("if (password !== confirmPassword) {", "assert token is not None", "while password == '':"),
    "column": ("password VARCHAR(255) NOT NULL", "token TEXT UNIQUE,", "SELECT password FROM users"),
    "passphrase-code": ("Vault(folder, passphrase=passphrase, clock=self.clock)", "passphrase: str | None = None"),
    "form": ("Password:\nPassword again:\n", "username: password: remember me: yes"),
    "html": (
        '<input type="password" name="password">',
        "<label>Password</label>",
        '<input name="token" type="hidden">',
    ),
    "forgot": ("I forgot my password.", "Ich habe mein Passwort vergessen.", "He olvidado mi contrase\u00f1a."),
    "reset": (
        "Please reset my password, it does not work.",
        "How do I change the wifi password?",
        "J'ai perdu mon mot de passe.",
    ),
    "about-password": ("The password is too short.", "My password manager is Bitwarden", "the password is wrong again"),
    "about-rules": (
        "password: at least 12 characters",
        "A PIN has 4 digits.",
        "Passwords must contain <2d> characters",
    ),
    "about-token": ("the token is expired", "We pay per token, 4096 tokens are the limit", "max_tokens = 4<3d>"),
    "about-secret": (
        "My secret is that I like jazz from 1969",
        "It is no secret that she left.",
        "secret santa 20<2d>",
    ),
    "about-key": ("the key is under the mat", "press any key to go on", "primary key: user_id", "key: value"),
    "about-pin": ("GPIO pin <2d> is high", "pin the tab", "shopping pinned at 12:30", "bowling: 10 pins"),
    "about-code": ("the zip code is 9<4d>", "error code 404", "area code 212", "exit code 137", "country code 49"),
    "about-seed": (
        "the seed is 42",
        "We planted tomato seeds, onion and garlic in the garden today",
        "random.seed(<4d>)",
    ),
    "about-cookie": ("accept all cookies", "Cookie: theme=dark; lang=en", "cookie recipe: 200 g flour"),
    "about-bearer": (
        "We use Bearer token authentication",
        "the bearer of good news",
        "basic understanding of chemistry",
    ),
    "isbn": ("isbn 978-3-16-148410-0", "ISBN 9783161484100"),
    "order": ("order 1<7d>-<3d>", "order no. 20<10d>", "invoice INV-<8d>", "ticket #<6d>"),
    "parcel": ("parcel 1Z999AA1<10d>", "tracking RR<9d>DE"),
    "phone": ("call me at 555-1<2d>-4<3d>", "+49 170 <7d>", "+1 (212) 555-0<3d>", "Tel. 030 <8d>"),
    "version": ("python 3.11.<2d>", "v<1d>.<2d>.<1d>-beta.<1d>", "numpy==1.26.<1d>", "kernel 6.1.0-<2d>-amd64"),
    "address": ("10.0.<2d>.<2d>", "fe80::<4h>:<4h>:<4h>:<4h>", "00:1a:<2h>:<2h>:<2h>:<2h>", "localhost:8080"),
    "time": ("20<2d>-05-01T12:30:00Z", "timestamp 17<11d>", "at 12:30 on 3 May 2024", "2024-05-01 10:00:00.<6d>"),
    "position": ("48.20<4d>, 16.37<4d>", "52\u00b031'12\"N"),
    "price": ("it costs 1 299.<2d> EUR", "budget 12 000 000 for 2025", "1,234,567.89"),
    "address-street": ("1<2d> Main Street, 90210", "Hauptstra\u00dfe 12, 1010 Wien"),
    "url": ("https://example.com:8080/path/@anna", "https://youtu.be/<11w>", "https://example.org/?page=2&sort=name"),
    "long-url": ("https://docs.google.com/document/d/1<43w>/edit", "https://www.amazon.de/dp/B0<8A>?ref=abc"),
    "mail": ("mail anna@example.com", "git@github.com:anna/heron.git", "ssh://git@example.org/x.git"),
    "path": ("/usr/lib/python3.11/site-packages/pip/_vendor/urllib3/util/ssl_.py", "C:\\Users\\anna\\key.txt"),
    "identifier": (
        "test_the_user_can_change_the_password_twice_20",
        "sk-learn-extra-package-for-clustering",
        "key-value-store",
    ),
    "public-key": ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI<43b> anna@x", "-----BEGIN PUBLIC KEY-----"),
    "certificate": ("-----BEGIN CERTIFICATE-----\n<64b>\n-----END CERTIFICATE-----",),
    "wrong-card": ("4111 1111 1111 1112", "5500 0000 0000 0005"),
    "wrong-iban": ("DE89 3704 0044 0532 0130 01",),
    "docker-image": ("registry.example.org/app@sha256:<64h>", "nginx:1.25.<1d>"),
    "etag": ('ETag: "<32h>"', "x-request-id: <32h>", "trace_id=<32h>"),
    "colour": ("#<6h>", "rgba(12, 34, 56, 0.7)"),
    "publishable": ("pk_live_<24w>", "pk.eyJ<60w>.<22w>"),
    "words": (
        "able about above all also and any are at away back be because been before",
        "one two three four five six",
    ),
    "list": ("milk eggs bread butter coffee tea sugar flour rice pasta oil salt", "red green blue black white"),
    "file-name": (
        "sk-learn-notes-20<2d>-final.md",
        "re_read-the-report-of-20<2d>.txt",
        "live_stream_20<2d>_highlights",
    ),
    "foreign-remark": (
        "Das Passwort für den Router ist abgelaufen.",
        "Le mot de passe doit contenir 8 caractères.",
        "La contraseña es incorrecta.",
        "La password è scaduta.",
        "Het wachtwoord moet 8 tekens zijn",
        "Пароль должен содержать 8 символов.",
        "密码长度为8到16位",
    ),
    "next-sentence": ("I forgot my password. It is annoying.", "New password policy. It is <2d> characters long."),
    "table": (
        "| Feature | Password | Token |\n|---|---|---|\n| Two factors | Yes | No |",
        "| Field | Type |\n|---|---|\n| password | string |",
        'KEYS = [\n    "password",\n    "heron<2d>",\n]',
    ),
    "plain-base64": ("data:text/plain;base64,SGVsbG8gd29ybGQsIHRoaXMgaXMgZmluZQ==",),
    "yaml-tag": ("password: !vault |", "token: !secret wifi_token"),
    "pinned-year": ("Pin 20<2d> goals to the top of the channel.", "My locker is number <4d>."),
    "redacted": ("my password is [redacted password]", "token: [redacted token]"),
}


def look_alikes(seed: int) -> list[tuple[str, str]]:
    """Return texts that must pass as they are, each with its kind."""
    rng = random.Random(seed)
    return [(kind, fill(rng, pattern)) for kind, patterns in PATTERNS.items() for pattern in patterns]
