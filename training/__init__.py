"""Labelled data for a memory model, and what checks it."""
