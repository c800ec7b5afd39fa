"""What programs use: the library, its async twin, administration, tools."""
