"""Training of taggers: corpus preparation, folds, the linear chain, tables of links, and calibration."""
