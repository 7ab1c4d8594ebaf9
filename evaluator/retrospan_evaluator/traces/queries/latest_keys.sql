-- Keys of the newest requests, read from narrow columns only: sorting rows together with their
-- texts would read every text of the window. More are read than wanted, because a request that
-- was written again, or taken back, stands here more than once until parts are merged. RowsRead
-- tells whether the window held more.
SELECT
    ServiceName, toDate(Timestamp, 'UTC') AS Day, TraceId, RootSpanId, Timestamp, IsDeleted,
    count() OVER () AS RowsRead
FROM
(
    SELECT ServiceName, TraceId, RootSpanId, SampleKey, Timestamp, Version, IsDeleted
    FROM requests
    WHERE Timestamp >= {since:DateTime64(9, 'UTC')}
      AND ({service:String} = '' OR ServiceName = {service:String})
      AND ({run_id:String} = '' OR RunId = {run_id:String})
      AND ({replays:UInt8} = 1 OR NOT startsWith(RunId, 'replay:'))
    ORDER BY Timestamp DESC, TraceId, RootSpanId
    LIMIT {rows:UInt32}
)
ORDER BY Version DESC
LIMIT 1 BY ServiceName, toDate(Timestamp, 'UTC'), SampleKey, TraceId, RootSpanId
