-- All spans of some traces. A span of somebody else's gives its place in the tree only.
SELECT
    TraceId,
    SpanId,
    ParentSpanId,
    ServiceName,
    if(
        ResourceAttributes['deployment.environment.name'] != '',
        ResourceAttributes['deployment.environment.name'],
        ResourceAttributes['deployment.environment']
    ) AS Environment,
    SpanName,
    TraceState,
    toUnixTimestamp64Nano(Timestamp) AS StartNs,
    Duration,
    StatusCode = 'Error' AS Failed,
    if(
        mapContains(SpanAttributes, 'retrospan.schema.version'),
        SpanAttributes,
        CAST(map(), 'Map(LowCardinality(String), String)')
    ) AS Attributes,
    DroppedAttributes,
    toUnixTimestamp64Milli(IngestedAt) AS ArrivedMs
FROM otel_traces
WHERE SampleKey IN {sample_keys:Array(UInt64)}
