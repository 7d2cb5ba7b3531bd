"""Mutants: a solution with one small thing changed, an operator, a number or a truth value."""

from collections.abc import Iterator

import cosmic_ray.plugins
from cosmic_ray.mutating import mutate_code

from encoder_grader.leaks import MARKERS

BINARY = (
    *("Add_Sub", "Sub_Add", "Mul_Div", "Mul_Add", "Div_Mul", "FloorDiv_Div", "FloorDiv_Mul", "Pow_Mul"),
    *("Mod_FloorDiv", "BitAnd_BitOr", "BitOr_BitAnd"),
)
COMPARISON = (
    *("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is"),
    *("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Lt_Gt", "Gt_Lt", "LtE_GtE", "GtE_LtE"),
)
OPERATORS = (
    "NumberReplacer",
    *(f"ReplaceBinaryOperator_{pair}" for pair in BINARY),
    *(f"ReplaceComparisonOperator_{pair}" for pair in COMPARISON),
    *(f"ReplaceUnaryOperator_Delete_{sign}" for sign in ("Invert", "Not", "USub")),
    *("ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("AddNot", "ZeroIterationForLoop"),
)


def mutants(cell: str) -> dict[str, str]:
    """The mutants of a source notebook's answer cell, by what was changed: "line before → line after".

    Only what the learner writes is changed, the lines between BEGIN SOLUTION and END SOLUTION.
    """
    found = {}
    for operator in OPERATORS:
        for changed in _each(cell, cosmic_ray.plugins.get_operator(f"core/{operator}")()):
            place = _changed_line(cell, changed)
            if place is not None and place not in found:
                found[place] = changed
    return found


def _each(cell: str, operator) -> Iterator[str]:
    occurrence = 0
    while (changed := mutate_code(cell, operator, occurrence)) is not None:
        yield changed
        occurrence += 1


def _changed_line(cell: str, changed: str) -> str | None:
    """What was changed, in words; None where it is not inside a solution."""
    before, after = cell.splitlines(), changed.splitlines()
    differing = [i for i, (one, other) in enumerate(zip(before, after, strict=False)) if one != other]
    if not differing or not _inside_solution(before, differing[0]):
        return None
    first, last = differing[0], differing[-1]
    old, new = (" ".join(" ".join(lines[first : last + 1]).split()) for lines in (before, after))
    repeats = sum(old == " ".join(line.split()) for line in before[:first])
    return f"{old} → {new}" + (f" (occurrence {repeats + 1})" if repeats else "")


def _inside_solution(lines: list[str], number: int) -> bool:
    marks = [match[1] for line in lines[:number] if (match := MARKERS.search(line))]
    return bool(marks) and marks[-1] == "BEGIN"
