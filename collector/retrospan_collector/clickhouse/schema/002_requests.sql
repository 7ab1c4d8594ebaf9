-- What the assembler derives from the spans. All of it can be rebuilt while the spans are there.

-- One row a request. The hash follows a coarse time (the day), or sampling would prune nothing;
-- passages are parallel arrays in recorded order, whose index is the position.
CREATE TABLE IF NOT EXISTS requests
(
    ServiceName LowCardinality(String),
    Timestamp DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
    TraceId String CODEC(ZSTD(1)),
    RootSpanId String CODEC(ZSTD(1)),
    SampleKey UInt64,
    RunId String CODEC(ZSTD(1)),
    CaseId String CODEC(ZSTD(1)),
    Repeat UInt16,
    AdjustedCount Float64 CODEC(ZSTD(1)),

    Environment LowCardinality(String),
    SystemName LowCardinality(String),
    SystemVersion LowCardinality(String),
    IndexVersion LowCardinality(String),
    PromptVersion LowCardinality(String),
    Model LowCardinality(String),
    EmbeddingModel LowCardinality(String),
    DataSourceId LowCardinality(String),
    Language LowCardinality(String),
    Script LowCardinality(String),
    Dialect LowCardinality(String),
    ReplayClass LowCardinality(String),
    RetrievalStatus LowCardinality(String),
    Status LowCardinality(String),
    ErrorType LowCardinality(String),
    ConversationId String CODEC(ZSTD(1)),
    UserHash String CODEC(ZSTD(1)),
    CallerRoles Array(LowCardinality(String)) CODEC(ZSTD(1)),

    Input String CODEC(ZSTD(3)),
    Question String CODEC(ZSTD(3)),
    Answer String CODEC(ZSTD(3)),
    PromptHash String CODEC(ZSTD(1)),

    PassageId Array(String) CODEC(ZSTD(1)),
    PassageDocumentId Array(String) CODEC(ZSTD(1)),
    PassageHash Array(FixedString(16)) CODEC(ZSTD(1)),
    PassageScore Array(Float64) CODEC(ZSTD(1)),
    PassageTokens Array(UInt32) CODEC(ZSTD(1)),
    CumTokens Array(UInt32) CODEC(ZSTD(1)),
    PassagePromptPosition Array(Nullable(UInt16)) CODEC(ZSTD(1)),
    PassageDroppedReason Array(LowCardinality(String)) CODEC(ZSTD(1)),
    PassageSourceVersion Array(String) CODEC(ZSTD(1)),
    PassageUpdatedAt Array(String) CODEC(ZSTD(1)),
    PassageAcl Array(String) CODEC(ZSTD(1)),

    StageSpanId Array(String) CODEC(ZSTD(1)),
    StageKind Array(LowCardinality(String)) CODEC(ZSTD(1)),
    StageName Array(LowCardinality(String)) CODEC(ZSTD(1)),
    StageErrorType Array(LowCardinality(String)) CODEC(ZSTD(1)),
    StageIds Array(Array(String)) CODEC(ZSTD(1)),

    Depth Nullable(UInt32),
    TopK Nullable(UInt32),
    TokenBudget Nullable(UInt32),
    ContextTokens Nullable(UInt32),
    BudgetRule LowCardinality(String),
    Tokenizer LowCardinality(String),
    ScoreKind LowCardinality(String),

    Citations Array(String) CODEC(ZSTD(1)),
    CitedPositions Array(UInt32) CODEC(ZSTD(1)),
    DanglingCitations Array(String) CODEC(ZSTD(1)),
    InputTokens Nullable(UInt32),
    OutputTokens Nullable(UInt32),
    CostUsd Nullable(Float64),
    FinishReason LowCardinality(String),
    DurationNs Nullable(UInt64),
    RetrievalNs Nullable(UInt64),
    GenerationNs Nullable(UInt64),
    FirstChunkNs Nullable(UInt64),
    FeedbackScore Nullable(Float64),

    Completeness UInt32,
    AssembledAt DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    Version UInt64,
    IsDeleted UInt8,
    INDEX by_time Timestamp TYPE minmax GRANULARITY 1
)
ENGINE = ReplacingMergeTree(Version, IsDeleted)
PARTITION BY toMonday(Timestamp, 'UTC')
PRIMARY KEY (ServiceName, toDate(Timestamp, 'UTC'), SampleKey)
ORDER BY (ServiceName, toDate(Timestamp, 'UTC'), SampleKey, TraceId, RootSpanId)
SAMPLE BY SampleKey
-- A clock that was wrong by decades must not delete the request with the next merge.
TTL toDate(
    if(Timestamp >= '2000-01-01 00:00:00' AND Timestamp < '2100-01-01 00:00:00', Timestamp, AssembledAt),
    'UTC'
) + INTERVAL 400 DAY
-- A week that is over is merged into one part, so that a look-up opens one and not forty.
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1,
    min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1;

-- Each text once, under the hash of text and metadata that `requests` holds. LastSeen is the
-- version and the clock of its retention: a text that is retrieved again starts anew.
CREATE TABLE IF NOT EXISTS passage_texts
(
    Hash FixedString(16),
    Text String CODEC(ZSTD(3)),
    Metadata String CODEC(ZSTD(3)),
    LastSeen Date
)
ENGINE = ReplacingMergeTree(LastSeen)
ORDER BY Hash
TTL LastSeen + INTERVAL 400 DAY
-- Texts are wide and wanted one by one: a granule is unpacked whole for each.
SETTINGS index_granularity = 128;

-- The assembler's memory: from how many spans a trace was assembled, the last arrival it used,
-- and the keys its rows stand under, so that a late root can take back the rows it replaces.
-- A day a partition, because every round asks for what was assembled since a moment ago; the
-- newest version of a trace may stand in any of them.
CREATE TABLE IF NOT EXISTS assembled
(
    SampleKey UInt64,
    TraceId String CODEC(ZSTD(1)),
    SpanCount UInt32,
    LastArrival DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
    KeyServiceName Array(LowCardinality(String)) CODEC(ZSTD(1)),
    KeyTimestamp Array(DateTime64(9, 'UTC')) CODEC(ZSTD(1)),
    KeyRootSpanId Array(String) CODEC(ZSTD(1)),
    KeySpanCount Array(UInt32) CODEC(ZSTD(1)),
    KeyLate Array(UInt8) CODEC(ZSTD(1)),
    Pending UInt8,
    Version UInt64
)
ENGINE = ReplacingMergeTree(Version)
PARTITION BY toDate(LastArrival, 'UTC')
ORDER BY (SampleKey, TraceId)
TTL toDateTime(LastArrival) + INTERVAL 30 DAY
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1;

-- Up to when a shard of the assembler has dealt with every touched trace: where the next process
-- begins. The traces themselves are not assembled in the order of their arrival.
CREATE TABLE IF NOT EXISTS assembler_progress
(
    Shard UInt32,
    Shards UInt32,
    DoneUntil DateTime64(3, 'UTC'),
    WrittenAt DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(WrittenAt)
ORDER BY (Shards, Shard);
