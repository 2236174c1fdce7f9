"""Where evidence lies and how it is opened."""
