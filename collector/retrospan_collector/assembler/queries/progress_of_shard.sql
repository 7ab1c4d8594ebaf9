-- How far a shard of the assembler got before this process began.
SELECT toUnixTimestamp64Milli(DoneUntil) AS DoneMs
FROM assembler_progress
WHERE Shards = {shards:UInt64} AND Shard = {shard:UInt64}
ORDER BY WrittenAt DESC
LIMIT 1
