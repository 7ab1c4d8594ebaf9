"""The store: connection, schema, migrations, the embedded engine."""
