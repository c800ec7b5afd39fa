"""Pure functions over text: cleaning, scripts, normalising, redaction, escaping."""
