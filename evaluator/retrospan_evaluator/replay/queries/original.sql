-- The request that a replay replayed.
SELECT OriginalTraceId FROM replays WHERE ReplayId = {replay_id:String} LIMIT 1
