"""Studies on top of inference: herding, Frank-Wolfe Stein sampling, denoising, and convergence of samplers."""
