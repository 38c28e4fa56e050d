"""Checked arrays, atomic files, seeds and the grammar of options: what every room above stands on."""
