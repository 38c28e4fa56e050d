"""The inference backends, a file each."""
