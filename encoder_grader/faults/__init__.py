"""A class in which everything goes wrong that can: damaged notebooks, code that misbehaves, and every trick we know.

`submissions` writes it, `run` has it graded by the course and by nbgrader as it comes, and compares.
"""
