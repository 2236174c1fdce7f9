"""One module per command, each with a tuple `SCENARIOS`; found by `tests.crash.matrix` and `test_scenarios.py`."""
