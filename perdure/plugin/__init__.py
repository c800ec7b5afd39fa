"""The composition root: settings, the memory, its plugin object and its extensions."""
