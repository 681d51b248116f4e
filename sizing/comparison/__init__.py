"""GPUs compared: figure by figure, by workload, and at what speed the dearer one pays."""
