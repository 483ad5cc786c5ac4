"""Methods that group people with all of their rows."""
