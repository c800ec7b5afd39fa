"""The vault: secrets under a key of their own."""
