"""Why there is no cage."""


class CannotCage(Exception):
    """This machine cannot cage a notebook: one sentence that says why, and what to set."""
