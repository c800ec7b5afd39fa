"""The pages, a module each: what it shows, and what its buttons do."""
