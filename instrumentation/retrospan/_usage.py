"""Read tokens, model and finish reason out of what a model's provider answered."""

from opentelemetry.util.types import AttributeValue

Attributes = dict[str, AttributeValue]


def generation_facts(output: object) -> Attributes:
    """Return what a provider's response, or a chunk of one, says about the generation."""
    return {}
