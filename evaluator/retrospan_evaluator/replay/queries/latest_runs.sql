-- The newest test runs, for the message that a run is unknown.
SELECT RunId, max(CreatedAt) AS StartedAt
FROM runs
WHERE Kind = 'run'
GROUP BY RunId
ORDER BY StartedAt DESC
LIMIT 3
