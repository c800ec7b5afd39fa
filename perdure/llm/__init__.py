"""The optional language model: off until an endpoint is set."""
