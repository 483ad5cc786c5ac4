"""The nouns: immutable types that every other floor speaks in."""
