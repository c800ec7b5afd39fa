"""perdure as somebody meets it who has nothing of it yet: built, installed from the wheel, used as the pages say.

    python -m tests.e2e.clean --dir DIR [--weigh]

Builds wheel and source distribution, looks at what is in them, installs the wheel into a fresh environment below DIR,
counts what comes with it, and goes through docs/first-minute.md and the tutorials with an empty home. Then the same, up
to the demonstration, from the source distribution. Only `pip install` reaches the network. Exit code 0 if all of it
holds. With --weigh it ends with the weight.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from tests.e2e.newcomer import Newcomer, Ran, Section, sections
from tests.e2e.package import Built, build, environment, in_sdist, in_wheel, sdist_problems, wheel_problems

DISTRIBUTIONS = 50
"""So many come with perdure at the most; pip, setuptools and perdure itself are not counted."""
MEGABYTES = 330.0
"""So much all of it may weigh on Linux, perdure itself and its byte code included."""
NOT_COUNTED = ("perdure", "pip", "setuptools")
LIST = """
import json
from importlib.metadata import distributions

def size(distribution):
    paths = (distribution.locate_file(file) for file in distribution.files or ())
    return sum(path.stat().st_size for path in paths if path.is_file())

print(json.dumps({each.name: size(each) for each in distributions()}))
"""
MB = 1e6


@dataclass(frozen=True, slots=True)
class Weight:
    """What an environment holds.

    Attributes:
        distributions: installed size in bytes, by name, without those that are not counted.
        own: the size of perdure itself.
    """

    distributions: dict[str, int]
    own: int

    @property
    def megabytes(self) -> float:
        """The sum, perdure itself included."""
        return round((sum(self.distributions.values()) + self.own) / MB, 1)


def weight(programs: Path) -> Weight:
    """Return what is installed."""
    done = subprocess.run([programs / "python", "-I", "-c", LIST], capture_output=True, text=True, check=True)
    sizes: dict[str, int] = json.loads(done.stdout)
    counted = {name: size for name, size in sizes.items() if name.lower() not in NOT_COUNTED}
    return Weight(dict(sorted(counted.items(), key=lambda item: -item[1])), sizes["perdure"])


def from_wheel(folder: Path, wheel: Path) -> Iterator[tuple[Section, list[Ran], Weight | None]]:
    """Go through the pages with the wheel, a new home for each section; the weight is that without extras."""
    programs, site = environment(folder / "wheel")
    for number, section in enumerate(sections()):
        user = Newcomer(folder / f"home-{number}", programs, site, wheel)
        user.own_hosts(section)
        ran = user.go_through(section)
        plain = number == 0
        yield section, ran, weight(programs) if plain else None


def from_sdist(folder: Path, sdist: Path) -> Iterator[tuple[Section, list[Ran], Weight | None]]:
    """Install from the source distribution, and play the demonstration."""
    programs, site = environment(folder / "sdist")
    for number, section in enumerate(sections()[:2]):
        user = Newcomer(folder / f"home-sdist-{number}", programs, site, sdist)
        yield section, user.go_through(section), None


def to_the_answer(ran: Sequence[Ran]) -> dict[str, float]:
    """Return what it took from the first step to the answer, installations left out: on the clock, and of the CPU."""
    steps = [each for each in ran if not each.install]
    return {
        "seconds": round(sum(each.seconds for each in steps), 1),
        "cpu_seconds": round(sum(each.cpu_seconds for each in steps), 1),
    }


def contents(built: Built) -> dict[str, Any]:
    """Return files and bytes of both, and what is wrong with them."""
    wheel, sdist = in_wheel(built.wheel), in_sdist(built.sdist)
    return {
        "wheel": {"files": len(wheel), "bytes": built.wheel.stat().st_size, "problems": wheel_problems(wheel)},
        "sdist": {"files": len(sdist), "bytes": built.sdist.stat().st_size, "problems": sdist_problems(sdist)},
    }


def transcript(ran: Sequence[Ran]) -> str:
    """Return what was typed and what came out."""
    parts = []
    for each in ran:
        prompt = {"sh": "$ ", "python": ">>> "}[each.language]
        typed = "".join(f"{prompt}{line}\n" for line in each.source.splitlines())
        parts.append(typed + ("" if each.install else each.output))
    return "\n".join(parts)


def weighed(plain: Weight) -> str:
    """Return what an environment holds, a line each."""
    lines = [f"{size / MB:8.1f} MB  {name}" for name, size in plain.distributions.items()]
    total = f"{len(plain.distributions)} distributions come with perdure, {plain.megabytes} MB in all"
    return "\n".join([*lines, f"{plain.own / MB:8.1f} MB  perdure itself", total])


def weigh(folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Build the wheel, install it alone, and return what comes with it."""
    built = build(folder / "dist")
    programs, _ = environment(folder / "wheel")
    subprocess.run([programs / "python", "-I", "-m", "pip", "install", "--quiet", built.wheel], check=True)
    plain = weight(programs)
    say(weighed(plain))
    return _weights(plain) | {"ok": _light(plain)}


def _weights(plain: Weight) -> dict[str, Any]:
    return {"count": len(plain.distributions), "megabytes": plain.megabytes, "weight": asdict(plain)}


def _light(plain: Weight) -> bool:
    return len(plain.distributions) <= DISTRIBUTIONS and plain.megabytes <= MEGABYTES


def run(folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Do all of it; return the figures."""
    built = build(folder / "dist")
    result = contents(built) | {"to_the_answer": {}, "from_sdist": {}}
    for name in ("wheel", "sdist"):
        say(f"{name}: {result[name]['files']} files, {result[name]['bytes'] / MB:.1f} MB packed")
    for section, ran, plain in from_wheel(folder, built.wheel):
        say(f"\n## {section.title}\n\n{transcript(ran)}")
        if plain is not None:
            result |= _weights(plain) | {"ok": _light(plain)}
            say(weighed(plain))
        else:
            took = result["to_the_answer"][section.title] = to_the_answer(ran)
            say(f"[{took['seconds']} s from the first command to the answer, {took['cpu_seconds']} s of CPU]")
    for section, ran, _ in from_sdist(folder, built.sdist):
        result["from_sdist"][section.title] = to_the_answer(ran)
        say(f"from the source distribution: {section.title}: ok")
    result["ok"] &= not (result["wheel"]["problems"] + result["sdist"]["problems"])
    return result


@click.command()
@click.option("--dir", "folder", type=click.Path(path_type=Path), required=True, help="A new folder to work in.")
@click.option("--weigh", "only", is_flag=True, help="Only print what comes with an installation, and its size.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def main(folder: Path, only: bool, as_json: bool) -> None:
    """Build, install, and use perdure as docs/first-minute.md and the tutorials say."""
    if folder.exists() and any(folder.iterdir()):
        raise click.BadParameter(f"{folder} is not empty; name a new folder")
    result = (weigh if only else run)(folder.absolute(), lambda text: None if as_json else click.echo(text))
    if as_json:
        click.echo(json.dumps(result))
    elif not only:
        for problem in result["wheel"]["problems"] + result["sdist"]["problems"]:
            click.echo(problem)
        click.echo("\nfrom the first command to the answer:")
        for title, took in result["to_the_answer"].items():
            click.echo(f"{took['seconds']:8.1f} s {took['cpu_seconds']:8.1f} s of CPU  {title}")
    sys.exit(int(not result["ok"]))


if __name__ == "__main__":
    main()
