"""The end of the interpreter waits for native calls that are under way, and lets none begin after it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """
import atexit, os, sys, threading, time

said = []

def last_words():
    deadline = time.monotonic() + 20
    while sys.argv[1:] == ["refuses"] and not said and time.monotonic() < deadline:
        time.sleep(0.01)
    os.write(1, "".join(said).encode())

# Registered before perdure.native is imported, so called after its own.
atexit.register(last_words)
from perdure.errors import ModelError
from perdure.native import native_call

begun = threading.Event()

def thread(work):
    threading.Thread(target=work, daemon=True).start()
    begun.wait()

"""
WAITS = """
def work():
    with native_call():
        begun.set()
        time.sleep(0.5)
        said.append("done")

thread(work)
"""
REFUSES = """
def work():
    try:
        while True:
            with native_call():
                begun.set()
    except ModelError as error:
        said.append(str(error))

thread(work)
"""
FORKS = """
import perdure.native
perdure.native.PATIENCE = 3600

def work():
    with native_call():
        begun.set()
        time.sleep(60)

thread(work)
if os.fork():
    said.append(str(os.waitstatus_to_exitcode(os.wait()[1])))
    last_words()
    os._exit(0)
"""
SLOW = """
from perdure.embed.load import load_default

class Slow:
    sleep = staticmethod(time.sleep)

    def __del__(self):
        self.sleep(1)

slow = Slow()
"""
MODEL = """
embedder = load_default()

def work():
    try:
        while True:
            embedder.embed(["The heron nests at the lake in the reeds. " * 40] * 4)
            begun.set()
    except ModelError:
        return

thread(work)
"""
LOADING = """
def work():
    begun.set()
    try:
        while True:
            load_default()
    except ModelError:
        return

thread(work)
time.sleep(float(sys.argv[1]))
"""
LEAVES_WHILE_THE_MODEL_LOADS = """
import sys, time, traceback
import perdure.engine.engine

def loading():
    stacks = (traceback.extract_stack(frame) for frame in sys._current_frames().values())
    return any(each.name == "_create_inference_session" for stack in stacks for each in stack)

perdure.engine.engine.CLOSING = 0.0
deadline = time.monotonic() + 60
with perdure.Memory.open(sys.argv[1], timers=False):
    while not loading():
        assert time.monotonic() < deadline
        time.sleep(0.001)
"""


def run(code: str, *arguments: str) -> tuple[int, str, str]:
    ended = subprocess.run([sys.executable, "-c", HEAD + code, *arguments], capture_output=True, text=True, timeout=50)
    return ended.returncode, ended.stdout, ended.stderr


def test_what_is_under_way_is_waited_for() -> None:
    assert run(WAITS) == (0, "done", "")


def test_nothing_begins_afterwards() -> None:
    assert run(REFUSES, "refuses") == (0, "the program is exiting; models can no longer be loaded or called", "")


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_forked_child_does_not_wait_for_its_parents_calls() -> None:
    assert run(FORKS) == (0, "0", "")


def test_a_program_may_end_while_a_thread_computes_vectors() -> None:
    assert run(SLOW + MODEL) == (0, "", "")


@pytest.mark.parametrize("after", ["0.3", "0.9"])
def test_a_program_may_end_while_a_thread_loads_the_model(after: str) -> None:
    assert run(SLOW + LOADING, after) == (0, "", "")


def test_a_program_that_ends_while_the_model_loads_ends_well(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LEAVES_WHILE_THE_MODEL_LOADS, str(tmp_path)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (child.returncode, child.stderr) == (0, "")
