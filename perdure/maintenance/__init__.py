"""What keeps a store whole: looking, sealing, saving, bringing back, taking in and taking out for good."""
