"""A recorded request as a page of a terminal: its facts, the ladder, what to know about both."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC

from rich.text import Text

from retrospan_evaluator.cli.ladder import ladder
from retrospan_evaluator.cli.layout import shorten, wrap
from retrospan_evaluator.traces.request import RecordedRequest

_LABEL = 10
_INCOMPLETE = {
    "root_missing": "the request's own span never came: name, outcome and duration are unknown",
    "late_rewrite": "spans came late, and the request was put together again",
    "attributes_dropped": "a span lost attributes to the application's limits: parts are missing",
    "truncated": "lists of one step disagree: a part of one was cut off",
    "redacted": "a text was replaced before it was sent",
    "clock_skew": "times contradict each other",
    "unreadable": "a recorded value could not be read",
    "text_cut": "a text was longer than the application's limit, and was cut before it was sent",
}
_REPLAY = {
    "full": "can be replayed",
    "ids": "can be replayed only with the texts from the application's own store",
    "none": "cannot be replayed",
}


def request_page(
    request: RecordedRequest, width: int, *, whole_texts: bool = False
) -> Iterator[Text]:
    """The lines of the page, none wider than `width` but for what cannot be shorter."""
    yield Text(f"trace {shorten(request.trace_id, 64)}", style="bold")
    for label, value in _exchange(request):
        yield from _fact(label, value, width)
    yield Text("")
    for label, value in _circumstances(request):
        yield from _fact(label, value, width)
    if request.passages:
        yield Text("")
        yield Text(_summary(request), style="bold")
        yield Text("")
        yield from ladder(request, width, whole_texts=whole_texts)
    for index, note in enumerate(notes(request)):
        if index == 0:
            yield Text("")
        yield from _fact("note", note, width)


def notes(request: RecordedRequest) -> list[str]:
    """What must be known to read the page rightly, one sentence each."""
    found = [_INCOMPLETE.get(name, name.replace("_", " ")) for name in request.completeness]
    if not request.passages:
        found.append(_no_passages(request))
    elif not request.assembly_recorded:
        found.append("the assembly was not recorded: which passages entered the prompt is unknown")
    else:
        found += _uncut(request)
    if request.dangling_citations:
        cited = ", ".join(request.dangling_citations)
        found.append(f"the answer cites what was not in the prompt: {cited}")
    return found


def _no_passages(request: RecordedRequest) -> str:
    match request.retrieval_status:
        case "recorded":
            return "the retriever returned no passages"
        case "failed":
            return "the retrieval failed; that is not an empty result"
        case "unreadable":
            return "the retrieval was recorded in a form that could not be read"
        case _:
            return "no retrieval was recorded; that is not an empty result"


def _uncut(request: RecordedRequest) -> Iterator[str]:
    """Why a line is missing from the ladder."""
    settings, count = request.settings, len(request.passages)
    if settings.top_k is not None and settings.top_k >= count:
        yield f"top-k {settings.top_k} cuts nothing: no more than {count} retrieved"
    if settings.token_budget is None or _has_reason(request, "budget"):
        return
    totals = [passage.cumulative_tokens for passage in request.passages]
    if None in totals:
        first = totals.index(None) + 1
        yield (
            f"where the budget of {settings.token_budget} tokens cuts is unknown: "
            f"position {first} has no token count"
        )
    elif (totals[-1] or 0) <= settings.token_budget:
        yield f"token budget {settings.token_budget} cuts nothing: {totals[-1]} tokens in all"


def _has_reason(request: RecordedRequest, reason: str) -> bool:
    return any(passage.dropped_reason == reason for passage in request.passages)


def _exchange(request: RecordedRequest) -> Iterator[tuple[str, str]]:
    yield "question", request.question if request.question is not None else "(not recorded)"
    yield "answer", request.answer if request.answer is not None else "(not recorded)"
    if request.citations:
        yield "cites", ", ".join(request.citations)
    if request.status == "error":
        yield "failed", request.error_type or "with an error"


def _circumstances(request: RecordedRequest) -> Iterator[tuple[str, str]]:
    yield "system", _joined(request.system_name or request.service, request.system_version)
    yield "service", _dotted(request.service, request.environment)
    took = None if request.duration_s is None else f"took {_duration(request.duration_s)}"
    yield "started", _dotted(f"{request.started_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC", took)
    if request.run_id is not None:
        yield "run", _joined(request.run_id, request.case_id and f"case {request.case_id}")
    yield "settings", _settings(request)
    if request.index_version or request.prompt_version:
        prompt = request.prompt_version and f"prompt {request.prompt_version}"
        yield "index", _dotted(request.index_version or "not named", prompt)
    yield "record", _dotted(f"{request.dialect} spans", _replay(request))


def _replay(request: RecordedRequest) -> str:
    """What a replay can rest on, naming what the record lacks for one under any setting."""
    if request.replay_class != "text":
        return _REPLAY.get(request.replay_class, "")
    if not request.assembly_recorded:
        return "can be replayed, but what entered the prompt is not recorded"
    if request.settings.budget_rule is None:
        return "can be replayed, but its settings are not recorded in full"
    return "can be replayed; under a token budget only if the system counts tokens"


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def _settings(request: RecordedRequest) -> str:
    settings = request.settings
    parts = [f"depth {_known(settings.depth)}"]
    if not request.assembly_recorded:
        return _dotted(*parts, "assembly not recorded")
    parts.append("no top-k" if settings.top_k is None else f"top-k {settings.top_k}")
    if settings.token_budget is None:
        parts.append("no token budget" if settings.budget_rule else "token budget ?")
    else:
        parts.append(f"token budget {settings.token_budget}, rule {settings.budget_rule or '?'}")
    return _dotted(*parts)


def _summary(request: RecordedRequest) -> str:
    count = len(request.passages)
    retrieved = f"{count} passage{'' if count == 1 else 's'} retrieved"
    if not request.assembly_recorded:
        return retrieved
    tokens = request.settings.context_tokens
    budget = request.settings.token_budget
    spent = (
        "" if tokens is None else f" ({tokens}{'' if budget is None else f' of {budget}'} tokens)"
    )
    return f"{retrieved}, {len(request.prompt)} in the prompt{spent}"


def _fact(label: str, value: str, width: int) -> Iterator[Text]:
    first, *more = wrap(value, max(20, width - _LABEL))
    yield Text.assemble((f"{label:<{_LABEL}}", "dim"), first)
    for line in more:
        yield Text(" " * _LABEL + line)


def _known(number: int | None) -> str:
    return "?" if number is None else str(number)


def _joined(*parts: str | None) -> str:
    return " ".join(part for part in parts if part)


def _dotted(*parts: str | None) -> str:
    return " · ".join(part for part in parts if part)
