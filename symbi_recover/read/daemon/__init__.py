"""What the Docker daemon and the kernel answer, asked without changing anything."""
