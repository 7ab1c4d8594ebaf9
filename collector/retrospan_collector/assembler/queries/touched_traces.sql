-- Traces that got spans since a moment, as far as they are not assembled up to their last one.
SELECT TraceId, SampleKey, toUnixTimestamp64Milli(max(At)) AS LastMs
FROM touched
LEFT JOIN
(
    SELECT
        SampleKey,
        TraceId,
        argMax(LastArrival, Version) AS UsedUpTo,
        argMax(Pending, Version) AS IsPending
    FROM assembled
    WHERE LastArrival >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')
        AND SampleKey % {shards:UInt64} = {shard:UInt64}
    GROUP BY SampleKey, TraceId
) AS done USING (SampleKey, TraceId)
WHERE Bucket >= toStartOfMinute(fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC'), 'UTC')
    AND At >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')
    AND SampleKey % {shards:UInt64} = {shard:UInt64}
    AND (At > done.UsedUpTo OR done.IsPending)
GROUP BY TraceId, SampleKey
