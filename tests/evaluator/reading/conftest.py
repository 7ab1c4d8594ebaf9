"""Recorded requests to read: rows of the real tables, written into the real engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from retrospan_collector.clickhouse.connection import open_store
from retrospan_collector.clickhouse.request_row import (
    UNKNOWN_TOKENS,
    PassageTextRow,
    RequestRow,
)
from retrospan_collector.clickhouse.sample_key import sample_key
from retrospan_evaluator.traces.request import RecordedRequest
from retrospan_evaluator.traces.stored import StoredText, recorded_request

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"

TEXTS = (
    "Annual plans can be refunded within 14 days of the renewal.",
    "Refunds are paid back to the card that was charged.",
    "Invoices are sent on the first day of each month.",
    "كم يوماً لاسترداد المبلغ؟ أربعة عشر يوماً.",
)

Record = Callable[..., None]
MakeRow = Callable[..., RequestRow]
Recorded = Callable[..., RecordedRequest]


def text_hash(text: str) -> bytes:
    """A stand-in for the hash the application computes; only its being the key matters here."""
    return sha256(text.encode()).digest()[:16]


def row_of(trace_id: str = TRACE_ID, *, count: int = len(TEXTS), **changes: object) -> RequestRow:
    """A request whose budget of 40 cuts after the first of four passages, its top-k after two.

    Args:
        count: how many of the four it has.
        changes: any field, by name.
    """
    now = datetime.now(UTC)
    row = RequestRow(
        service_name="help-desk",
        timestamp=now - timedelta(minutes=1),
        trace_id=trace_id,
        root_span_id="00f067aa0ba902b7",
        sample_key=sample_key(trace_id),
        environment="production",
        system_name="support_rag",
        system_version="1.2.0",
        index_version="kb-2026-11",
        dialect="retrospan",
        replay_class="full",
        retrieval_status="recorded",
        status="ok",
        input='{"question":"How long can I return an annual plan?"}',
        question="How long can I return an annual plan?",
        answer="14 days",
        passage_id=("kb-01#1", "kb-07", "kb-03", "kb-ar"),
        passage_document_id=("kb-01", "kb-07", "kb-03", ""),
        passage_hash=(*map(text_hash, TEXTS[:3]), text_hash(TEXTS[3])),
        passage_score=(0.8125, 0.5, float("nan"), 0.25),
        passage_tokens=(23, 31, 12, UNKNOWN_TOKENS),
        cum_tokens=(23, 54, 66),
        passage_prompt_position=(1, 0, 0, 0),
        passage_dropped_reason=("", "budget", "top_k", "top_k"),
        passage_source_version=("",) * 4,
        passage_updated_at=("",) * 4,
        passage_acl=("",) * 4,
        stage_span_id=("aa", "bb", "cc"),
        stage_kind=("retrieve", "assemble", "generate"),
        stage_name=("retrieval kb", "assemble", "chat"),
        stage_error_type=("", "", ""),
        stage_ids=(("kb-01#1", "kb-07", "kb-03", "kb-ar"), ("kb-01#1",), ()),
        depth=6,
        top_k=2,
        token_budget=40,
        context_tokens=23,
        budget_rule="stop",
        citations=("kb-01",),
        cited_positions=(1,),
        duration_ns=35_000_000,
        assembled_at=now,
        version=1,
    )
    arrays = [field for field in columns_of_passages() if len(getattr(row, field)) > count]
    cut = {field: getattr(row, field)[:count] for field in arrays}
    return replace(row, **{**cut, **changes})


def columns_of_passages() -> list[str]:
    """The fields that hold one entry a passage."""
    return [f.name for f in fields(RequestRow) if f.name.startswith(("passage_", "cum_"))]


@pytest.fixture
def make_row() -> MakeRow:
    """Makes the usual request, with changes by field name."""
    return row_of


@pytest.fixture
def recorded() -> Recorded:
    """The usual request as it is read back, with changes by field name; no store involved."""
    texts = {text_hash(text).hex(): StoredText(text, None) for text in TEXTS}
    return lambda *args, **changes: recorded_request(row_of(*args, **changes), texts)


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    """The URL of an embedded store that nobody has opened yet."""
    return f"embedded:{tmp_path / 'data'}"


@pytest.fixture
def record(store_url: str) -> Record:
    """Writes requests, and the texts of their passages, into the store and closes it again."""

    def write(*rows: RequestRow) -> None:
        texts = [
            PassageTextRow(
                hash=text_hash(text),
                text=text,
                metadata='{"topic":"billing"}' if text == TEXTS[0] else "",
                last_seen=datetime.now(UTC).date(),
            )
            for text in TEXTS
        ]
        with open_store(store_url) as store:
            store.insert("requests", rows)
            store.insert("passage_texts", texts)

    return write
