"""Named-entity recognition: tagger, skip-chain layer, features, known names, explanations and model files."""
