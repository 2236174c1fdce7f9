"""The gallery: reports become characters."""
