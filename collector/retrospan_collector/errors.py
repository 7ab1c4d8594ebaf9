"""What can go wrong on the server side, each as one sentence a person can act on.

CollectorError
├── StoreError
│   ├── InvalidStoreUrl     what was typed is not a store
│   ├── EngineMissing       an embedded store without the engine installed
│   ├── FolderUnusable      a directory of ours cannot be created or written to
│   ├── StoreInUse          another process owns the directory
│   ├── StoreUnreachable    nothing answers, or it refuses us
│   ├── SchemaTooNew        written by a newer version of this program
│   └── StatementFailed     the engine refused or failed a statement
└── PortTaken               another program listens where we should
"""

from __future__ import annotations


class CollectorError(Exception):
    """The root: catch it to report any failure of the collector in one sentence."""


class StoreError(CollectorError):
    """The store cannot do what was asked."""


class InvalidStoreUrl(StoreError):
    """The store's URL is not one we can read; the one store error that is wrong usage."""


class EngineMissing(StoreError):
    """An embedded store was named and the engine is not installed."""


class FolderUnusable(StoreError):
    """A directory that we keep something in cannot be created or written to."""


class StoreInUse(StoreError):
    """Another process owns the embedded store's directory."""


class StoreUnreachable(StoreError):
    """No ClickHouse answers at the store's address, or it refuses the login."""


class SchemaTooNew(StoreError):
    """The store's tables were made by a newer version than this one."""


class StatementFailed(StoreError):
    """The engine refused a statement or failed while running it."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        """ClickHouse's error number, where it gave one."""


class PortTaken(CollectorError):
    """A port we were told to listen on is held by another program."""
