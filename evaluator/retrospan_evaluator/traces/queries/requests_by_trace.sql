-- Requests of traces whose ids are known. The sample keys find the granules, the ids the rows.
SELECT *
FROM requests FINAL
WHERE SampleKey IN {sample_keys:Array(UInt64)}
  AND TraceId IN {trace_ids:Array(String)}
ORDER BY Timestamp, RootSpanId
