"""One run of the Gibbs family: its set-up, herding weights, blocks, start and progress."""
