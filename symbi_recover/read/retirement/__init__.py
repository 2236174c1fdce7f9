"""Gathers the evidence for a retirement and applies the decision table; changes nothing."""
