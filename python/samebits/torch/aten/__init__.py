"""Rules of ATen operators, for `samebits.torch.recompute`."""
