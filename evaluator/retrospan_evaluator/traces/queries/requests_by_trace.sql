-- Requests of traces whose ids and places are known. The key finds the granules, the ids the rows,
-- and the newest version is picked from those few: FINAL would merge the granules with all columns.
SELECT *
FROM
(
    SELECT *
    FROM requests
    PREWHERE ServiceName IN {services:Array(String)}
        AND toDate(Timestamp, 'UTC') IN {days:Array(Date)}
        AND SampleKey IN {sample_keys:Array(UInt64)}
        AND TraceId IN {trace_ids:Array(String)}
    ORDER BY Version DESC
    LIMIT 1 BY ServiceName, toDate(Timestamp, 'UTC'), SampleKey, TraceId, RootSpanId
)
WHERE IsDeleted = 0
ORDER BY Timestamp, RootSpanId
