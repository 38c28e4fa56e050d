"""Training of taggers: corpus, chain, chains of folds, tables of links, and calibration, in this order."""
