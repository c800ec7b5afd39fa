"""What memories tell about each other: merged, reflected on, classified, proposed."""
