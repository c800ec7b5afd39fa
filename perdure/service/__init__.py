"""The helper process of a data folder, and how a client asks it."""
