"""Who said what: a message becomes parts, each with its author."""
