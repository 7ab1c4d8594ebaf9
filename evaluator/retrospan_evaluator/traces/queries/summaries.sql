-- What a list shows of the requests of traces whose ids and places are known, newest first.
SELECT
    TraceId, RootSpanId, ServiceName, Timestamp, SystemName, RunId, CaseId, Status, ErrorType,
    ReplayClass, Question, Answer,
    length(PassageId) AS Candidates,
    BudgetRule != '' OR arrayExists(p -> isNotNull(p), PassagePromptPosition) AS AssemblyRecorded,
    arrayCount(p -> ifNull(p, 0) > 0, PassagePromptPosition) AS Kept
FROM
(
    SELECT
        TraceId, RootSpanId, ServiceName, Timestamp, SystemName, RunId, CaseId, Status, ErrorType,
        ReplayClass, Question, Answer, PassageId, BudgetRule, PassagePromptPosition, IsDeleted
    FROM requests
    PREWHERE ServiceName IN {services:Array(String)}
        AND toDate(Timestamp, 'UTC') IN {days:Array(Date)}
        AND SampleKey IN {sample_keys:Array(UInt64)}
        AND TraceId IN {trace_ids:Array(String)}
    ORDER BY Version DESC
    LIMIT 1 BY ServiceName, toDate(Timestamp, 'UTC'), SampleKey, TraceId, RootSpanId
)
WHERE IsDeleted = 0
ORDER BY Timestamp DESC, TraceId, RootSpanId
