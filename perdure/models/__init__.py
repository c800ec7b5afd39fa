"""The only place from which perdure speaks to a server, and only to one that a setting names."""
