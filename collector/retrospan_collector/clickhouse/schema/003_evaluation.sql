-- What the evaluator writes. Few rows, read whole: the keys serve the look-ups, not the disk.

-- Sorted by trace, because the assembler asks every round which of its traces are registered;
-- a run's rows stand together as they were inserted, which the index on RunId uses.
CREATE TABLE IF NOT EXISTS runs
(
    RunId String CODEC(ZSTD(1)),
    CaseId String CODEC(ZSTD(1)),
    Repeat UInt16,
    TraceId String CODEC(ZSTD(1)),
    SampleKey UInt64,
    Kind LowCardinality(String),
    System LowCardinality(String),
    SystemVersion LowCardinality(String),
    Dataset LowCardinality(String),
    DatasetVersion LowCardinality(String),
    Settings String CODEC(ZSTD(1)),
    CreatedAt DateTime64(6, 'UTC'),
    INDEX by_run RunId TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(CreatedAt)
ORDER BY (SampleKey, TraceId)
TTL toDateTime(CreatedAt) + INTERVAL 400 DAY
SETTINGS index_granularity = 1024;

CREATE TABLE IF NOT EXISTS cases
(
    DatasetVersion LowCardinality(String),
    CaseId String CODEC(ZSTD(1)),
    Content String CODEC(ZSTD(3)),
    CreatedAt DateTime64(6, 'UTC')
)
ENGINE = ReplacingMergeTree(CreatedAt)
ORDER BY (DatasetVersion, CaseId)
TTL toDateTime(CreatedAt) + INTERVAL 400 DAY
SETTINGS index_granularity = 1024;

-- The key begins as that of `requests`, so that scores are joined and sampled like their requests.
CREATE TABLE IF NOT EXISTS scores
(
    ServiceName LowCardinality(String),
    Timestamp DateTime64(9),
    SampleKey UInt64,
    TraceId String CODEC(ZSTD(1)),
    RootSpanId String CODEC(ZSTD(1)),
    Name LowCardinality(String),
    Value Nullable(Float64),
    Label LowCardinality(String),
    Explanation String CODEC(ZSTD(3)),
    Failure String CODEC(ZSTD(1)),
    EvaluatorKind LowCardinality(String),
    EvaluatorName LowCardinality(String),
    EvaluatorVersion LowCardinality(String),
    Model LowCardinality(String),
    PassageId String CODEC(ZSTD(1)),
    RunId String CODEC(ZSTD(1)),
    VariantId LowCardinality(String),
    InputTokens Nullable(UInt32),
    OutputTokens Nullable(UInt32),
    CostUsd Nullable(Float64),
    ScoredAt DateTime64(6, 'UTC'),
    INDEX by_run RunId TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(ScoredAt)
PARTITION BY toMonday(Timestamp, 'UTC')
ORDER BY (
    ServiceName, toDate(Timestamp, 'UTC'), SampleKey, TraceId, RootSpanId,
    Name, EvaluatorName, EvaluatorVersion, PassageId, RunId, VariantId
)
SAMPLE BY SampleKey
TTL toDate(Timestamp, 'UTC') + INTERVAL 400 DAY
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1;

CREATE TABLE IF NOT EXISTS replays
(
    ReplayId String CODEC(ZSTD(1)),
    OriginalServiceName LowCardinality(String),
    OriginalTimestamp DateTime64(9),
    OriginalSampleKey UInt64,
    OriginalTraceId String CODEC(ZSTD(1)),
    OriginalRootSpanId String CODEC(ZSTD(1)),
    Arm LowCardinality(String),
    Repeat UInt16,
    RunId String CODEC(ZSTD(1)),
    TraceId String CODEC(ZSTD(1)),
    SampleKey UInt64,
    Passed Nullable(Bool),
    CreatedAt DateTime64(6, 'UTC'),
    INDEX by_original OriginalTraceId TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(CreatedAt)
ORDER BY (ReplayId, OriginalSampleKey, OriginalTraceId, Arm, Repeat)
TTL toDateTime(CreatedAt) + INTERVAL 400 DAY
SETTINGS index_granularity = 1024;

CREATE TABLE IF NOT EXISTS diagnoses
(
    DiagnosisId String CODEC(ZSTD(1)),
    ServiceName LowCardinality(String),
    Timestamp DateTime64(9),
    SampleKey UInt64,
    TraceId String CODEC(ZSTD(1)),
    RootSpanId String CODEC(ZSTD(1)),
    ReplayId String CODEC(ZSTD(1)),
    RunId String CODEC(ZSTD(1)),
    CaseId String CODEC(ZSTD(1)),
    Criterion LowCardinality(String),
    Label LowCardinality(String),
    Reason LowCardinality(String),
    Strength LowCardinality(String),
    BestRelevantPosition Nullable(UInt32),
    Implicated Array(LowCardinality(String)),
    Report String CODEC(ZSTD(3)),
    CreatedAt DateTime64(6, 'UTC'),
    INDEX by_trace TraceId TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = ReplacingMergeTree(CreatedAt)
ORDER BY (DiagnosisId, SampleKey, TraceId, RootSpanId)
TTL toDateTime(CreatedAt) + INTERVAL 400 DAY
SETTINGS index_granularity = 1024;
