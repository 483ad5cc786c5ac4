"""Methods that publish streams, one paper a file."""
