"""What may be asked through the owner's ClickHouse interface, statement by statement."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrospan_collector.face.lexer import tokens
from retrospan_collector.face.refusals import FaceRefusal, SettingRefused, StatementRefused
from retrospan_collector.face.statements import Statement, read_statement, refused_names

REFUSED = refused_names(["file", "url", "remote", "numbers", "s3Cluster", "brandNewInEngine99"])


def read(statement: str | bytes) -> Statement:
    body = statement.encode() if isinstance(statement, str) else statement
    return read_statement(body, REFUSED)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1",
        "  select count() from requests where Answer like '%file(''x'')%' ; ",
        "(SELECT 1) UNION ALL (SELECT 2)",
        "WITH x AS (SELECT 1 AS a) SELECT * FROM x",
        "SELECT /* it's file( */ 1 -- url('x')\n, 2",
        "SELECT file, url FROM t",
        "SELECT * FROM numbers(10)",
        "SELECT {id:String}, x -> x + 1, arr[1], a.b, 1.5e-3, 0xFF, t.1, `Events.Name`",
        "SELECT Settings FROM runs WHERE Settings = '{}'",
        "SELECT 1 SETTINGS max_threads = 2, final = 1",
        "DESCRIBE TABLE spans",
        "EXPLAIN indexes = 1 SELECT 1",
        "SELECT '; DROP TABLE x'",
    ],
)
def test_a_plain_reading_statement_may_run(statement: str) -> None:
    assert read(statement).reads


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("SELECT * FROM file('/etc/passwd', 'LineAsString')", "reaches outside"),
        ("SELECT * FROM FiLe /* x */ ('/etc/passwd')", "reaches outside"),
        ("SELECT * FROM `url`('http://x')", "reaches outside"),
        ('SELECT * FROM "s3cluster"(1)', "reaches outside"),
        ("SELECT file('/etc/passwd')", "reaches outside"),
        ("SELECT (SELECT a FROM remote('h', d.t) LIMIT 1)", "reaches outside"),
        ("SELECT * FROM brandNewInEngine99()", "reaches outside"),
        ("SELECT 1 INTO OUTFILE 'x'", "names a file"),
        ("INSERT INTO t FROM INFILE 'x' FORMAT CSV", "names a file"),
        ("INSERT INTO FUNCTION file('x') SELECT 1", "reaches outside|name a table"),
        ("INSERT INTO t VALUES (file('/etc/passwd'))", "reaches outside"),
        ("INSERT INTO t FORMAT Values (file('/etc/passwd'))", "reaches outside"),
        ("INSERT INTO t FORMAT Template x", "expected data in one of"),
        ("SELECT 1; DROP TABLE spans", "one statement"),
        ("DROP TABLE spans", "expected one of"),
        ("CREATE TABLE x (a String) ENGINE = File(CSV)", "reaches outside"),
        ("CREATE TABLE x (a String) ENGINE = Log", "expected one of"),
        ("SET readonly = 0", "expected one of"),
        ("SYSTEM SHUTDOWN", "expected one of"),
        ("ATTACH DATABASE x", "expected one of"),
        ("SELECT ‘file’", "does not read"),
        ("SELECT $tag$file($tag$", "does not read"),
        ("SELECT 'open", "does not read"),
        ("SELECT /* open", "does not read"),
        ("SELECT # comment\n 1", "does not read"),
        ("SELECT `fi\\x6ce`('x')", "without escapes"),
        ("", "got none"),
        ("-- nothing", "got none"),
    ],
)
def test_a_statement_that_reaches_further_is_refused(statement: str, why: str) -> None:
    with pytest.raises(StatementRefused, match=why):
        read(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1 SETTINGS max_memory_usage = 0",
        "SELECT 1 SETTINGS max_memory_usage = '9000000000'",
        "SELECT 1 SETTINGS max_threads = 1, allow_ddl = 1",
        "SELECT * FROM (SELECT 1 SETTINGS `format_schema` = 'x')",
        "INSERT INTO t (a) SETTINGS format_schema_source = 'string' FORMAT Native\n",
    ],
)
def test_a_setting_that_is_not_on_the_list_is_refused_inside_a_statement(statement: str) -> None:
    with pytest.raises(SettingRefused):
        read(statement)


def test_the_data_of_an_insert_are_bytes_and_not_read_as_sql() -> None:
    data = b"\x00\xff'; DROP TABLE x; SELECT file('y')"
    statement = read(b"INSERT INTO t (`a b`, c) SETTINGS async_insert=0 FORMAT Native\n" + data)
    assert statement == Statement(
        "INSERT INTO t (`a b`, c) ", False, "Native", data, "SETTINGS async_insert=0 "
    )


def test_a_result_format_is_known_when_the_statement_says_it() -> None:
    assert read("SELECT 1 FORMAT JSONEachRow;").data_format == "JSONEachRow"
    assert read("SELECT format FROM t").data_format is None


@given(st.text(max_size=60))
def test_the_lexer_gives_back_all_it_read_or_refuses(text: str) -> None:
    try:
        found = list(tokens(text))
    except FaceRefusal:
        return
    assert all(text[token.start : token.end] == token.text for token in found)
    between = "".join(
        text[a:b]
        for a, b in zip(
            [0, *(t.end for t in found)], [*(t.start for t in found), len(text)], strict=True
        )
    )
    assert not between.strip() or "--" in between or "/*" in between
