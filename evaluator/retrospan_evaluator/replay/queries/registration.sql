-- Which run a trace was registered for, if any.
SELECT RunId, CaseId, Repeat, TraceId, SampleKey, Kind, System, SystemVersion,
       Dataset, DatasetVersion, Settings, CreatedAt
FROM runs FINAL
WHERE SampleKey = {sample_key:UInt64} AND TraceId = {trace_id:String}
