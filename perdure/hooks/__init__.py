"""The contract with hosts: the hooks, their values, and what a host fires them with."""
