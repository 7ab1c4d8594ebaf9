"""Add to a running step what neither its arguments nor its return value show."""

from collections.abc import Sequence

from opentelemetry import trace

from retrospan import attributes
from retrospan._capture import Capture, CaptureSettings
from retrospan._current import open_request
from retrospan._encoding import clean_text
from retrospan._guard import guarded
from retrospan._record import Attributes, caller_attributes
from retrospan._usage import generation_facts


def record_caller(
    *,
    conversation_id: str | None = None,
    user_id: str | None = None,
    user_roles: Sequence[str] = (),
) -> None:
    """Add to the request this code runs in who asked; outside of a request, do nothing.

    Args:
        conversation_id: the conversation the request belongs to.
        user_id: recorded only as an HMAC, and only where there is a `hash_key`.
        user_roles: what the caller was allowed to see.
    """
    with guarded("record the caller"):
        request = open_request()
        if request is not None and request.span.is_recording():
            request.span.set_attributes(
                caller_attributes(
                    request.capture,
                    conversation_id=conversation_id,
                    user_id=user_id,
                    user_roles=user_roles,
                )
            )


def record_generation(
    response: object = None,
    *,
    prompt: object = None,
    prompt_name: str | None = None,
    prompt_version: str | None = None,
    model: str | None = None,
) -> None:
    """Add to the generation this code runs in what its return value does not show.

    Call it inside `generate`; without a span that records, it does nothing.

    Args:
        response: what the model's provider answered: tokens, model, finish reason and response
            id are read from it.
        prompt: the finished prompt, a text or a list of messages; only its hash is recorded.
        prompt_name: name of the prompt.
        prompt_version: version of the prompt.
        model: the model that was asked.
    """
    with guarded("record a generation's details"):
        span = trace.get_current_span()
        if not span.is_recording():
            return
        request = open_request()
        capture = CaptureSettings().resolved() if request is None else request.capture
        recorded: Attributes = dict(generation_facts(response))
        if prompt is not None:
            recorded[attributes.ASSEMBLY_PROMPT_HASH] = prompt_hash(prompt, capture)
        for name, text in (
            (attributes.PROMPT_NAME, prompt_name),
            (attributes.PROMPT_VERSION, prompt_version),
            (attributes.REQUEST_MODEL, model),
        ):
            if text is not None:
                recorded[name] = clean_text(text)
        span.set_attributes(recorded)


def prompt_hash(prompt: object, capture: Capture) -> str:
    """Return the hash of a finished prompt: of its text, or of the JSON of its messages."""
    return capture.text_hash(prompt) if isinstance(prompt, str) else capture.json_hash(prompt)
