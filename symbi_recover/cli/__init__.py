"""The front door: command lines become library calls."""
