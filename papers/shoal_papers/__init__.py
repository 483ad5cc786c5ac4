"""What Shoal's papers need and no publication does: their comparators, and their experiments."""
