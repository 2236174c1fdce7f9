"""The vocabulary: pure values, no I/O, no clock."""
