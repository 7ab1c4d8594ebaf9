"""A spool that a dead receiver left behind is put right without a person."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from retrospan_collector.spool import SpoolDirectory, frame
from retrospan_collector.spool_recovery import Recovery, recover

NAME = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f-0011aabb.traces"


def _record(text: str) -> bytes:
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.add(name=text, trace_id=b"t" * 16)
    return frame(request.SerializeToString())


RECORDS = [_record("one"), _record("two" * 100), _record("three")]


def _sealed(spool: SpoolDirectory) -> list[bytes]:
    return [segment.path.read_bytes() for segment in spool.sealed_segments()]


def _set_aside(spool: SpoolDirectory) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(spool.quarantine.iterdir()))


def test_a_whole_segment_is_sealed_as_it_is(spool: SpoolDirectory) -> None:
    (spool.open / NAME).write_bytes(b"".join(RECORDS))
    assert recover(spool) == Recovery(segments=1, records=3, set_aside_bytes=0)
    assert _sealed(spool) == [b"".join(RECORDS)]
    assert spool.sealed_segments()[0].path.name == NAME
    assert not list(spool.open.iterdir())


@given(cut=st.integers(min_value=0, max_value=sum(map(len, RECORDS))))
def test_a_segment_cut_anywhere_keeps_every_whole_record(cut: int) -> None:
    ends = [0, len(RECORDS[0]), len(RECORDS[0] + RECORDS[1]), sum(map(len, RECORDS))]
    last = max(end for end in ends if end <= cut)
    with TemporaryDirectory() as folder:
        spool = SpoolDirectory(Path(folder))
        (spool.open / NAME).write_bytes(b"".join(RECORDS)[:cut])
        found = recover(spool)
        assert found == Recovery(
            segments=int(last > 0), records=ends.index(last), set_aside_bytes=cut - last
        )
        assert b"".join(_sealed(spool)) == b"".join(RECORDS)[:last]
        assert _set_aside(spool) == b"".join(RECORDS)[last:cut]
        assert not list(spool.open.iterdir())


def test_a_record_damaged_in_the_middle_is_set_aside_alone(spool: SpoolDirectory) -> None:
    damaged = RECORDS[1][:2] + b"\xff" + RECORDS[1][3:]
    (spool.open / NAME).write_bytes(RECORDS[0] + damaged + RECORDS[2])
    assert recover(spool) == Recovery(segments=1, records=2, set_aside_bytes=len(damaged))
    assert _sealed(spool) == [RECORDS[0] + RECORDS[2]]
    assert _set_aside(spool) == damaged


def test_zeros_after_a_power_cut_are_set_aside(spool: SpoolDirectory) -> None:
    (spool.open / NAME).write_bytes(RECORDS[0] + bytes(4096))
    assert recover(spool) == Recovery(segments=1, records=1, set_aside_bytes=4096)
    assert _sealed(spool) == [RECORDS[0]]


def test_an_empty_segment_is_removed(spool: SpoolDirectory) -> None:
    (spool.open / NAME).touch()
    assert recover(spool) == Recovery()
    assert not list(spool.open.iterdir())
    assert not spool.sealed_segments()


def test_an_interrupted_recovery_is_repeated(spool: SpoolDirectory) -> None:
    (spool.open / NAME).write_bytes(RECORDS[0] + RECORDS[1][:5])
    (spool.open / f"{NAME}.whole").write_bytes(RECORDS[0][:3])
    assert recover(spool).records == 1
    assert _sealed(spool) == [RECORDS[0]]
    assert not list(spool.open.iterdir())


def test_a_segment_that_is_not_ours_to_read_is_left_where_it_is(spool: SpoolDirectory) -> None:
    (spool.sealed / "notes.txt").write_text("not a segment")
    assert spool.sealed_segments() == []
