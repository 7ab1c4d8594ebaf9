"""The ladder and the page around it, as they look on a terminal."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from rich.cells import cell_len

from retrospan_evaluator.cli.ladder import ladder
from retrospan_evaluator.cli.layout import fold, shorten, wrap
from retrospan_evaluator.cli.request_page import notes, request_page
from retrospan_evaluator.traces.request import RecordedRequest

Recorded = Callable[..., RecordedRequest]
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


def shown(request: RecordedRequest, width: int = 80) -> str:
    return "\n".join(line.plain for line in ladder(request, width))


def rungs(request: RecordedRequest) -> list[str]:
    """The positions and the cuts between them, from the top."""
    starts = [re.match(r" *(\d+) |── (.*?) ─", line.plain) for line in ladder(request, 80)]
    return [found[1] or found[2] for found in starts if found]


def test_a_page_at_eighty_columns(recorded: Recorded) -> None:
    lines = [line.plain for line in request_page(recorded(timestamp=NOON), 80)]
    assert "\n".join(lines) == snapshot("""\
trace 4bf92f3577b34da6a3ce929d0e0e4736
question  How long can I return an annual plan?
answer    14 days
cites     kb-01

system    support_rag 1.2.0
service   help-desk · production
started   2026-12-01 12:00:00 UTC · took 35 ms
settings  depth 6 · top-k 2 · token budget 40, rule stop
index     kb-2026-11
record    retrospan spans · can be replayed

4 passages retrieved, 1 in the prompt (23 of 40 tokens)

pos  passage   score  tokens  total  in the prompt?
  1  kb-01#1  0.8125      23     23  kept, 1st in prompt
     [kb-01] Annual plans can be refunded within 14 days of the renewal.
── token budget 40 cuts here ────────────────────────────
  2  kb-07    0.5000      31     54  dropped: over budget
     Refunds are paid back to the card that was charged.
── top-k 2 cuts here ────────────────────────────────────
  3  kb-03         ?      12     66  dropped: below top-k
     Invoices are sent on the first day of each month.
  4  kb-ar    0.2500       ?      ?  dropped: below top-k
     \u2068كم يوماً لاسترداد المبلغ؟ أربعة عشر يوماً.\u2069\
""")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "can be replayed; under a token budget only if the system counts tokens"),
        ({"budget_rule": ""}, "can be replayed, but its settings are not recorded in full"),
        (
            {"budget_rule": "", "passage_prompt_position": (None,) * 4},
            "can be replayed, but what entered the prompt is not recorded",
        ),
    ],
)
def test_what_a_replay_will_lack_is_named(
    recorded: Recorded, changes: dict[str, object], words: str
) -> None:
    page = [line.plain for line in request_page(recorded(replay_class="text", **changes), 120)]
    assert f"record    retrospan spans · {words}" in page


@pytest.mark.parametrize("changes", [{}, {"count": 0}, {"dangling_citations": ("kb-99",)}])
def test_a_page_ends_with_its_last_words_and_has_no_two_blank_lines(
    recorded: Recorded, changes: dict[str, object]
) -> None:
    page = "\n".join(line.plain for line in request_page(recorded(**changes), 80))
    assert page == page.strip() and "\n\n\n" not in page


@pytest.mark.parametrize(
    "word",
    ["word ", "x", "line\n", "كلمة ", "文", "e\u0301 "],
    ids=["en", "x", "l", "ar", "zh", "e"],
)
def test_a_long_text_takes_as_long_as_its_length_asks_for(word: str) -> None:
    def seconds(times: int) -> float:
        started = time.process_time()
        wrap(word * times, 75)
        return time.process_time() - started

    wrap(word * 1000, 75)
    # Eight times as long; were each line to look at the whole of it, it would take sixty times.
    assert seconds(80_000) < 24 * max(seconds(10_000), 0.005)


def test_a_budget_that_cuts_after_top_k_is_drawn_where_it_would_cut(recorded: Recorded) -> None:
    request = recorded(
        top_k=1, token_budget=60, passage_dropped_reason=("", "top_k", "top_k", "top_k")
    )
    assert rungs(request) == snapshot(
        ["1", "top-k 1 cuts here", "2", "token budget 60 would cut here", "3", "4"]
    )


def test_both_cuts_in_one_place_are_one_line(recorded: Recorded) -> None:
    request = recorded(
        top_k=1, passage_dropped_reason=("", "top_k", "top_k", "top_k"), token_budget=30
    )
    assert rungs(request) == snapshot(["1", "top-k 1 and token budget 30 cut here", "2", "3", "4"])


def test_a_budget_that_leaves_out_the_first_passage_cuts_above_it(recorded: Recorded) -> None:
    request = recorded(
        token_budget=10,
        passage_prompt_position=(0, 0, 0, 0),
        passage_dropped_reason=("budget", "budget", "top_k", "top_k"),
    )
    assert rungs(request)[0] == "token budget 10 cuts here"


def test_under_skip_the_line_says_that_it_goes_on(recorded: Recorded) -> None:
    request = recorded(
        budget_rule="skip",
        top_k=3,
        passage_prompt_position=(1, 0, 2, 0),
        passage_dropped_reason=("", "budget", "", "top_k"),
    )
    assert rungs(request) == snapshot(
        ["1", "token budget 40 first leaves one out here", "2", "3", "top-k 3 cuts here", "4"]
    )
    assert "dropped: does not fit" in shown(request)
    assert "kept, 2nd in prompt" in shown(request)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("top_k", "dropped: below top-k"),
        ("budget", "dropped: over budget"),
        ("duplicate", "dropped: duplicate"),
        ("score", "dropped: low score"),
        ("filter", "dropped: filtered out"),
        ("", "dropped: no reason given"),
        ("moon phase", "dropped: moon phase"),
    ],
)
def test_every_reason_is_words(recorded: Recorded, reason: str, words: str) -> None:
    request = recorded(passage_dropped_reason=("", reason, "top_k", "top_k"))
    assert words in shown(request)


def test_without_an_assembly_nothing_is_called_kept_or_dropped(recorded: Recorded) -> None:
    request = recorded(
        budget_rule="",
        top_k=None,
        token_budget=None,
        passage_prompt_position=(None,) * 4,
        passage_dropped_reason=("",) * 4,
    )
    assert rungs(request) == ["1", "2", "3", "4"]
    assert shown(request).count("not recorded") == 4
    assert "kept" not in shown(request) and "dropped" not in shown(request)
    assert notes(request) == snapshot(
        ["the assembly was not recorded: which passages entered the prompt is unknown"]
    )


def test_unknown_counts_say_where_the_budget_cannot_be_placed(recorded: Recorded) -> None:
    request = recorded(
        token_budget=100,
        top_k=None,
        passage_prompt_position=(1, 2, 3, 4),
        passage_dropped_reason=("",) * 4,
    )
    assert rungs(request) == ["1", "2", "3", "4"]
    assert notes(request) == snapshot(
        ["where the budget of 100 tokens cuts is unknown: position 4 has no token count"]
    )


def test_cuts_that_cut_nothing_are_said_in_words(recorded: Recorded) -> None:
    request = recorded(
        count=3,
        top_k=5,
        token_budget=200,
        passage_prompt_position=(1, 2, 3),
        passage_dropped_reason=("",) * 3,
    )
    assert rungs(request) == ["1", "2", "3"]
    assert notes(request) == snapshot(
        [
            "top-k 5 cuts nothing: no more than 3 retrieved",
            "token budget 200 cuts nothing: 66 tokens in all",
        ]
    )


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("recorded", "the retriever returned no passages"),
        ("failed", "the retrieval failed; that is not an empty result"),
        ("not_recorded", "no retrieval was recorded; that is not an empty result"),
        ("unreadable", "the retrieval was recorded in a form that could not be read"),
    ],
)
def test_no_passages_has_four_meanings(recorded: Recorded, status: str, words: str) -> None:
    assert words in notes(recorded(count=0, retrieval_status=status))


def test_an_incomplete_record_is_shown_as_one(recorded: Recorded) -> None:
    assert any("lost attributes" in note for note in notes(recorded(completeness=4)))
    assert notes(recorded(dangling_citations=("kb-99",)))[-1].endswith("in the prompt: kb-99")


@pytest.mark.parametrize("width", [40, 80, 132])
def test_hostile_texts_keep_the_columns(recorded: Recorded, width: int) -> None:
    hostile = ("a\u202eb\x1b[31m", "kb/" + "x" * 90, "مستند (v2)", "文書" * 20)
    request = recorded(passage_id=hostile, passage_document_id=("", "", "", ""))
    lines = [line.plain for line in ladder(request, width)]
    fates = [line for line in lines if "kept" in line or "dropped" in line]
    starts = {
        cell_len(line[: line.index("kept" if "kept" in line else "dropped")]) for line in fates
    }
    assert len(fates) == 4 and len(starts) == 1
    assert width < 70 or max(map(cell_len, lines)) <= width
    page = "\n".join(lines)
    assert "\x1b" not in page and "\u202e" not in page
    assert width < 70 or ("a<U+202E>b<U+001B>[31m" in page and "\u2068مستند (v2)\u2069" in page)


def test_a_document_stands_beside_the_text_and_not_in_its_direction(recorded: Recorded) -> None:
    page = shown(recorded(passage_document_id=("kb-01", "kb-07", "d" * 70, "kb-4")))
    assert "[kb-4] \u2068كم يوماً" in page
    assert f"\n     [{'d' * 70}]\n     Invoices" in page


def test_fifty_passages_are_all_on_the_ladder(recorded: Recorded) -> None:
    request = recorded(
        top_k=10,
        token_budget=None,
        passage_id=tuple(f"p{n}" for n in range(50)),
        passage_document_id=("",) * 50,
        passage_hash=(bytes(16),) * 50,
        passage_score=(1.0,) * 50,
        passage_tokens=(1,) * 50,
        cum_tokens=tuple(range(1, 51)),
        passage_prompt_position=(*range(1, 11), *(0,) * 40),
        passage_dropped_reason=(*[""] * 10, *["top_k"] * 40),
        passage_source_version=("",) * 50,
        passage_updated_at=("",) * 50,
        passage_acl=("",) * 50,
    )
    numbered = [rung for rung in rungs(request) if rung.isdigit()]
    assert numbered == [str(n) for n in range(1, 51)]
    assert "kept, 3rd in prompt" in shown(request)


@given(st.text(), st.integers(8, 60))
def test_no_line_is_wider_than_its_room(text: str, width: int) -> None:
    for lines in (wrap(text, width), [shorten(text, width)], fold(text, width)):
        assert max(map(cell_len, lines)) <= width


@given(st.text("ab مرحبا\n", max_size=60), st.integers(8, 60))
def test_wrapping_and_folding_lose_nothing(text: str, width: int) -> None:
    isolates = str.maketrans("", "", "\u2066\u2067\u2068\u2069")
    bare = "".join(wrap(text, width)).translate(isolates)
    assert "".join(bare.split()) == "".join(text.split())
    assert "".join(fold(text, width)).translate(isolates) == " ".join(text.split())
