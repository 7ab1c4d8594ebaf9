"""Made-up words of four languages, for texts that compress and look like texts."""

from __future__ import annotations

from random import Random
from typing import Final

WORDS_PER_LANGUAGE: Final = 256
"""The statements under `sql/` count on it."""

_SYLLABLES: Final = {
    "en": "ing er tion re ca an plan ment re fund ser ac count ter able pro com ber ly th ou st",
    "ar": "ال مس است رد بي كت عم حس اب ات ون ين مد فع شر كة طل نق ما لو هد سن",
    "de": "ver rech nung gen ung ein kauf ab ge schäft heit keit liefer zahl ung frist be ö ü ßen",
    "es": "ción re em bol so cuen ta pa go pla zo con tra to ser vi cio año ños mien fac tu ra",
}

LANGUAGES: Final = tuple(_SYLLABLES)
"""In the order in which the statements number them."""


def words() -> list[str]:
    """The words of all languages, one language after the other, the common ones first."""
    return [word for language in LANGUAGES for word in _words_of(language)]


def _words_of(language: str) -> list[str]:
    random = Random(language)
    syllables = _SYLLABLES[language].split()
    found: dict[str, None] = {}
    while len(found) < WORDS_PER_LANGUAGE:
        found["".join(random.choices(syllables, k=random.choice((1, 2, 2, 3, 3, 4))))] = None
    return sorted(found, key=len)
