-- The cases of one dataset version, as a run stored them.
SELECT CaseId, Content
FROM cases FINAL
WHERE DatasetVersion = {dataset_version:String} AND CaseId IN {case_ids:Array(String)}
