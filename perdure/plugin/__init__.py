"""The composition root: settings, the library, the plugin, extensions."""
