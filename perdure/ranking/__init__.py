"""Pure functions over plain values: fusing, gates, decay, diversity, budgets."""
