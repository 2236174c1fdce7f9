"""What the evidence proves."""
