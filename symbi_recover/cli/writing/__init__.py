"""Commands that change something, each after consent."""
