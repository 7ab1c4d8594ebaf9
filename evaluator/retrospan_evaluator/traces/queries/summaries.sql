-- What a list shows of requests whose keys are known.
SELECT
    TraceId, RootSpanId, ServiceName, Timestamp, SystemName, RunId, CaseId, Status, ErrorType,
    ReplayClass, Question, Answer,
    length(PassageId) AS Candidates,
    BudgetRule != '' OR arrayExists(p -> isNotNull(p), PassagePromptPosition) AS AssemblyRecorded,
    arrayCount(p -> ifNull(p, 0) > 0, PassagePromptPosition) AS Kept
FROM requests FINAL
WHERE SampleKey IN {sample_keys:Array(UInt64)}
  AND TraceId IN {trace_ids:Array(String)}
ORDER BY Timestamp DESC, TraceId, RootSpanId
