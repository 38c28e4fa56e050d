"""Studies based on the inference algorithms: herding, Frank-Wolfe Stein sampling, denoising, and convergence."""
