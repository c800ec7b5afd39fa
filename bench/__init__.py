"""Measurements. Each prints one JSON object with --json."""
