"""ClickHouse's own client against the owner's interface, over a real socket."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import clickhouse_connect
import httpx
import pytest
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError

from retrospan_collector.clickhouse.connection import Store, open_engine, open_face, open_store
from retrospan_collector.clickhouse.evaluation_rows import CaseRow
from retrospan_collector.clickhouse.ownership import OwnerNote
from retrospan_collector.clickhouse.rows import from_row
from retrospan_collector.errors import StatementFailed, StoreUnreachable
from retrospan_collector.face.engine import FaceEngine
from retrospan_collector.face.server import FaceServer
from retrospan_collector.ports import listen
from retrospan_collector.store_url import EmbeddedStore

TOKEN = "a-token-of-this-test"
CASE = CaseRow(
    dataset_version="v",
    case_id="كيف",
    content='{"id": "x"}',
    created_at=datetime.now(UTC).replace(microsecond=0),
)


@dataclass(frozen=True, slots=True)
class Face:
    """A running interface and the store behind it."""

    address: str
    target: EmbeddedStore
    store: Store

    @property
    def url(self) -> str:
        return f"http://{self.address}/"

    def client(self, password: str = TOKEN, compress: bool | str = True) -> Client:
        host, _, port = self.address.partition(":")
        return clickhouse_connect.get_client(
            host=host,
            port=int(port),
            username="retrospan",
            password=password,
            database="retrospan",
            compress=compress,
            tz_mode="aware",
        )


@pytest.fixture
def face(tmp_path: Path) -> Iterator[Face]:
    """An engine in this process and its interface on a free port."""
    target = EmbeddedStore(tmp_path / "data")
    with open_engine(target, "owner") as store:
        server = FaceServer(FaceEngine(target.engine_path), TOKEN, listen("clickhouse", 0))
        yield Face(server.address, target, store)
        server.stop()


@pytest.mark.parametrize("compress", [False, True, "gzip", "zstd"])
def test_the_client_inserts_queries_and_commands(face: Face, compress: bool | str) -> None:
    client = face.client(compress=compress)
    client.insert(
        "cases",
        [["v", f"case {i}", "{}", CASE.created_at] for i in range(500)],
        column_names=["DatasetVersion", "CaseId", "Content", "CreatedAt"],
    )
    client.command("OPTIMIZE TABLE cases FINAL")
    assert client.query("SELECT count() FROM cases").result_rows == [(500,)]
    assert client.command("SELECT max(CaseId) FROM cases") == "case 99"
    assert client.query("SELECT * FROM cases LIMIT 0").column_names[0] == "DatasetVersion"
    assert client.raw_query("SELECT 1 AS a", fmt="JSONEachRow") == b'{"a":1}\n'
    assert client.query("SELECT CreatedAt FROM cases LIMIT 1").first_row == (CASE.created_at,)
    assert face.store.query("SELECT count() AS n FROM cases") == [{"n": 500}]
    client.close()


@pytest.mark.parametrize("length", [3, 3000], ids=["in the URL", "as a form"])
def test_parameters_are_bound_however_long_they_are(face: Face, length: int) -> None:
    client = face.client()
    wanted = ['it\'s \\ "x"', "سؤال", *(f"id {i}" for i in range(length))]
    rows = client.query(
        "SELECT length({ids:Array(String)}), {ids:Array(String)}[2]", parameters={"ids": wanted}
    )
    assert rows.result_rows == [(length + 2, "سؤال")]
    client.close()


def test_a_store_is_opened_through_its_owners_note(face: Face) -> None:
    note = OwnerNote(1, str(face.target), face.address, TOKEN)
    with open_face(face.target, note) as store:
        store.insert("cases", [CASE])
        [row] = store.query("SELECT * FROM cases WHERE CaseId = {id:String}", {"id": "كيف"})
        assert from_row(CaseRow, row) == CASE
        with pytest.raises(StatementFailed, match="reaches outside the store"):
            store.query("SELECT * FROM file('/etc/hostname', 'LineAsString')")


def test_a_served_store_takes_its_password_from_a_file(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"clickhouse://retrospan@{face.address}/retrospan"
    (tmp_path / "password").write_text(f"{TOKEN}\n")
    monkeypatch.setenv("RETROSPAN_STORE_PASSWORD_FILE", str(tmp_path / "password"))
    with open_store(url) as store:
        assert store.query("SELECT 1 AS one") == [{"one": 1}]
    monkeypatch.delenv("RETROSPAN_STORE_PASSWORD_FILE")
    with pytest.raises(StoreUnreachable, match="refuses the login: check the user"):
        open_store(url)
    monkeypatch.setenv("RETROSPAN_STORE_PASSWORD_FILE", str(tmp_path / "gone"))
    with pytest.raises(StoreUnreachable, match="expected the store's password in .*gone"):
        open_store(url)


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({}, ""),
        ({"X-ClickHouse-Key": "wrong"}, ""),
        ({"Authorization": "Basic !!!"}, ""),
        ({}, f"?user=retrospan&password={TOKEN}"),
        ({"X-ClickHouse-Key": TOKEN, "Host": "evil.example:80"}, ""),
        ({"X-ClickHouse-Key": TOKEN, "Origin": "http://127.0.0.1:9"}, ""),
    ],
    ids=["none", "wrong", "garbled", "in the URL", "another host", "a web page"],
)
def test_who_has_no_token_or_comes_from_a_page_is_refused(
    face: Face, headers: dict[str, str], query: str
) -> None:
    answer = httpx.post(face.url + query, content="SELECT 1", headers=headers)
    assert answer.status_code == 403
    assert answer.headers["X-ClickHouse-Exception-Code"] == "516"
    assert TOKEN not in answer.text


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM file('/etc/hostname', 'LineAsString')",
        "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')",
        "SELECT * FROM default.`/etc/hostname`",
        "SELECT * FROM `/etc/hostname`",
        "SELECT 1 INTO OUTFILE '/tmp/retrospan-test-outfile'",
        "SELECT * FROM executable('id', 'TSV', 'a String')",
        "SELECT 1 SETTINGS max_memory_usage = 0",
        "DROP TABLE spans",
    ],
)
def test_nothing_outside_the_store_is_reached(face: Face, statement: str) -> None:
    client = face.client()
    with pytest.raises(DatabaseError):
        client.query(statement)
    client.close()


def test_a_file_is_not_reached_through_a_bound_name_either(face: Face) -> None:
    client = face.client()
    with pytest.raises(DatabaseError, match="UNKNOWN"):
        client.query(
            "SELECT * FROM {d:Identifier}.{t:Identifier}",
            parameters={"d": "default", "t": "/etc/hostname"},
        )
    client.close()


def test_a_setting_in_the_url_must_be_on_the_list(face: Face) -> None:
    headers = {"X-ClickHouse-Key": TOKEN}
    allowed = httpx.post(face.url + "?max_threads=1", content="SELECT 1", headers=headers)
    assert (allowed.status_code, allowed.text) == (200, "1\n")
    refused = httpx.post(face.url + "?allow_ddl=1", content="SELECT 1", headers=headers)
    assert refused.headers["X-ClickHouse-Exception-Code"] == "452"
    assert "'allow_ddl' is refused" in refused.text


def test_an_error_of_the_engine_has_its_number_and_reason(face: Face) -> None:
    answer = httpx.post(
        face.url, content="SELECT * FROM no_such", headers={"X-ClickHouse-Key": TOKEN}
    )
    assert answer.headers["X-ClickHouse-Exception-Code"] == "60"
    assert "no_such" in answer.text


def test_a_get_request_changes_nothing(face: Face) -> None:
    headers = {"X-ClickHouse-Key": TOKEN}
    query = {"query": "OPTIMIZE TABLE cases"}
    assert httpx.get(face.url, params=query, headers=headers).status_code == 403
    read = httpx.get(face.url, params={"query": "SELECT 2"}, headers=headers)
    assert read.text == "2\n"


def test_only_the_stores_database_is_served(face: Face) -> None:
    answer = httpx.post(
        face.url + "?database=other", content="SELECT 1", headers={"X-ClickHouse-Key": TOKEN}
    )
    assert (answer.status_code, answer.headers["X-ClickHouse-Exception-Code"]) == (404, "81")


def test_the_settings_of_one_request_do_not_reach_the_next(face: Face) -> None:
    client = face.client()
    asked = client.query("SELECT getSetting('max_block_size')", settings={"max_block_size": 7})
    assert asked.first_row == (7,)
    assert client.query("SELECT getSetting('max_block_size') > 7").first_row == (True,)
    assert client.query("SELECT getSetting('max_memory_usage')").first_row == (2_000_000_000,)
    client.close()


def test_it_answers_a_ping(face: Face) -> None:
    assert httpx.get(face.url + "ping").text == "Ok.\n"
