"""The reading room: opens evidence without changing it, and judges it."""
