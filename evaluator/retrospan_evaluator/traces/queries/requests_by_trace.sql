-- Requests of traces whose ids and places are known. The key finds the granules, the ids the rows,
-- and the newest version is picked from those few: FINAL would merge the granules with all columns.
-- One that was taken back is among them; a query around this one, to leave it out, would take as
-- long to analyse, with so many columns, as the rows take to read.
SELECT *
FROM requests
PREWHERE ServiceName IN {services:Array(String)}
    AND toDate(Timestamp, 'UTC') IN {days:Array(Date)}
    AND SampleKey IN {sample_keys:Array(UInt64)}
    AND TraceId IN {trace_ids:Array(String)}
ORDER BY Version DESC
LIMIT 1 BY ServiceName, toDate(Timestamp, 'UTC'), SampleKey, TraceId, RootSpanId
