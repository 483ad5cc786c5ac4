"""From classes to the cells that are published, judged as their readers will find them."""
