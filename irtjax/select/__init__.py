"""Which items to ask: fixed selections and adaptive tests."""
