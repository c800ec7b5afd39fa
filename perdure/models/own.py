"""The language model that a program has, which reads what is said through that program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from perdure.errors import ModelError
from perdure.librarian.operations import schema
from perdure.llm import Purpose
from perdure.models.llm import counted
from perdure.store.llm import TokenMeter


@dataclass(frozen=True, slots=True)
class Own:
    """Asks a `perdure.llm.LanguageModel`, or a chat model of LangChain."""

    model: Any
    meter: TokenMeter

    def ask_json(self, prompt: str, *, purpose: Purpose, system: str = "", timeout: float | None = None) -> Any | None:
        """Return the JSON of the answer, or None if there is none; ModelError if the model failed.

        How long it may take is the program's to say.
        """
        return counted(self.meter, purpose, prompt, system, self._answer)

    def _answer(self, prompt: str, system: str) -> str:
        try:
            if hasattr(self.model, "invoke"):
                return str(self.model.invoke([("system", system), ("human", prompt)]).text)
            return str(self.model(system, prompt, schema()))
        except Exception as error:
            raise ModelError(f"the program's language model failed: {type(error).__name__}") from error
