"""Every attribute name of the record, and what its value means.

Standard OpenTelemetry names come first; a name under `retrospan.` exists only where there is
no standard one. The strings are written out here because the packaged constants are frozen.

Arrays over passages have equal length and position order within a span, and one type each:
a missing score is NaN, an unknown token count -1, a missing text the empty string.
"""

from enum import StrEnum
from typing import Final

CURRENT_SCHEMA_VERSION: Final = "1"
"""The value `retrospan.schema.version` has in spans of this version of the library."""


class Stage(StrEnum):
    """The values of `retrospan.stage`: which step of a request a span records."""

    REQUEST = "request"
    RETRIEVE = "retrieve"
    RERANK = "rerank"
    ASSEMBLE = "assemble"
    GENERATE = "generate"
    FEEDBACK = "feedback"


# On every span.

SCHEMA_VERSION: Final = "retrospan.schema.version"
"""String: the version of this list of names."""

STAGE: Final = "retrospan.stage"
"""String: a value of `Stage`."""

ERROR_TYPE: Final = "error.type"
"""String: class of the exception that ended the step; absent when there was none."""

TRUNCATED: Final = "retrospan.truncated"
"""Boolean: true where the input, the query or the answer was cut at a limit; absent where they
are whole. A cut passage says so in `gen_ai.retrieval.documents`."""

OPERATION_NAME: Final = "gen_ai.operation.name"
"""String: `invoke_workflow`, `retrieval`, `rerank`, or `chat` where a model is declared."""

# The request.

WORKFLOW_NAME: Final = "gen_ai.workflow.name"
"""String: the system's name."""

CONVERSATION_ID: Final = "gen_ai.conversation.id"
"""String: the conversation a request belongs to."""

USER_HASH: Final = "user.hash"
"""String: HMAC of the user's id with a key of the application."""

USER_ROLES: Final = "user.roles"
"""String array: what the caller was allowed to see."""

SYSTEM_NAME: Final = "retrospan.system.name"
"""String: the name given at decoration."""

SYSTEM_VERSION: Final = "retrospan.system.version"
"""String: the version given at decoration."""

INPUT: Final = "retrospan.input"
"""String: the request's input as JSON text; absent where content is hashed or left out."""

INPUT_HASH: Final = "retrospan.input.hash"
"""String: hash of the input's JSON text with sorted keys and no spaces, where content is
hashed."""

RUN_ID: Final = "retrospan.run.id"
"""String: the test run or replay the request belongs to; absent for live traffic."""

CASE_ID: Final = "retrospan.case.id"
"""String: the dataset case the request came from."""

# Retrieval and reranking.

DATA_SOURCE_ID: Final = "gen_ai.data_source.id"
"""String: the index or collection searched."""

REQUEST_MODEL: Final = "gen_ai.request.model"
"""String: the embedding model of a retrieval, the model of a rerank or a generation."""

RETRIEVAL_TOP_K: Final = "gen_ai.retrieval.top_k"
"""Integer: the depth asked of the retriever. The cut made by assembly is another number."""

RETRIEVAL_QUERY_TEXT: Final = "gen_ai.retrieval.query.text"
"""String: the query the retriever searched with."""

RETRIEVAL_QUERY_HASH: Final = "retrospan.retrieval.query_hash"
"""String: hash of the query, where content is hashed."""

RETRIEVAL_DOCUMENTS: Final = "gen_ai.retrieval.documents"
"""String: JSON array of `{"id", "score", "content", "metadata", "truncated"}` in position order;
`score` is null where there is none, `metadata` is absent where there is none, `truncated` is true
where content or metadata were cut; absent where passages are hashed."""

INDEX_VERSION: Final = "retrospan.index.version"
"""String: version of the index, or JSON text of its parts."""

RETRIEVAL_SCORE_KIND: Final = "retrospan.retrieval.score_kind"
"""String: what a score measures, such as `similarity` or `distance`."""

RETRIEVAL_FILTER: Final = "retrospan.retrieval.filter"
"""String: the filter the search was restricted by, as JSON text."""

RETRIEVAL_IDENTITY: Final = "retrospan.retrieval.identity"
"""String: one hash over what was asked: query, depth, index version, system version, data source
and filter. Requests that share it and differ in their passages had another index under them."""

TOKENIZER: Final = "retrospan.tokenizer"
"""String: the tokenizer that counted."""

PASSAGES_ID: Final = "retrospan.passages.id"
"""String array: passage ids."""

PASSAGES_DOCUMENT_ID: Final = "retrospan.passages.document_id"
"""String array: the document each passage was cut from."""

PASSAGES_SCORE: Final = "retrospan.passages.score"
"""Double array: the retriever's scores; NaN where missing or not finite."""

PASSAGES_TOKENS: Final = "retrospan.passages.tokens"
"""Integer array: token counts; -1 where unknown."""

PASSAGES_HASH: Final = "retrospan.passages.hash"
"""String array: 32 hexadecimal digits over text and metadata; empty for no content."""

PASSAGES_SOURCE_VERSION: Final = "retrospan.passages.source_version"
"""String array: version of each passage's source, from its metadata."""

PASSAGES_UPDATED_AT: Final = "retrospan.passages.updated_at"
"""String array: when each passage's source last changed, from its metadata."""

PASSAGES_ACL: Final = "retrospan.passages.acl"
"""String array: who may see each passage, from its metadata; JSON text where it is a list."""

RERANK_INPUT_POSITION: Final = "retrospan.rerank.input_position"
"""Integer array: each passage's 1-based place before reranking; 0 where it was not there."""

# Assembly.

PROMPT_NAME: Final = "gen_ai.prompt.name"
"""String: name of the prompt."""

PROMPT_VERSION: Final = "gen_ai.prompt.version"
"""String: version of the prompt."""

ASSEMBLY_TOP_K: Final = "retrospan.assembly.top_k"
"""Integer: positions considered; absent when all were."""

ASSEMBLY_TOKEN_BUDGET: Final = "retrospan.assembly.token_budget"
"""Integer: tokens the context may hold; absent without a budget."""

ASSEMBLY_RULE: Final = "retrospan.assembly.rule"
"""String: `stop` or `skip`."""

ASSEMBLY_CONTEXT_TOKENS: Final = "retrospan.assembly.context_tokens"
"""Integer: tokens of the context; absent when a kept passage has no known count."""

ASSEMBLY_PROMPT_HASH: Final = "retrospan.assembly.prompt_hash"
"""String: hash of the finished prompt."""

ASSEMBLY_ID: Final = "retrospan.assembly.id"
"""String array: ids of the candidates assembly was given."""

ASSEMBLY_POSITION: Final = "retrospan.assembly.position"
"""Integer array: their 1-based positions."""

ASSEMBLY_PROMPT_POSITION: Final = "retrospan.assembly.prompt_position"
"""Integer array: 1-based place in the prompt; 0 when left out."""

ASSEMBLY_DROPPED_REASON: Final = "retrospan.assembly.dropped_reason"
"""String array: `top_k`, `budget`, `duplicate`, `score` or `filter`; empty when kept."""

# Generation.

ANSWER: Final = "retrospan.answer"
"""String: the answer; absent when the output held none, or where content is hashed or left
out."""

ANSWER_HASH: Final = "retrospan.answer.hash"
"""String: hash of the answer, where content is hashed."""

CITATIONS: Final = "retrospan.citations"
"""String: JSON array of cited ids (strings) and 1-based places in the prompt (integers), as
given; absent when the output had no place for citations."""

COMPLETED: Final = "retrospan.completed"
"""Boolean: whether generation came to its end."""

CONTEXT_IDENTITY: Final = "retrospan.context.identity"
"""String: one hash over the context's ids and contents in prompt order."""

RESPONSE_ID: Final = "gen_ai.response.id"
"""String: the provider's id of the response."""

RESPONSE_MODEL: Final = "gen_ai.response.model"
"""String: the model that answered."""

FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
"""String array: why the model stopped."""

TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
"""Double: seconds from the call to the first piece of a streamed answer; absent without a
stream."""

INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
"""Integer: tokens the model read, cached ones included."""

OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
"""Integer: tokens the model wrote, those of its reasoning included."""

CACHE_READ_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
"""Integer: tokens read that the provider had in its cache."""

CACHE_WRITE_TOKENS: Final = "gen_ai.usage.cache_write.input_tokens"
"""Integer: tokens read that the provider put into its cache."""

REASONING_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
"""Integer: tokens of the model's reasoning."""

# Feedback.

REQUEST_TRACE_ID: Final = "retrospan.request.trace_id"
"""String: trace id of the request the feedback is about, as 32 hexadecimal digits."""

EVALUATION_NAME: Final = "gen_ai.evaluation.name"
"""String: the kind of feedback, such as `complaint`."""

EVALUATION_SCORE: Final = "gen_ai.evaluation.score.value"
"""Double: the score that was given."""

EVALUATION_LABEL: Final = "gen_ai.evaluation.score.label"
"""String: the label that was given."""

EVALUATION_EXPLANATION: Final = "gen_ai.evaluation.explanation"
"""String: the comment that was given; absent where content is hashed or left out."""
