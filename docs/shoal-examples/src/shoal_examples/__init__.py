"""Plug-ins for Shoal, one of each kind."""
