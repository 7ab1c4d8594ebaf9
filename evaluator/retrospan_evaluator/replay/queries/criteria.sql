-- What a run was scored by.
SELECT DISTINCT Name FROM scores WHERE RunId = {run_id:String} ORDER BY Name
