-- When the newest request that is not a replay's began; no row when there is none.
SELECT Timestamp
FROM requests
WHERE IsDeleted = 0 AND ({service:String} = '' OR ServiceName = {service:String})
  AND ({run_id:String} = '' OR RunId = {run_id:String})
  AND ({replays:UInt8} = 1 OR NOT startsWith(RunId, 'replay:'))
ORDER BY Timestamp DESC
LIMIT 1
