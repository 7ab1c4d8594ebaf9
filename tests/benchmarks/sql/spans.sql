-- The four spans of each request, as the library's reach the table through the receiver.
INSERT INTO otel_traces
(
    Timestamp, TraceId, SpanId, ParentSpanId, SpanName, SpanKind, ServiceName,
    ResourceAttributes, ScopeName, ScopeVersion, SpanAttributes, Duration, StatusCode, IngestedAt
)
${definitions}
SELECT
    fromUnixTimestamp64Nano((started_us + span.offset_us) * 1000, 'UTC'), trace_id,
    span_ids[span.step], if(span.step = 1, '', span_ids[1]), span.name, span.kind, service_name,
    map(
        'service.name', service_name, 'deployment.environment.name', environment,
        'telemetry.sdk.language', 'python', 'telemetry.sdk.name', 'opentelemetry'
    ),
    'retrospan', '0.1.0', span.recorded, span.duration_us * 1000,
    if(failed AND span.step IN (1, 4), 'Error', 'Unset'),
    fromUnixTimestamp64Milli(intDiv(started_us + duration_us, 1000) + 2000, 'UTC')
FROM
(
    SELECT
        *,
        if(failed, map('error.type', 'TimeoutError'), map()) AS failure,
        CAST(
            [
                (1, 0, duration_us, concat('invoke_workflow ', service_name), 'Internal', mapConcat(map(
                    'retrospan.schema.version', '1',
                    'retrospan.stage', 'request',
                    'gen_ai.operation.name', 'invoke_workflow',
                    'gen_ai.workflow.name', service_name,
                    'gen_ai.conversation.id', conversation_id,
                    'user.hash', user_hash,
                    'retrospan.system.name', service_name,
                    'retrospan.system.version', '1.4.0',
                    'retrospan.input', input
                ), failure)),
                (2, 2000, retrieval_us, 'retrieval kb', 'Client', map(
                    'retrospan.schema.version', '1',
                    'retrospan.stage', 'retrieve',
                    'gen_ai.operation.name', 'retrieval',
                    'gen_ai.data_source.id', 'kb',
                    'gen_ai.request.model', 'embedding-1',
                    'gen_ai.retrieval.top_k', '20',
                    'gen_ai.retrieval.query.text', question,
                    'gen_ai.retrieval.documents', documents,
                    'retrospan.index.version', index_version,
                    'retrospan.retrieval.score_kind', 'similarity',
                    'retrospan.retrieval.identity', lower(hex(MD5(documents))),
                    'retrospan.passages.id', toJSONString(ids),
                    'retrospan.passages.document_id', toJSONString(document_ids),
                    'retrospan.passages.score', toJSONString(scores),
                    'retrospan.passages.tokens', toJSONString(tokens),
                    'retrospan.passages.hash', toJSONString(arrayMap(h -> lower(hex(h)), hashes))
                )),
                (3, 3000 + retrieval_us, 300, 'assemble', 'Internal', map(
                    'retrospan.schema.version', '1',
                    'retrospan.stage', 'assemble',
                    'gen_ai.prompt.version', 'p-3',
                    'retrospan.assembly.rule', 'stop',
                    'retrospan.assembly.top_k', toString(top_k),
                    'retrospan.assembly.token_budget', toString(token_budget),
                    'retrospan.assembly.context_tokens', toString(context_tokens),
                    'retrospan.assembly.id', toJSONString(ids),
                    'retrospan.assembly.position', toJSONString(arrayEnumerate(ids)),
                    'retrospan.assembly.prompt_position', toJSONString(places),
                    'retrospan.assembly.dropped_reason', toJSONString(reasons)
                )),
                (4, 4000 + retrieval_us, generation_us, 'chat large-1', 'Client', mapConcat(map(
                    'retrospan.schema.version', '1',
                    'retrospan.stage', 'generate',
                    'gen_ai.operation.name', 'chat',
                    'gen_ai.request.model', 'large-1',
                    'gen_ai.prompt.version', 'p-3'
                ), if(failed, failure, map(
                    'gen_ai.usage.input_tokens', toString(context_tokens + 150),
                    'gen_ai.usage.output_tokens', toString(30 + generation_us % 90),
                    'gen_ai.response.finish_reasons', '["stop"]',
                    'retrospan.completed', 'true',
                    'retrospan.answer', answer,
                    'retrospan.citations', toJSONString(cited)
                ))))
            ],
            'Array(Tuple(step UInt8, offset_us Int64, duration_us UInt64, name String, '
            || 'kind String, recorded Map(String, String)))'
        ) AS steps
    FROM
    (
        SELECT
            *,
            concat('[', arrayStringConcat(arrayMap(
                (id, score, p) -> concat(
                    '{"id": "', id, '", "score": ', toString(score), ', "content": "',
                    passage_text(p), '", "metadata": ', passage_metadata(p), '}'
                ),
                ids, scores, passages
            ), ', '), ']') AS documents
        FROM
        (
${facts}
        )
    )
)
ARRAY JOIN steps AS span
