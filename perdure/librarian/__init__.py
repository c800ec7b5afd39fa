"""The librarian: a language model reads turns at rest, and proposes changes that the user's words prove."""
