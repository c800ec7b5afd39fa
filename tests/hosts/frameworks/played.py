"""What a conversation with an agent of a framework leaves for the contract to look at."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Played:
    """A conversation.

    Attributes:
        wires: what each call of the model was sent, as text.
        answers: what the agent answered to each message.
        history: what the framework has stored of it, as text.
    """

    wires: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    history: str = ""
