"""The tables of the guide for instructors on what goes wrong in submissions, from the figures in faults.json."""

KINDS = {
    "honest": "honest work",
    "damage": "damaged files",
    "runtime": "code that misbehaves",
    "cheat": "cheating",
}
GRADERS = {"ours": "this course", "stock": "nbgrader"}
PLACES = {
    "gradebook": "the gradebook",
    "solutions": "the solutions",
    "submission": "another submission",
    "environment": "your environment",
    "home": "your home folder",
    "server": "a server",
    "abstract": "a server's socket",
}


class Outcome:
    """What became of one submission: its points (None: not graded) and those that were due, secrets, other grades."""

    def __init__(self, row, grader):
        theirs = row["stock"] or {}
        self.run = grader == "ours" or bool(theirs)
        self.points = row["ours"] if grader == "ours" else theirs.get("points")
        self.secrets = row["ours_secrets"] if grader == "ours" else theirs.get("secrets", [])
        self.others = 0 if grader == "ours" else theirs.get("others_changed", 0)
        self.due = row["right"]
        more = (self.points or 0) - self.due if self.run else 0
        self.lost, self.gained = max(-more, 0), max(more, 0)
        self.right = self.run and self.points == self.due and not self.secrets and not self.others

    def __str__(self):
        """The words of a table's cell, bold where it is not as it should be."""
        if not self.run:
            return "not run"
        words = "not graded" if self.points is None else f"{self.points:g}"
        if self.lost or self.gained:
            words += f", not {self.due:g}"
        if self.secrets:
            words += "; reads " + ", ".join(PLACES[place] for place in self.secrets)
        if self.others:
            words += f"; changes {self.others} other grades"
        return words if self.right else f"**{words}**"


def of(figures, grader, kind=None):
    """The outcomes of the submissions of a kind, or of all, that a grader was given."""
    rows = figures["faults"].values()
    return [each for row in rows if kind in (None, row["kind"]) and (each := Outcome(row, grader)).run]


def total(outcomes, what):
    """The sum of points `lost` or `gained`, or the number of `secrets`, in words."""
    found = (getattr(outcome, what) for outcome in outcomes)
    return f"{sum(len(each) if isinstance(each, list) else each for each in found):g}"


def summary(figures):
    """By kind and grader: honest points lost, points gained, secrets read."""
    rows = ["| | honest points lost | points gained | secrets read |", "|---|--:|--:|--:|"]
    for kind, words in KINDS.items():
        for grader, name in GRADERS.items():
            found = of(figures, grader, kind)
            numbers = " | ".join(total(found, what) for what in ("lost", "gained", "secrets"))
            rows.append(f"| {words} ({len(found)}), {name} | {numbers} |")
    return "\n".join(rows)


def details(figures, kind):
    """Each submission of a kind: what was done, and the points that each gave."""
    rows = ["| submission | this course | nbgrader |", "|---|---|---|"]
    for row in figures["faults"].values():
        if row["kind"] == kind:
            says = row["says"] + (" (nothing tells it from honest work)" if row["undetectable"] else "")
            rows.append(f"| {says} | {Outcome(row, 'ours')} | {Outcome(row, 'stock')} |")
    return "\n".join(rows)
