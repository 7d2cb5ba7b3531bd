"""Answers to the exercises of each chapter, by the id of the answer cell.

RIGHT: exercise → style → the text of the cell. Every one earns full marks.
WRONG: exercise → what is wrong → (the claims it loses, separated by spaces; the text of the cell).
PAIRS: exercise → (misconception, misconception) → the text of a cell that makes both mistakes in one function.
EQUIVALENT: exercise → mutant of the solution ("line before → line after") → why it computes the same.
"""
