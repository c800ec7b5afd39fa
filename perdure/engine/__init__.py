"""The composition root: settings, and one open store with everything that works on it."""
