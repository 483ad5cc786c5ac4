"""Methods that publish a table, one paper a file."""
