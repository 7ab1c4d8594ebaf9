-- How many spans of a trace have been received, whether or not they were assembled.
SELECT count() AS Spans
FROM spans
WHERE SampleKey = {sample_key:UInt64} AND TraceId = {trace_id:String}
