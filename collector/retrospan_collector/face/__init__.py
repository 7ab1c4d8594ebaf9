"""ClickHouse's HTTP interface over the embedded engine, for this machine's other processes."""
