"""Work that no turn waits for: in threads of the host's process, and in a worker process beside it."""
