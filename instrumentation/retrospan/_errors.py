"""What the library raises on purpose."""


class ConfigurationError(Exception):
    """A declaration or a setting that cannot work; raised before any request, never during one."""
