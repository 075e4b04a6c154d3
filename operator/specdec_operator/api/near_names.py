"""What somebody meant who wrote a name that does not exist: a similar name, or the same one at another place."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from specdec_operator.api.tree import Location, fields_of, model_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic import BaseModel

_MOST_PLACES: Final = 3
_NEVER_WRITTEN: Final = frozenset({"status", "apiVersion", "kind"})


def same(name: str, known: Iterable[str]) -> str | None:
    """The name that differs in case and punctuation alone."""
    return next((each for each in known if _letters(each) == _letters(name)), None)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The name that was probably meant; None where none is near."""
    names = list(known)
    by_letters = {_letters(each): each for each in reversed(names)}
    close = difflib.get_close_matches(_letters(name), by_letters, n=1)
    return same(name, names) or (by_letters[close[0]] if close else None)


def places_of(model: type[BaseModel], location: Location) -> list[str]:
    """Where else in a document a field of this name is known, as paths: the nearest to where it stands."""
    name = str(location[-1])
    found = [place for place in _places(model, ()) if _letters(place[-1]) == _letters(name)]
    far = {place: (-_common(place, location), len(place)) for place in found}
    return [".".join(place) for place in found if far[place] == min(far.values())][:_MOST_PLACES]


def _places(model: type[BaseModel], above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, field in fields_of(model).items():
        if name in _NEVER_WRITTEN and not above:
            continue
        yield (*above, name)
        inner = model_in(field.annotation)
        if inner is not None:
            yield from _places(inner, (*above, name))


def _common(place: Location, other: Location) -> int:
    pairs = enumerate(zip(place, other, strict=False))
    return next((index for index, (one, two) in pairs if one != two), min(len(place), len(other)))


def _letters(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())
