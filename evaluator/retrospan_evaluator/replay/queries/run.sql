-- Everything that was registered for a run: its results are these traces, no others.
SELECT RunId, CaseId, Repeat, TraceId, SampleKey, Kind, System, SystemVersion,
       Dataset, DatasetVersion, Settings, CreatedAt
FROM runs FINAL
WHERE RunId = {run_id:String}
