"""The driver's errors as ours, in one place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from retrospan_collector.errors import StatementFailed, StoreUnreachable

_LOGIN_REFUSED = frozenset({192, 193, 194, 516})
"""UNKNOWN_USER, WRONG_PASSWORD, REQUIRED_PASSWORD, AUTHENTICATION_FAILED."""

_UNKNOWN_DATABASE = 81


@contextmanager
def engine_failures(address: str) -> Iterator[None]:
    """Turn what the driver raises inside into StoreUnreachable or StatementFailed."""
    from clickhouse_connect.driver.exceptions import ClickHouseError, OperationalError

    try:
        yield
    except ClickHouseError as error:
        code = getattr(error, "code", None)
        if code in _LOGIN_REFUSED:
            raise StoreUnreachable(f"{address} refuses the login: {_login(address)}") from error
        if code == _UNKNOWN_DATABASE:
            raise StoreUnreachable(
                f"{address} has no such database: create it, or correct the store's URL"
            ) from error
        if code is None and isinstance(error, OperationalError):
            raise nothing_answers(address) from error
        raise StatementFailed(f"{address} failed a statement: {error}", code) from error


def nothing_answers(address: str) -> StoreUnreachable:
    """The error for a server that is not there."""
    return StoreUnreachable(
        f"expected ClickHouse at {address} and nothing answers there: start it, or correct --store"
    )


def _login(address: str) -> str:
    if address.startswith("embedded:"):
        return "its owner was stopped and started since, so begin again"
    return "check the user in the URL and the password in RETROSPAN_STORE_PASSWORD_FILE"
