"""Why the face does not do what a request asks, with ClickHouse's number for it."""

from __future__ import annotations


class FaceRefusal(Exception):
    """The root: answered as ClickHouse answers an error."""

    code = 497
    """ACCESS_DENIED."""
    http_status = 403


class StatementRefused(FaceRefusal):
    """The statement reaches outside the store, or is of a kind that is not served."""


class SettingRefused(FaceRefusal):
    """A setting that is not on the list."""

    code = 452
    """SETTING_CONSTRAINT_VIOLATION."""
    http_status = 400


class NotAuthenticated(FaceRefusal):
    """No token, a wrong one, or one in the URL."""

    code = 516
    """AUTHENTICATION_FAILED."""


class UnknownDatabase(FaceRefusal):
    """A database that is not ours."""

    code = 81
    """UNKNOWN_DATABASE."""
    http_status = 404


class BodyRefused(FaceRefusal):
    """A body that is too large or packed in a way we do not read."""

    code = 73
    """UNKNOWN_FORMAT."""
    http_status = 400
