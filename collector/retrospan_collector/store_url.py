"""The one URL that says where everything is stored."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from retrospan_collector.errors import InvalidStoreUrl

_FORMS = "embedded:DIRECTORY or clickhouse://[user@]host[:port]/database"


@dataclass(frozen=True, slots=True)
class EmbeddedStore:
    """The engine in a directory of ours."""

    directory: Path
    """Absolute."""

    @property
    def engine_path(self) -> Path:
        """Where the engine keeps its own files."""
        return self.directory / "engine"

    @property
    def spool_path(self) -> Path:
        """Where the receiver keeps what is not stored yet."""
        return self.directory / "spool"

    @property
    def state_path(self) -> Path:
        """Where the owner says that it runs."""
        return self.directory

    def __str__(self) -> str:
        return f"embedded:{self.directory}"


@dataclass(frozen=True, slots=True)
class ServedStore:
    """A ClickHouse server or cluster, over HTTP."""

    host: str
    port: int
    database: str
    username: str
    password: str
    """Empty when the URL has none: RETROSPAN_STORE_PASSWORD_FILE is the better place."""
    secure: bool

    def __str__(self) -> str:
        """The URL without the password; the only form that is ever shown."""
        return f"clickhouse://{self.username}@{self.host}:{self.port}/{self.database}" + (
            "?secure=true" if self.secure else ""
        )

    def __repr__(self) -> str:
        return f"ServedStore({str(self)!r})"


StoreUrl = EmbeddedStore | ServedStore


def parse_store_url(url: str) -> StoreUrl:
    """What a `--store` or RETROSPAN_STORE names; InvalidStoreUrl if it names nothing."""
    if url.startswith("embedded:"):
        directory = url.removeprefix("embedded:")
        if not directory:
            raise InvalidStoreUrl(
                f"expected a directory after 'embedded:' and got {url!r}: "
                "write for instance embedded:./retrospan-data"
            )
        return EmbeddedStore(Path(directory).expanduser().absolute())
    if url.startswith("clickhouse://"):
        return _parse_served(url)
    scheme = url.partition(":")[0]
    raise InvalidStoreUrl(f"expected a store as {_FORMS} and got the scheme {scheme!r}")


def _parse_served(url: str) -> ServedStore:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidStoreUrl(f"expected a store as {_FORMS}: {error}") from error
    database = parts.path.strip("/")
    if not parts.hostname or not database or "/" in database:
        raise InvalidStoreUrl(
            f"expected a host and one database in {_FORMS} and got host {parts.hostname!r} "
            f"and database {database!r}"
        )
    secure = parse_qs(parts.query).get("secure", ["false"])[-1].lower() in ("1", "true", "yes")
    return ServedStore(
        host=parts.hostname,
        port=port or (8443 if secure else 8123),
        database=unquote(database),
        username=unquote(parts.username or "default"),
        password=unquote(parts.password or ""),
        secure=secure,
    )
