"""What the tests of every chapter ask of its misconceptions, by its table COST: exercise → name → claims."""

from encoder_grader.checking import verdict_on
from encoder_grader.exercise import exercises, find


def assert_every_cost_is_stated(chapter: str, cost: dict[str, dict[str, set[str]]]) -> None:
    assert {e.name.split(".")[1]: {m.name for m in e.misconceptions} for e in exercises(chapter)} == {
        exercise: set(costs) for exercise, costs in cost.items()
    }


def assert_costs_what_is_wrong_and_is_named(name: str, misconception: str, claims: set[str], seed: int) -> None:
    entry = find(name)
    wrong = next(m for m in entry.misconceptions if m.name == misconception)
    outcome = verdict_on(entry.name, entry.reference | wrong.answer, seed)
    failed = {result.claim: result for result in outcome.results if not result.holds}
    assert set(failed) == claims
    gated = {claim.name for claim in entry.claims if set(claim.needs) & set(failed)}
    assert {result.misconception for claim, result in failed.items() if claim not in gated} == {misconception}
    assert str(outcome).count(wrong.says) == 1  # said once, not at every claim it costs
