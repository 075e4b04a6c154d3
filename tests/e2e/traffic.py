"""A steady flow of requests to models that serve, and what became of each."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from testbed.demo.errors import DemoError
from testbed.demo.prompt import ask
from tests.e2e.answers import PROMPT, answer_of_the_target_alone

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from tests.e2e.place import Json, Place

PAUSE_SECONDS = 0.3
# Some turns of drafting; a long answer would take all models of the machine that much time.
MAX_TOKENS = 12
END_SECONDS = 70.0


@dataclass(frozen=True)
class Answers:
    """What became of the requests to one model or several.

    Attributes:
        right: how many were answered as the target alone does.
        wrong: other answers.
        failed: why requests had no answer.
    """

    right: int = 0
    wrong: Sequence[str] = ()
    failed: Sequence[str] = ()

    @property
    def count(self) -> int:
        """How many requests came to an end."""
        return self.right + len(self.wrong) + len(self.failed)

    def since(self, before: Answers) -> Answers:
        """Return those that came after an earlier look."""
        wrong, failed = self.wrong[len(before.wrong) :], self.failed[len(before.failed) :]
        return Answers(self.right - before.right, wrong, failed)


@dataclass
class _Client:
    """One client: the next request follows a short pause after each answer."""

    address: str
    status: Json
    expected: str
    answers: Answers = field(default_factory=Answers)

    def run(self, end: threading.Event) -> None:
        while not end.wait(PAUSE_SECONDS):
            seen = self.answers
            try:
                text = ask(self.address, self.status, PROMPT, max_tokens=MAX_TOKENS).text
            except DemoError as error:
                self.answers = Answers(seen.right, seen.wrong, [*seen.failed, str(error)])
                continue
            right = text == self.expected
            self.answers = Answers(seen.right + right, seen.wrong if right else [*seen.wrong, text], seen.failed)


class Traffic:
    """Clients of some models, each through its Service, from entering the context to leaving it."""

    def __init__(self, place: Place, names: Sequence[str]) -> None:
        expected = answer_of_the_target_alone(PROMPT, max_tokens=MAX_TOKENS)
        self._end = threading.Event()
        self._clients = {name: _Client(place.address(name), place.model(name)["status"], expected) for name in names}
        self._threads = [
            threading.Thread(target=client.run, args=(self._end,), name=f"client of {name}", daemon=True)
            for name, client in self._clients.items()
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join(END_SECONDS)

    def answers(self, *, since: Mapping[str, Answers]) -> dict[str, Answers]:
        """Return what became of the requests to each model so far, at least one of them after an earlier look."""
        deadline = time.monotonic() + END_SECONDS
        while any(client.answers.count <= since[name].count for name, client in self._clients.items()):
            assert time.monotonic() < deadline, "a model no longer answers, nor refuses"
            time.sleep(PAUSE_SECONDS)
        return {name: client.answers for name, client in self._clients.items()}
