import pytest

from perdure.recall.query import MOST_PARTS, parts, size


def test_a_short_prompt_is_one_part() -> None:
    assert parts("when does\nthe MOT run out?") == ["when does the MOT run out?"]


def test_a_blank_prompt_has_none() -> None:
    assert parts(" \n") == []


def test_each_request_of_a_long_prompt_is_a_part() -> None:
    found = parts(
        "1) write to the landlord about the boiler that has been cold since Monday, firmly but politely please.\n"
        "2) order a cake for Saturday, eight people, something with plenty of chocolate and a candle on top of it.\n"
        "3) which trains go to York tomorrow before nine, and where do I have to change on the way there?"
    )
    assert [part[:2] for part in found] == ["1)", "2)", "3)"]


def test_a_pasted_log_is_a_part_of_its_own() -> None:
    log = "\n".join(f"2026-02-01T23:14:{second:02}Z WARN callback: dup key" for second in range(9))
    found = parts(f"why does the handler lose payments, and who should I call about it at this hour?\n{log}\nbe brief")
    assert len([part for part in found if "WARN" in part]) == 1
    assert found[0].startswith("why does the handler lose payments")


def test_dictation_without_full_stops_is_cut_at_its_clauses() -> None:
    spoken = "so first write a note to the pastor about sunday and then tell me how radio waves travel " * 4
    assert 1 < len(parts(spoken)) <= MOST_PARTS


@pytest.mark.parametrize("text", ["word " * 2000, "Eins. Zwei! " * 300, "```\nx = 1\n```\n" * 20, "我喜欢喝茶。" * 200])
def test_there_are_never_more_than_six(text: str) -> None:
    assert 1 <= len(parts(text)) <= MOST_PARTS


def test_two_characters_of_a_script_without_spaces_are_a_word() -> None:
    assert size("我喜欢喝茶") == 3
    assert size("I like tea") == 3
