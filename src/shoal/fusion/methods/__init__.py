"""Methods that fuse the tables of several owners, one paper a file."""
