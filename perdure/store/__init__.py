"""The truth (SQLite) and what is derived from it (vector indexes)."""
