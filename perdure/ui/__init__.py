"""The local page: somebody's memory in their browser, for them alone."""
