-- Spans as they came. `otel_traces` has the columns of the OpenTelemetry Collector's ClickHouse
-- exporter, by name and type, so that its INSERT works here; what it does not send has a default.
--
-- `-- define NAME = TEXT` stands for TEXT wherever ${NAME} follows.

-- The sort key begins with service and day and then the hash: a sample of a service's week is then
-- one range a day, and a trace's spans lie together.
CREATE TABLE IF NOT EXISTS otel_traces
(
    Timestamp DateTime64(9) CODEC(Delta, ZSTD(1)),
    TraceId String CODEC(ZSTD(1)),
    SpanId String CODEC(ZSTD(1)),
    ParentSpanId String CODEC(ZSTD(1)),
    TraceState String CODEC(ZSTD(1)),
    SpanName LowCardinality(String) CODEC(ZSTD(1)),
    SpanKind LowCardinality(String) CODEC(ZSTD(1)),
    ServiceName LowCardinality(String) CODEC(ZSTD(1)),
    ResourceAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    ScopeName String CODEC(ZSTD(1)),
    ScopeVersion String CODEC(ZSTD(1)),
    SpanAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    Duration UInt64 CODEC(ZSTD(1)),
    StatusCode LowCardinality(String) CODEC(ZSTD(1)),
    StatusMessage String CODEC(ZSTD(1)),
    Events Nested
    (
        Timestamp DateTime64(9),
        Name LowCardinality(String),
        Attributes Map(LowCardinality(String), String)
    ) CODEC(ZSTD(1)),
    Links Nested
    (
        TraceId String,
        SpanId String,
        TraceState String,
        Attributes Map(LowCardinality(String), String)
    ) CODEC(ZSTD(1)),
    DroppedAttributes UInt32 DEFAULT 0 CODEC(ZSTD(1)),
    DroppedEvents UInt32 DEFAULT 0 CODEC(ZSTD(1)),
    Flags UInt32 DEFAULT 0 CODEC(ZSTD(1)),
    IngestedAt DateTime64(3) DEFAULT now64(3) CODEC(Delta, ZSTD(1)),
    OperationName LowCardinality(String) DEFAULT if(
        SpanAttributes['gen_ai.operation.name'] != '',
        SpanAttributes['gen_ai.operation.name'],
        SpanAttributes['retrospan.stage']
    ) CODEC(ZSTD(1)),
    SampleKey UInt64 DEFAULT reinterpretAsUInt64(
        reverse(substring(SHA256(concat('retrospan:sample:v1\0', TraceId)), 1, 8))
    ) CODEC(ZSTD(1)),
    INDEX by_trace TraceId TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX by_operation OperationName TYPE set(100) GRANULARITY 1,
    INDEX by_time Timestamp TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(IngestedAt)
PARTITION BY toDate(Timestamp, 'UTC')
PRIMARY KEY (ServiceName, toDate(Timestamp, 'UTC'), SampleKey)
ORDER BY (ServiceName, toDate(Timestamp, 'UTC'), SampleKey, TraceId, Timestamp, SpanId)
SAMPLE BY SampleKey
TTL toDateTime(IngestedAt) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 100000;

-- A span that was sent twice stands here once. A day's key stays in its partition.
CREATE VIEW IF NOT EXISTS spans AS
SELECT * FROM otel_traces FINAL
SETTINGS do_not_merge_across_partitions_select_final = 1;

-- Which traces got spans when, for the assembler: it reads the last few buckets.
CREATE TABLE IF NOT EXISTS touched
(
    Bucket DateTime('UTC') CODEC(Delta, ZSTD(1)),
    SampleKey UInt64 CODEC(ZSTD(1)),
    TraceId String CODEC(ZSTD(1)),
    At DateTime64(3) CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree(At)
PARTITION BY toDate(Bucket, 'UTC')
ORDER BY (Bucket, SampleKey, TraceId)
TTL Bucket + INTERVAL 2 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 100000;

CREATE MATERIALIZED VIEW IF NOT EXISTS otel_traces_to_touched TO touched AS
SELECT
    toStartOfMinute(IngestedAt, 'UTC') AS Bucket,
    SampleKey,
    TraceId,
    max(IngestedAt) AS At
FROM otel_traces
GROUP BY Bucket, SampleKey, TraceId;

-- For other programs that read the exporter's tables; nothing of ours does.
CREATE TABLE IF NOT EXISTS otel_traces_trace_id_ts
(
    TraceId String CODEC(ZSTD(1)),
    Start DateTime CODEC(Delta, ZSTD(1)),
    End DateTime CODEC(Delta, ZSTD(1)),
    INDEX by_trace TraceId TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toDate(Start, 'UTC')
ORDER BY (TraceId, Start)
TTL Start + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 100000;

CREATE MATERIALIZED VIEW IF NOT EXISTS otel_traces_to_trace_id_ts TO otel_traces_trace_id_ts AS
SELECT
    TraceId,
    toDateTime(min(Timestamp)) AS Start,
    toDateTime(max(Timestamp)) AS End
FROM otel_traces
WHERE TraceId != ''
GROUP BY TraceId;

-- Export requests, decoded by the engine itself from otlp_traces.proto; nothing is kept here.
-- define kind = Enum8('absent' = 0, 'string_value' = 1, 'bool_value' = 2, 'int_value' = 3, 'double_value' = 4, 'array_value' = 5, 'kvlist_value' = 6, 'bytes_value' = 7)
-- define scalar = string_value String, bool_value Bool, int_value Int64, double_value Float64, bytes_value String, value ${kind}
-- define value0 = Tuple(${scalar})
-- define value1 = Tuple(${scalar}, array_value Tuple(values Array(${value0}), absent UInt32), kvlist_value Tuple(values Array(Tuple(key String, value ${value0})), absent UInt32))
-- define value2 = Tuple(${scalar}, array_value Tuple(values Array(${value1}), absent UInt32), kvlist_value Tuple(values Array(Tuple(key String, value ${value1})), absent UInt32))
-- define value3 = Tuple(${scalar}, array_value Tuple(values Array(${value2}), absent UInt32), kvlist_value Tuple(values Array(Tuple(key String, value ${value2})), absent UInt32))
-- define attributes = attributes Array(Tuple(key String, value ${value3}))
CREATE TABLE IF NOT EXISTS otlp_traces
(
    resource_spans Array(Tuple(
        resource Tuple(${attributes}, absent UInt32),
        scope_spans Array(Tuple(
            scope Tuple(name String, version String),
            spans Array(Tuple(
                trace_id String,
                span_id String,
                trace_state String,
                parent_span_id String,
                name String,
                kind Int32,
                start_time_unix_nano UInt64,
                end_time_unix_nano UInt64,
                ${attributes},
                dropped_attributes_count UInt32,
                events Array(Tuple(time_unix_nano UInt64, name String, ${attributes})),
                dropped_events_count UInt32,
                links Array(Tuple(
                    trace_id String, span_id String, trace_state String, ${attributes}
                )),
                status Tuple(message String, code Int32),
                flags UInt32
            ))
        ))
    )),
    absent UInt32
)
ENGINE = Null;

-- Attributes become text as the exporter renders them: a scalar as itself, bytes in base64, arrays
-- and maps as JSON, in which a number that is not finite is null.
CREATE MATERIALIZED VIEW IF NOT EXISTS otlp_traces_to_otel_traces TO otel_traces AS
WITH
    (n -> multiIf(
        isNaN(n), 'NaN', isInfinite(n), if(n > 0, 'Infinity', '-Infinity'), toString(n)
    )) AS number,
    (v -> multiIf(
        v.value = 'string_value', toJSONString(v.string_value),
        v.value = 'int_value', toString(v.int_value),
        v.value = 'double_value', if(isFinite(v.double_value), toString(v.double_value), 'null'),
        v.value = 'bool_value', toString(v.bool_value),
        v.value = 'bytes_value', concat('"', base64Encode(v.bytes_value), '"'),
        'null'
    )) AS json0,
    (v -> multiIf(
        v.value = 'array_value',
        concat('[', arrayStringConcat(arrayMap(i -> json0(i), v.array_value.values), ','), ']'),
        v.value = 'kvlist_value',
        concat('{', arrayStringConcat(arrayMap(
            p -> concat(toJSONString(p.key), ':', json0(p.value)), v.kvlist_value.values
        ), ','), '}'),
        json0(v)
    )) AS json1,
    (v -> multiIf(
        v.value = 'array_value',
        concat('[', arrayStringConcat(arrayMap(i -> json1(i), v.array_value.values), ','), ']'),
        v.value = 'kvlist_value',
        concat('{', arrayStringConcat(arrayMap(
            p -> concat(toJSONString(p.key), ':', json1(p.value)), v.kvlist_value.values
        ), ','), '}'),
        json0(v)
    )) AS json2,
    (v -> multiIf(
        v.value = 'string_value', v.string_value,
        v.value = 'int_value', toString(v.int_value),
        v.value = 'double_value', number(v.double_value),
        v.value = 'bool_value', toString(v.bool_value),
        v.value = 'array_value',
        concat('[', arrayStringConcat(arrayMap(i -> json2(i), v.array_value.values), ','), ']'),
        v.value = 'kvlist_value',
        concat('{', arrayStringConcat(arrayMap(
            p -> concat(toJSONString(p.key), ':', json2(p.value)), v.kvlist_value.values
        ), ','), '}'),
        v.value = 'bytes_value', base64Encode(v.bytes_value),
        ''
    )) AS text,
    (attributes -> CAST(
        (arrayMap(a -> a.key, attributes), arrayMap(a -> text(a.value), attributes)),
        'Map(LowCardinality(String), String)'
    )) AS texts,
    (ns -> fromUnixTimestamp64Nano(toInt64(least(ns, 9223372036854775807)), 'UTC')) AS instant
SELECT
    instant(span.start_time_unix_nano) AS Timestamp,
    lower(hex(span.trace_id)) AS TraceId,
    lower(hex(span.span_id)) AS SpanId,
    lower(hex(span.parent_span_id)) AS ParentSpanId,
    span.trace_state AS TraceState,
    span.name AS SpanName,
    transform(
        span.kind, [1, 2, 3, 4, 5], ['Internal', 'Server', 'Client', 'Producer', 'Consumer'],
        'Unspecified'
    ) AS SpanKind,
    ResourceAttributes['service.name'] AS ServiceName,
    ResourceAttributes,
    scope.name AS ScopeName,
    scope.version AS ScopeVersion,
    texts(span.attributes) AS SpanAttributes,
    if(
        span.end_time_unix_nano > span.start_time_unix_nano,
        span.end_time_unix_nano - span.start_time_unix_nano,
        0
    ) AS Duration,
    transform(span.status.code, [1, 2], ['Ok', 'Error'], 'Unset') AS StatusCode,
    span.status.message AS StatusMessage,
    arrayMap(e -> instant(e.time_unix_nano), span.events) AS `Events.Timestamp`,
    arrayMap(e -> e.name, span.events) AS `Events.Name`,
    arrayMap(e -> texts(e.attributes), span.events) AS `Events.Attributes`,
    arrayMap(l -> lower(hex(l.trace_id)), span.links) AS `Links.TraceId`,
    arrayMap(l -> lower(hex(l.span_id)), span.links) AS `Links.SpanId`,
    arrayMap(l -> l.trace_state, span.links) AS `Links.TraceState`,
    arrayMap(l -> texts(l.attributes), span.links) AS `Links.Attributes`,
    span.dropped_attributes_count AS DroppedAttributes,
    span.dropped_events_count AS DroppedEvents,
    span.flags AS Flags
FROM
(
    SELECT ResourceAttributes, scope_span.scope AS scope, arrayJoin(scope_span.spans) AS span
    FROM
    (
        SELECT
            texts(resource_span.resource.attributes) AS ResourceAttributes,
            arrayJoin(resource_span.scope_spans) AS scope_span
        FROM (SELECT arrayJoin(resource_spans) AS resource_span FROM otlp_traces)
    )
);
