"""The LanceDB table of a large store."""
