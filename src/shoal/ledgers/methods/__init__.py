"""Methods that publish growing tables, one paper a file."""
