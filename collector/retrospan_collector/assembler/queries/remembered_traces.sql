-- What was assembled of some traces before.
SELECT
    TraceId,
    toUnixTimestamp64Milli(LastArrival) AS LastMs,
    Pending,
    Version,
    KeyServiceName,
    KeyTimestamp,
    KeyRootSpanId,
    KeySpanCount,
    KeyLate
FROM assembled
WHERE SampleKey IN {sample_keys:Array(UInt64)}
ORDER BY Version DESC
LIMIT 1 BY TraceId
