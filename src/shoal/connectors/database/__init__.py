"""Tables in databases: SQLite by the standard library, PostgreSQL by ADBC (extra `postgres`)."""
