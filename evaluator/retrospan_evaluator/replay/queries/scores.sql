-- One criterion of a run, request by request.
SELECT TraceId, Value, Failure
FROM scores FINAL
WHERE RunId = {run_id:String} AND Name = {name:String}
