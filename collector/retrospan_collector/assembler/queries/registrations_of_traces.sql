-- The runs that registered some traces.
SELECT TraceId, RunId, CaseId, Repeat
FROM runs
WHERE SampleKey IN {sample_keys:Array(UInt64)}
ORDER BY CreatedAt DESC
LIMIT 1 BY TraceId
