"""The runbooks are followed to the letter."""
