-- The rows that stand in `requests` for some traces.
SELECT ServiceName, Timestamp, TraceId, RootSpanId, max(Version) AS LastVersion
FROM requests
WHERE SampleKey IN {sample_keys:Array(UInt64)}
GROUP BY ServiceName, Timestamp, TraceId, RootSpanId
HAVING argMax(IsDeleted, Version) = 0
