"""What an application may import and call; a change here is a change for everybody who does."""

from __future__ import annotations

import inspect
import pkgutil
import re
from importlib.resources import files

import pytest

import retrospan

FUNCTIONS = {
    "assemble": "passages top_k token_budget rule count_tokens ineligible prompt_name"
    " prompt_version",
    "bind": "system",
    "carry": "function",
    "configure": "service_name endpoint protocol environment headers exit_timeout_s capture redact"
    " hash_key max_text_length max_metadata_length",
    "current_request": "",
    "feedback": "request score label comment kind",
    "generate": "function name answer citations model prompt_name prompt_version",
    "rag_system": "name version depth top_k token_budget budget_rule index_version prompt_version"
    " deterministic answer_path citations_path tokenizer capture redact hash_key max_text_length"
    " max_metadata_length",
    "record_caller": "conversation_id user_id user_roles",
    "record_context": "kept dropped candidates top_k token_budget rule prompt prompt_name"
    " prompt_version",
    "record_generation": "response prompt prompt_name prompt_version model",
    "request": "function name input version conversation_id user_id user_roles capture redact"
    " hash_key max_text_length max_metadata_length",
    "retrieve": "function passages index_version depth query score_kind data_source_id"
    " embedding_model tokenizer count_tokens filter",
    "run_scope": "run_id case_id tracer_provider",
}
TYPES = [
    "Assembly",
    "BoundSystem",
    "BudgetRule",
    "CaptureMode",
    "ConfigurationError",
    "DroppedReason",
    "Outcome",
    "Passage",
    "Placement",
    "RequestReference",
    "Retrieval",
    "SystemSettings",
]


def test_these_names_are_public_and_no_others() -> None:
    assert retrospan.__all__ == sorted([*TYPES, *FUNCTIONS])


def test_all_modules_but_the_attribute_names_are_private() -> None:
    modules = [module.name for module in pkgutil.iter_modules(retrospan.__path__)]
    assert [name for name in modules if not name.startswith("_")] == ["attributes"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_takes_these_arguments(name: str) -> None:
    parameters = inspect.signature(getattr(retrospan, name)).parameters
    assert list(parameters) == FUNCTIONS[name].split()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_documents_each_argument(name: str) -> None:
    function = getattr(retrospan, name)
    described = inspect.getdoc(function) or ""
    given = [parameter for parameter in FUNCTIONS[name].split() if parameter != "function"]
    if len(given) > 1:
        missing = [item for item in given if not re.search(rf"^ +{item}: ", described, re.M)]
        assert [item for item in missing if item not in ("passages", "system")] == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_optional_arguments_are_given_by_name(name: str) -> None:
    for parameter in inspect.signature(getattr(retrospan, name)).parameters.values():
        if parameter.default is not inspect.Parameter.empty and parameter.name != "function":
            by_name = parameter.kind is inspect.Parameter.KEYWORD_ONLY
            assert by_name or (name, parameter.name) in {
                ("feedback", "request"),
                ("record_generation", "response"),
            }


def test_the_distribution_says_that_it_is_typed() -> None:
    assert files("retrospan").joinpath("py.typed").is_file()
