CREATE TABLE IF NOT EXISTS schema_version
(
    Version UInt32,
    Name String,
    AppliedAt DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = ReplacingMergeTree(AppliedAt)
ORDER BY Version
