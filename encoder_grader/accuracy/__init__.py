"""How often the grader is right, measured on answers whose worth is known: `make accuracy`."""
