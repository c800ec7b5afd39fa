"""One small module per host."""
