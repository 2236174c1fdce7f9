"""The translator: bytes to typed values and back, as pure functions."""
