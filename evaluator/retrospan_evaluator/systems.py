"""The system a run or a replay drives: found by `module:name`, with settings typed beside it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from types import ModuleType

from retrospan import BoundSystem, ConfigurationError, bind
from retrospan_evaluator.errors import SystemNotImportable, UsageError

SETTINGS = ("depth", "top_k", "token_budget", "budget_rule")
"""What `--set` takes; everything else belongs to the system's own code."""

SettingValue = int | str | None


def load_system(reference: str, *, folder: Path | None = None) -> BoundSystem:
    """The decorated system that `reference` names, made by calling it without arguments.

    Args:
        reference: `module:name` of a decorated class, or of a factory returning an instance.
        folder: searched before the installed packages; the working directory when not given.
    """
    module_name, _, name = reference.partition(":")
    if not module_name or not name:
        raise SystemNotImportable(
            f"--system expects module:name, got {reference!r}: "
            "name the module and the decorated class in it, for instance app:SupportRag"
        )
    if module_name.endswith(".py"):
        raise SystemNotImportable(
            f"--system expects module:name, got the file {module_name!r}: "
            f"write --system {_dotted(module_name)}:{name}"
        )
    factory = _named(_imported(module_name, folder or Path.cwd(), reference), name, reference)
    return _bound(factory, reference)


def with_settings(system: BoundSystem, settings: Mapping[str, SettingValue]) -> BoundSystem:
    """The same system under other settings, checked as at decoration."""
    if not settings:
        return system
    try:
        return system.with_settings(**settings)
    except ConfigurationError as error:
        raise UsageError(f"--set was refused: {error}") from error


def parse_settings(typed: Sequence[str]) -> dict[str, SettingValue]:
    """The values of `--set name=value`, each name once."""
    settings: dict[str, SettingValue] = {}
    for entry in typed:
        name, equals, value = (part.strip() for part in entry.partition("="))
        if not equals or name not in SETTINGS:
            raise UsageError(
                f"--set expects one of {', '.join(SETTINGS)} as name=value, got {entry!r}: "
                "other settings belong to the system's own code"
            )
        if name in settings:
            raise UsageError(
                f"--set expects a setting once, got {name} twice, the second time as {entry!r}: "
                "a run has one value of each, so make a run for each value"
            )
        settings[name] = value if name == "budget_rule" else _whole_number(name, value)
    return settings


def _whole_number(name: str, value: str) -> int | None:
    if name == "token_budget" and value == "none":
        return None
    if value.isascii() and value.isdigit():
        return int(value)
    expected = "a whole number or none" if name == "token_budget" else "a whole number"
    raise UsageError(f"--set {name} expects {expected}, got {value!r}: write --set {name}=4")


def _dotted(file: str) -> str:
    """The module a file is, as seen from the working directory."""
    path = PurePath(file)
    with suppress(ValueError):
        path = path.relative_to(Path.cwd())
    return ".".join(part for part in path.with_suffix("").parts if part not in ("/", ".."))


def _imported(module_name: str, folder: Path, reference: str) -> ModuleType:
    # It stays on the path: a system may import its own modules late, while it answers.
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name + ".").startswith(error.name + "."):
            raise SystemNotImportable(
                f"--system {reference!r}: there is no module {error.name!r} in {folder} or "
                "among the installed packages: check the spelling, or run from its folder"
            ) from error
        raise SystemNotImportable(
            f"--system {reference!r}: the module {module_name!r} needs {error.name!r}, "
            "which is not installed here: install it in this environment"
        ) from error
    except Exception as error:
        raise SystemNotImportable(
            f"--system {reference!r}: importing {module_name!r} raised "
            f"{type(error).__name__}: {error}: fix the module"
        ) from error


def _named(module: ModuleType, name: str, reference: str) -> Callable[[], object]:
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise SystemNotImportable(
            f"--system {reference!r}: {module.__name__!r} holds no class or factory named "
            f"{name!r}: check the spelling"
        )
    return found


def _bound(factory: Callable[[], object], reference: str) -> BoundSystem:
    try:
        system = factory()
    except Exception as error:
        raise SystemNotImportable(
            f"--system {reference!r}: calling it without arguments raised "
            f"{type(error).__name__}: {error}: name a class or factory that needs no arguments"
        ) from error
    try:
        return bind(system)
    except TypeError as error:
        kind = type(system)
        raise SystemNotImportable(
            f"--system {reference!r} expects an instance of a class decorated with "
            f"retrospan.rag_system, got one of {kind.__module__}.{kind.__qualname__}: "
            "put @rag_system(name=…, version=…, depth=…, top_k=…, index_version=…) above that class"
        ) from error
