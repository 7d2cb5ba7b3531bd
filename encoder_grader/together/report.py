"""What `make together` says: a table of the stages, where they part, and what is not there yet."""

import textwrap
from itertools import groupby

from encoder_grader.exercise import exercises
from encoder_grader.together.learner import Learner, Step
from encoder_grader.together.walk import PIECES, chapter_of, place_of

WIDTH = 80


def report(learner: Learner, walks: dict[str, list[Step]]) -> str:
    """The whole text, at most `WIDTH` characters wide."""
    faults = [_wrapped(fault) for fault in learner.faults]
    if len(learner.absent) == len(PIECES):
        return "\n".join([*faults, _wrapped(_nothing_yet(learner))])
    lines = [*faults, ""] if faults else []
    for name, steps in walks.items():
        lines += [_line(name, "shape", "piece", "result"), *_rows(steps), ""]
    if any(step.fed for steps in walks.values() for step in steps):
        lines += [_wrapped("* fed with the reference's own input, so that one mistake does not hide the next")]
        lines += [_wrapped("by its parts: right with the reference's parts inside, and not with yours", "  "), ""]
    mistakes = _mistakes(walks)
    return "\n".join([*lines, *mistakes, *_absent(learner), *([] if mistakes else [_wrapped(_all_the_same(learner))])])


def _rows(steps: list[Step]) -> list[str]:
    """A row for each stage; one for a layer in which all are alike, or as in the layer before."""
    rows, before = [], None
    for layer, group in groupby(steps, key=lambda step: step.stage.layer):
        group = list(group)
        found = [(step.whose, step.reason is None, step.by_parts) for step in group]
        whose = group[0].whose if len({step.whose for step in group}) == 1 else "both"
        results, whole = {_result(step) for step in group}, f"{layer}, its parts and whole"
        if layer and len(results) == 1:
            rows.append(_row(whole, group[0], whose, *results))
        elif layer and found == before:
            rows.append(_row(whole, group[0], whose, "as before *" if group[0].fed else "as before"))
        else:
            rows += [_row(step.stage.title, step, step.whose, _result(step)) for step in group]
        before = found
    return rows


def _row(title: str, step: Step, whose: str, result: str) -> str:
    return _line(f"  {title}", str(tuple(step.stage.handed.output.shape)), whose, result)


def _line(title: str, shape: str, whose: str, result: str) -> str:
    return f"{title:<31}{shape:<17}{whose:<17}{result}".rstrip()


def _result(step: Step) -> str:
    if step.whose != "yours":
        return "–" if step.whose else ""
    if step.reason is None:
        return "the same *" if step.fed else "the same"
    return "they part here" if not step.fed else "by its parts *" if step.by_parts else "differs *"


def _mistakes(walks: dict[str, list[Step]]) -> list[str]:
    """A sentence for each exercise at fault, the first parting first."""
    lines, named = [], set()
    for name, steps in walks.items():
        for step in steps:
            if step.reason is None or step.by_parts or step.exercise in named:
                continue
            where = f"{step.stage.title} ({name[0].lower()}{name[1:]})"
            says = f"They first part at {where}" if not lines else f"They part at {where} too"
            if step.fed:
                says = f"Fed with the reference's own input, {where} differs too"
            calls = "" if step.exercise == PIECES[step.stage.piece] else ", which it calls"
            see = f'See {place_of(step.exercise)}{calls}: check("{step.exercise}").'
            lines.append(_wrapped(f"{says}: {step.reason}. {see}"))
            named.add(step.exercise)
    return lines


def _absent(learner: Learner) -> list[str]:
    lines = []
    for why in ("not written yet", "not there"):
        named = [_asked_for(piece, each.function) for piece, each in learner.absent.items() if each.why == why]
        if named:
            lines.append(_wrapped(f"{why.capitalize()}, so that the reference stands in: {'; '.join(named)}."))
    return lines


def _asked_for(piece: str, stub: str) -> str:
    """A piece and its exercise, or the exercise of the function that it calls and that is a stub."""
    for exercise in exercises(chapter_of(piece)):
        if stub in exercise.reference and exercise.name != PIECES[piece]:
            return f"{piece}, which calls {stub}, {place_of(exercise.name)}"
    return f"{piece}, {place_of(PIECES[piece])}"


def _nothing_yet(learner: Learner) -> str:
    return (
        f"No piece of the encoder is written yet in {learner.folder}. Begin with TokenEmbedding, "
        f"{place_of(PIECES['TokenEmbedding'])}: each piece that you write takes the reference's place here."
    )


def _all_the_same(learner: Learner) -> str:
    own = len(PIECES) - len(learner.absent)
    says = f"What is yours is the same everywhere: {own} of the {len(PIECES)} pieces of the encoder."
    if not learner.absent:
        says = "Every stage is the same: from ids and from pixels to the end, this encoder is your own."
    return f"{says} Fresh weights, dropout and gradients do not show in a single pass: for them there are the checks."


def _wrapped(text: str, indent: str = "") -> str:
    text = " ".join(text.split())  # an error's message may have lines of its own
    lines = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent="  ", **lines)
