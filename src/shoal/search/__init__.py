"""What several methods share to find classes: segments, distances, lattices, repair, refinement."""
