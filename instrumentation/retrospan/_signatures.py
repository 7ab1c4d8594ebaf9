"""Find an argument of a call by its name, as fast as the call itself."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Final

MISSING: Final = object()
"""No such argument."""

_FIRST_OF_METHODS: Final = ("self", "cls")


class Parameters:
    """The parameters of a function, laid out for looking up what a call gave them."""

    __slots__ = ("_defaults", "_positions", "_rest", "names", "takes_any_name")

    def __init__(self, function: Callable[..., object]) -> None:
        self._positions: dict[str, int] = {}
        self._defaults: dict[str, object] = {}
        self._rest: tuple[str, int] | None = None
        names: list[str] = []
        takes_any_name = False
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):  # built-in callables may have no signature to look at
            parameters = []
            takes_any_name = True
        for position, parameter in enumerate(parameters):
            if parameter.kind is parameter.VAR_POSITIONAL:
                self._rest = (parameter.name, position)
            takes_any_name = takes_any_name or parameter.kind is parameter.VAR_KEYWORD
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            if parameter.kind is not parameter.KEYWORD_ONLY:
                self._positions[parameter.name] = position
            if parameter.default is not parameter.empty:
                self._defaults[parameter.name] = parameter.default
            if position or parameter.name not in _FIRST_OF_METHODS:
                names.append(parameter.name)
        self.names: Final = tuple(names)
        """The names in order, without a method's first one."""

        self.takes_any_name: Final = takes_any_name
        """Whether a call may give names that are none of these."""

    def first_of(self, names: Iterable[str]) -> str | None:
        """Return the first of these names that is a parameter."""
        return next((name for name in names if name in self.names), None)

    def value(self, name: str, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
        """Return what a call gave a parameter, its default, or `MISSING`."""
        position = self._positions.get(name)
        if position is not None and position < len(args):
            return args[position]
        if name in kwargs:
            return kwargs[name]
        return self._defaults.get(name, MISSING)

    def given(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
        """Return what a call gave every parameter, defaults included."""
        values = {name: self.value(name, args, kwargs) for name in self.names}
        extra = {name: value for name, value in kwargs.items() if name not in values}
        if self._rest is not None and len(args) > self._rest[1]:
            extra[self._rest[0]] = list(args[self._rest[1] :])
        return {name: value for name, value in values.items() if value is not MISSING} | extra


def takes_no_argument(function: Callable[..., object]) -> bool:
    """Return whether a function can be called without any argument."""
    try:
        inspect.signature(function).bind()
    except TypeError:
        return False
    except ValueError:  # no signature to look at
        return True
    return True
