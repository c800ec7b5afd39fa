"""How languages tell a password: what it is called, which words say "is", and which say what it is for.

To add a language, add a row. A star stands for an ending, or
for any word. The first row's words are used in the other languages, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ROWS = (
    (
        "password, passwords, passwd, passcode, pwd",
        "is, was, are, ist, lautet, c'est, est, es el, es, era, è, é, je, jest, är, er, set to, to",
        "for, to, of, on, at, in, from, that, which, we, i, für, zum, vom, de, del, della, du, do, di, per, para, pour",
    ),
    ("passwort*, kennwort*", "lautet, war, heißt", "für, fürs, zu, zum, zur, vom, von, des, der, im, am"),
    ("wlan-schlüssel, wlan schlüssel, wifi-schlüssel, netzwerkschlüssel", "lautet, war", "für, zum, vom"),
    ("mot de passe, mots de passe, mdp", "était", "pour, de, du, des, d'accès"),
    ("contraseña*, contrasena*, clave de, clave del", "son", "para, de, del, a, al"),
    ("parola d'ordine, parola chiave", "era", "per, di, del, della, dello"),
    ("senha*, palavra-passe, palavra passe", "são", "para, de, do, da, no, na"),
    ("wachtwoord*", "luidt", "voor, van, op, bij, om"),
    ("hasł*, haslo*", "brzmi, było", "do, dla, od, na"),
    ("şifre*, sifre*", "", "için, icin"),
    ("parola*, parolă", "este", "için, icin, de la, la, pentru, mea"),
    ("парол*", "это, был, теперь, є", "от, для, к, на, в, від, до, за"),
    ("hesl*", "zní, znie, bylo, bolo", "k, ke, ku, na, od, pro"),
    ("lozink*, šifra, geslo, лозинк*", "glasi, је", "za, od, na, za"),
    ("lösenord*, losenord*", "var, lyder", "till, för, på"),
    ("adgangskode*, kodeord*, passord*", "var", "til, på"),
    ("salasana*", "on, oli", ""),
    ("jelsz*", "az, ez, most", "a, az"),
    ("κωδικ*, συνθηματικ*", "είναι, ήταν", "για, του, της, στο"),
    ("kata sandi, kata laluan", "adalah, ialah, yaitu", "*"),
    ("mật khẩu", "là", "*"),
    ("كلمة المرور, كلمة السر, رمز عبور, گذرواژه", "هي, هو, است", "الخاصة"),
    ("סיסמ*", "היא, הוא", "של"),
    ("पासवर्ड", "है", "का, के"),
)
"""What a password is called; "is"; "for"."""
GLUED_NAMES = "密码, 密碼, 口令, パスワード, パスコード, 비밀번호, 패스워드, รหัสผ่าน"
GLUED_VERBS = "是, 为, 為, は, 는, 은, คือ"
"""In scripts that set no spaces between words."""
_SHORT = 5
"""Letters of a name that also occurs inside of other words, in the alphabets up to this one."""
_LATIN = "\u0250"
_ANY = r"[^\W\d_]{1,20}"


@dataclass(frozen=True, slots=True)
class Wording:
    """How a language tells a password.

    Attributes:
        stems: literals in lower case; every match of `names` begins with one of them.
        names: pattern of what it is called.
        verbs: a comma list of words for "is".
        joints: a comma list of words for "for".
    """

    stems: tuple[str, ...]
    names: str
    verbs: str
    joints: str


def words(listed: str) -> list[str]:
    """Return what a comma list holds, longer ones first."""
    return sorted({word.strip() for word in listed.split(",")} - {""}, key=lambda word: (-len(word), word))


def either(listed: str) -> str:
    """Return a pattern for the words of a comma list."""
    return "|".join(re.escape(word).replace("'", "['\u2019]").replace(r"\*", _ANY) for word in words(listed))


def _named(name: str) -> str:
    stem = name.removesuffix("*")
    whole = len(stem) <= _SHORT and stem < _LATIN
    return (r"(?<![^\W_])" if whole else "") + re.escape(stem) + (r"[^\W\d_]{0,6}" if name.endswith("*") else "")


_SHARED = _ROWS[0]
WORDINGS = tuple(
    Wording(
        tuple(name.removesuffix("*") for name in words(names)),
        "|".join(map(_named, words(names))),
        f"{verbs}, {_SHARED[1]}",
        f"{joints}, {_SHARED[2]}",
    )
    for names, verbs, joints in _ROWS
)
"""English first."""
