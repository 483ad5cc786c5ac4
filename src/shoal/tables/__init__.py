"""One table: published once, by methods that find classes or one recoding for all."""
