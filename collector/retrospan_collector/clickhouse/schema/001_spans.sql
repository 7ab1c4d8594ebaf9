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
-- define span = resource_spans.scope_spans.spans
-- define span_columns = trace_id, span_id, parent_span_id, trace_state, span_name, kind, start_ns, end_ns, span_attributes, dropped_attributes, event_ns, event_names, event_attributes, dropped_events, link_trace_ids, link_span_ids, link_trace_states, link_attributes, status_code, status_message, flags
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
    ((names, values) -> CAST((names, values), 'Map(LowCardinality(String), String)')) AS map_of,
    (ns -> fromUnixTimestamp64Nano(toInt64(least(ns, 9223372036854775807)), 'UTC')) AS instant
SELECT
    instant(start_ns) AS Timestamp,
    lower(hex(trace_id)) AS TraceId,
    lower(hex(span_id)) AS SpanId,
    lower(hex(parent_span_id)) AS ParentSpanId,
    trace_state AS TraceState,
    span_name AS SpanName,
    transform(
        kind, [1, 2, 3, 4, 5], ['Internal', 'Server', 'Client', 'Producer', 'Consumer'],
        'Unspecified'
    ) AS SpanKind,
    ResourceAttributes['service.name'] AS ServiceName,
    ResourceAttributes,
    scope_name AS ScopeName,
    scope_version AS ScopeVersion,
    map_of(arraySlice(names, 1, own), arraySlice(texts, 1, own)) AS SpanAttributes,
    if(end_ns > start_ns, end_ns - start_ns, 0) AS Duration,
    transform(status_code, [1, 2], ['Ok', 'Error'], 'Unset') AS StatusCode,
    status_message AS StatusMessage,
    arrayMap(ns -> instant(ns), event_ns) AS `Events.Timestamp`,
    event_names AS `Events.Name`,
    arrayMap(
        (end, size) -> map_of(
            arraySlice(names, own + end - size + 1, size),
            arraySlice(texts, own + end - size + 1, size)
        ),
        arrayCumSum(event_sizes), event_sizes
    ) AS `Events.Attributes`,
    arrayMap(id -> lower(hex(id)), link_trace_ids) AS `Links.TraceId`,
    arrayMap(id -> lower(hex(id)), link_span_ids) AS `Links.SpanId`,
    link_trace_states AS `Links.TraceState`,
    arrayMap(
        (end, size) -> map_of(
            arraySlice(names, own + arraySum(event_sizes) + end - size + 1, size),
            arraySlice(texts, own + arraySum(event_sizes) + end - size + 1, size)
        ),
        arrayCumSum(link_sizes), link_sizes
    ) AS `Links.Attributes`,
    dropped_attributes AS DroppedAttributes,
    dropped_events AS DroppedEvents,
    flags AS Flags
FROM
(
    -- A span's own attributes, its events' and its links' are rendered in one go and cut apart
    -- again above: analysing the rendering is most of what a small insert costs.
    SELECT
        *,
        length(span_attributes) AS own,
        arrayMap(a -> length(a), event_attributes.key) AS event_sizes,
        arrayMap(a -> length(a), link_attributes.key) AS link_sizes,
        arrayConcat(
            span_attributes, arrayFlatten(event_attributes), arrayFlatten(link_attributes)
        ) AS attributes,
        attributes.key AS names,
        arrayMap(v -> text(v), attributes.value) AS texts
    FROM
    (
        SELECT ResourceAttributes, scope_name, scope_version, ${span_columns}
        FROM
        (
            SELECT ResourceAttributes, scope_name, scope_version, ${span_columns}
            FROM
            (
                SELECT
                    map_of(
                        resource_attributes.key,
                        arrayMap(v -> text(v), resource_attributes.value)
                    ) AS ResourceAttributes,
                    scope_name,
                    scope_version,
                    ${span_columns}
                FROM
                (
                    -- Subcolumns, because a tuple of hundreds of columns is slow to pass on.
                    SELECT
                        resource_spans.resource.attributes AS resource_attributes,
                        resource_spans.scope_spans.scope.name AS scope_name,
                        resource_spans.scope_spans.scope.version AS scope_version,
                        ${span}.trace_id AS trace_id,
                        ${span}.span_id AS span_id,
                        ${span}.parent_span_id AS parent_span_id,
                        ${span}.trace_state AS trace_state,
                        ${span}.name AS span_name,
                        ${span}.kind AS kind,
                        ${span}.start_time_unix_nano AS start_ns,
                        ${span}.end_time_unix_nano AS end_ns,
                        ${span}.attributes AS span_attributes,
                        ${span}.dropped_attributes_count AS dropped_attributes,
                        ${span}.events.time_unix_nano AS event_ns,
                        ${span}.events.name AS event_names,
                        ${span}.events.attributes AS event_attributes,
                        ${span}.dropped_events_count AS dropped_events,
                        ${span}.links.trace_id AS link_trace_ids,
                        ${span}.links.span_id AS link_span_ids,
                        ${span}.links.trace_state AS link_trace_states,
                        ${span}.links.attributes AS link_attributes,
                        ${span}.status.code AS status_code,
                        ${span}.status.message AS status_message,
                        ${span}.flags AS flags
                    FROM otlp_traces
                )
                ARRAY JOIN resource_attributes, scope_name, scope_version, ${span_columns}
            )
            ARRAY JOIN scope_name, scope_version, ${span_columns}
        )
        ARRAY JOIN ${span_columns}
    )
);
