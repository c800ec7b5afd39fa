"""Vector indexes: derived from the truth, rebuilt at will."""
