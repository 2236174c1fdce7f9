"""The workshop: the only room that changes anything."""
