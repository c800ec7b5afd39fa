"""The same memory on PostgreSQL: the statements of the store, run on another engine."""
