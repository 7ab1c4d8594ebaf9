-- Where the requests of traces lie: the part of the tables' key that a trace id does not give. Without
-- it a granule of each service and day has to be looked at, which is cheap for two columns only.
SELECT DISTINCT ServiceName, toDate(Timestamp, 'UTC') AS Day
FROM requests
PREWHERE SampleKey IN {sample_keys:Array(UInt64)} AND TraceId IN {trace_ids:Array(String)}
