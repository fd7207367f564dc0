"""`shoal train`: data-parallel training of known models on real data, with every second accounted for."""
