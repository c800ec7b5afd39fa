"""Text to vectors: what an embedder is, the default model, and other providers."""
