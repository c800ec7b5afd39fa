"""Draws what the first pages show, from what really ran: python -m scripts.pictures.

A terminal in which `perdure demo` plays a short script, and bars of what `python -m bench precision` measures. The
pictures of the local page come from `python -m tests.e2e.ui --screenshots docs/images`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "images"
SCRIPT = {
    "title": "Two days with the same agent",
    "sessions": [
        {
            "id": "monday", "days_ago": 3,
            "turns": [
                {"user": "I'm allergic to peanuts.", "agent": "I will keep that in mind."},
                {"user": "The staging database is called heron.", "agent": "Noted."},
                {"user": "What does the S in HTTPS stand for?", "agent": "Secure."},
            ],
        },
        {
            "id": "thursday",
            "turns": [
                {"user": "Is this snack with nuts okay for me?", "agent": "Not with peanuts.", "expect": ["peanut"]},
                {"user": "Which database do I point the tests at?", "agent": "At heron.", "expect": ["heron"]},
                {"user": "What is seven times eight?", "agent": "56.", "expect": []},
            ],
        },
    ],
}  # fmt: skip
LINE, TOP, LEFT, SECONDS = 22, 52, 20, 0.35
"""Height of a line, above the first and left of all, in pixels; between a line and the next."""
COLOURS = {"---": "#8b949e", "user": "#79c0ff", "agent": "#d2a8ff", "  captured": "#7ee787", "  recalled": "#ffa657"}
NAMES = {"perdure": "perdure", "vector_top10": "top 10 by similarity", "fts5_top10": "top 10 by keywords"}
LONGEST = 380
"""Pixels of a bar for 1."""
MEASURES = ("precision", "recall", "silence")


def main() -> None:
    """Write the pictures."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "terminal.svg").write_text(terminal(played()), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "bench", "precision", "--json"], cwd=ROOT, check=True, capture_output=True
    )
    figures = json.loads(run.stdout)
    told = f"Of {figures['queries']} labelled prompts, the half that nothing was tuned on"
    (FOLDER / "precision.svg").write_text(bars(figures["untouched"], told), encoding="utf-8")


def played() -> Sequence[str]:
    """Return what `perdure demo` prints for the script, without times, which differ from run to run."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.json"
        script.write_text(json.dumps(SCRIPT), encoding="utf-8")
        command = [sys.executable, "-m", "perdure", "demo", "--script", str(script)]
        printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout  # noqa: S603 - ours
    lines = [line for line in printed.splitlines() if not re.match(r"  recall [\d.]+ ms|\d+ ", line)]
    return lines[: max(place for place, line in enumerate(lines) if line.startswith("agent")) + 1]


def terminal(lines: Sequence[str]) -> str:
    """Return an SVG of a terminal in which the lines appear one after the other."""
    height = TOP + LINE * (len(lines) + 1)
    shown = ["$ perdure demo", *lines]
    rows = "\n".join(
        f'<text x="{LEFT}" y="{TOP + LINE * place}" fill="{_colour(line)}"'
        f' style="animation-delay:{SECONDS * place:.2f}s">{escape(line)}</text>'
        for place, line in enumerate(shown)
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height}" role="img" aria-labelledby="t"
 font-family="ui-monospace, monospace" font-size="14">
<title id="t">perdure demo: on Thursday the agent remembers what was said on Monday</title>
<style>text{{white-space:pre;opacity:0;animation:in .2s forwards}}@keyframes in{{to{{opacity:1}}}}
@media (prefers-reduced-motion:reduce){{text{{opacity:1;animation:none}}}}</style>
<rect width="720" height="{height}" rx="10" fill="#0d1117"/>
<circle cx="20" cy="18" r="5" fill="#30363d"/><circle cx="38" cy="18" r="5" fill="#30363d"/>
<circle cx="56" cy="18" r="5" fill="#30363d"/>
{rows}
</svg>
"""


def bars(figures: Mapping[str, Mapping[str, float]], told: str) -> str:
    """Return an SVG of bars.

    Args:
        figures: per system, the name of a measure with its value, 0 to 1.
        told: what was measured.
    """
    rows, y = [], 58
    for measure in MEASURES:
        rows.append(f'<text class="h" x="20" y="{y}">{measure}</text>')
        for system, values in figures.items():
            y += 26
            value, long = values[measure], round(LONGEST * values[measure])
            rows.append(
                f'<text x="190" y="{y}" text-anchor="end">{escape(NAMES.get(system, system))}</text>'
                f'<rect class="{"ours" if system == "perdure" else "other"}" x="204" y="{y - 13}" height="17"'
                f' width="{max(1, long)}"/><text x="{212 + long}" y="{y}">{value:.2f}</text>'
            )
        y += 38
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 660 {y}" role="img" aria-labelledby="t"
 font-family="system-ui, sans-serif" font-size="13">
<title id="t">Precision, recall and silence of perdure and of what others do</title>
<style>text{{fill:#1d2b26}}.h{{font-weight:600;font-size:14px}}.s{{fill:#41524b}}.ours{{fill:#0b6e5f}}.other{{fill:#b7c4bf}}</style>
<rect width="660" height="{y}" fill="#ffffff"/>
<text class="s" x="20" y="26">{escape(told)}</text>
{chr(10).join(rows)}
</svg>
"""


def _colour(line: str) -> str:
    return next((colour for start, colour in COLOURS.items() if line.startswith(start)), "#e6edf3")


if __name__ == "__main__":
    main()
