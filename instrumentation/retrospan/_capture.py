"""How much of a request's content is recorded, and in which form.

Settings are checked where they are given. What they come to is decided at each request, because
`configure` may run after a class was decorated, and the standard environment variable wins.
"""

import hashlib
import hmac
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from retrospan._encoding import LEFT_OUT, Json, canonical_json, clean_text, cut_text, plain, to_text
from retrospan._errors import ConfigurationError
from retrospan._guard import note_once

CaptureMode = Literal["full", "passages-hashed", "hashed", "none"]
"""`full` records every text; `passages-hashed` passages as hashes; `hashed` question and answer
as hashes too; `none` neither question nor answer. Ids, scores, tokens and passage hashes are
recorded in all of them."""

Redact = Callable[[str], str]
"""Returns what may be recorded of a text. It is called for every text, before anything else."""

VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The standard variable for capturing content; where it is set, it wins."""

MAX_TEXT_LENGTH: Final = 100_000
MAX_METADATA_LENGTH: Final = 20_000
MAX_JSON_LENGTH: Final = 1_000_000
"""Characters of one JSON value, such as a request's input, over all of its texts."""

_SHORTEST_KEY: Final = 16


def _check_key(key: object) -> None:
    if key is None:
        return
    if not isinstance(key, bytes | str):
        raise ConfigurationError(
            f"hash_key must be bytes or a text; it is a {type(key).__qualname__}"
        )
    if len(key) < _SHORTEST_KEY:
        raise ConfigurationError(
            f"hash_key must have {_SHORTEST_KEY} bytes or more; it has {len(key)}: take"
            " secrets.token_bytes(32), and keep it where the application's secrets are"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureSettings:
    """What was said about capture in one place; None leaves it to `configure`, else the default."""

    capture: CaptureMode | None = None
    redact: Redact | None = None
    hash_key: bytes | str | None = field(default=None, repr=False)
    """Makes every hash an HMAC, so that short texts cannot be guessed from it."""

    max_text_length: int | None = None
    """Characters of one text: a question, a query, a passage, an answer."""

    max_metadata_length: int | None = None
    """Characters of one passage's metadata as JSON."""

    def __post_init__(self) -> None:
        if self.capture is not None and self.capture not in get_args(CaptureMode):
            modes = ", ".join(repr(mode) for mode in get_args(CaptureMode))
            raise ConfigurationError(f"capture must be one of {modes}; it is {self.capture!r}")
        if self.redact is not None and not callable(self.redact):
            raise ConfigurationError(
                "redact must be a function that takes a text and returns the text to record; it"
                f" is a {type(self.redact).__qualname__}"
            )
        _check_key(self.hash_key)
        for name in ("max_text_length", "max_metadata_length"):
            limit = getattr(self, name)
            if limit is not None and (type(limit) is not int or limit < 1):
                raise ConfigurationError(
                    f"{name} must be a whole number of characters, 1 or more; it is {limit!r}"
                )

    def resolved(self) -> "Capture":
        """Return what these settings come to now: the variable, these, `configure`, defaults."""
        shared = _process.settings
        key = self.hash_key if self.hash_key is not None else shared.hash_key
        return Capture(
            mode=_mode(self.capture or shared.capture or "full"),
            redact=self.redact or shared.redact,
            hash_key=key.encode() if isinstance(key, str) else key,
            max_text_length=self.max_text_length or shared.max_text_length or MAX_TEXT_LENGTH,
            max_metadata_length=(
                self.max_metadata_length or shared.max_metadata_length or MAX_METADATA_LENGTH
            ),
        )


class Capture:
    """What is recorded in one request: every text of the host goes through here."""

    __slots__ = (
        "_hash_key",
        "_max_text_length",
        "hashes_question",
        "keeps_passages",
        "keeps_question",
        "max_metadata_length",
        "mode",
        "redact",
    )

    def __init__(
        self,
        *,
        mode: CaptureMode = "full",
        redact: Redact | None = None,
        hash_key: bytes | None = None,
        max_text_length: int = MAX_TEXT_LENGTH,
        max_metadata_length: int = MAX_METADATA_LENGTH,
    ) -> None:
        self.mode: Final = mode
        self.redact: Final = None if redact is None else _Closed(redact)
        self.keeps_passages: Final = mode == "full"
        self.keeps_question: Final = mode in ("full", "passages-hashed")
        self.hashes_question: Final = mode == "hashed"
        self._hash_key = hash_key
        self._max_text_length = max_text_length
        self.max_metadata_length: Final = max_metadata_length

    @property
    def has_key(self) -> bool:
        """Whether hashes are keyed."""
        return self._hash_key is not None

    def whole(self, value: object) -> str:
        """Return the text that may be recorded of a value, at any length."""
        text = clean_text(value)
        return text if self.redact is None else self.redact(text)

    def cut(self, text: str) -> str:
        """Return a recordable text within the limit, with a mark where it was cut."""
        return text if len(text) <= self._max_text_length else cut_text(text, self._max_text_length)

    def text(self, value: object) -> str:
        """Return what is recorded of a text."""
        return self.cut(self.whole(value))

    def json(self, value: object) -> str:
        """Return what is recorded of a value, as JSON text that is always whole."""
        return to_text(plain(value, self.redact, self._max_text_length, MAX_JSON_LENGTH))

    def plain(self, value: object) -> Json:
        """Return the JSON types that may be recorded of a value, at any length."""
        return plain(value, self.redact)

    def digest(self, content: bytes) -> str:
        """Return 16 bytes of SHA-256, or of its HMAC, as 32 hexadecimal digits."""
        if self._hash_key is None:
            return hashlib.sha256(content).hexdigest()[:32]
        return hmac.digest(self._hash_key, content, "sha256").hex()[:32]

    def text_hash(self, value: object) -> str:
        """Return the hash of a text."""
        return self.digest(self.whole(value).encode())

    def json_hash(self, value: object) -> str:
        """Return the hash of a value: of its canonical JSON text."""
        return self.digest(canonical_json(self.plain(value)).encode())


class _Closed:
    """A redaction that gives nothing away when it fails."""

    __slots__ = ("_redact",)

    def __init__(self, redact: Redact) -> None:
        self._redact = redact

    def __call__(self, text: str) -> str:
        try:
            redacted: object = self._redact(text)
        except Exception as error:  # a host's function may raise anything
            return _not_redacted(f"raised {type(error).__name__}")
        if not isinstance(redacted, str):
            return _not_redacted(f"returned {type(redacted).__name__}")
        return redacted if redacted is text else clean_text(redacted)


def _not_redacted(what_happened: str) -> str:
    note_once(
        f"redact {what_happened}",
        f"redact {what_happened} where it must return a text; such texts are left out of the"
        " record",
    )
    return f"{LEFT_OUT}redact {what_happened}>"


class _Process:
    """The settings that `configure` gave for the whole process."""

    __slots__ = ("settings",)

    def __init__(self) -> None:
        self.settings = CaptureSettings()


_process: Final = _Process()


def use_process_settings(settings: CaptureSettings | None) -> None:
    """Let these settings fill in what a system or a request leaves open; None takes them back."""
    _process.settings = settings or CaptureSettings()


_MODE_OF_VALUE: Final[Mapping[str, CaptureMode]] = {
    "no_content": "hashed",
    "false": "hashed",
    "span_only": "full",
    "span_and_event": "full",
    "true": "full",
}


def _mode(declared: CaptureMode) -> CaptureMode:
    given = os.environ.get(VARIABLE)
    if not given:
        return declared
    mode = _MODE_OF_VALUE.get(given.strip().lower())
    if mode is None:
        reason = (
            "asks for content in events, which this library does not write"
            if given.strip().lower() == "event_only"
            else "is none of NO_CONTENT, SPAN_ONLY, SPAN_AND_EVENT and EVENT_ONLY"
        )
        note_once(VARIABLE, f"{VARIABLE}={given} {reason}; content is hashed", logging.WARNING)
        mode = "hashed"
    # A declared `none` holds no content either, and less besides.
    return "none" if mode == "hashed" and declared == "none" else mode
