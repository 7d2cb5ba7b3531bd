"""A bug hunt pays for each bug that the learner's test catches, and nothing to a test that fails a right candidate."""

import json

import pytest
import torch

from encoder_grader.bug_hunt import Bug, bug_hunt
from encoder_grader.collect import collect
from encoder_grader.judge import judge


def reference(softmax):
    x = torch.tensor([[1.0, 2.0, 4.0], [100.0, 200.0, 300.0]])
    assert torch.allclose(softmax(x).sum(-1), torch.ones(2))
    assert softmax(x)[0, 2] > softmax(x)[0, 0]


HUNT = bug_hunt(
    "fixture.hunt",
    "Hunt",
    "examine",
    reference,
    right=(lambda x: x.softmax(-1), lambda x: torch.softmax(x, -1), lambda x: x.log_softmax(-1).exp()),
    bugs=(
        Bug("overflow", "large numbers", lambda x: x.exp() / x.exp().sum(-1, keepdim=True)),
        Bug("axis", "which numbers are compared with which", lambda x: x.softmax(0)),
        Bug("sign", "which one wins", lambda x: (-x).softmax(-1)),
    ),
)


def points(examine, seed=0):
    plan = HUNT.challenge(seed)
    verdict = judge(HUNT, plan, collect(plan, {"examine": examine}))
    return verdict.points, {result.claim for result in verdict.results if result.holds}


@pytest.mark.parametrize("seed", range(5))
def test_reference_catches_every_bug(seed):
    assert points(reference, seed) == (3, {"right_passes", "overflow", "axis", "sign"})


def test_each_bug_caught_pays():
    def rows_only(softmax):
        return bool((softmax(torch.ones(2, 3)).sum(-1) - 1).abs().max() < 1e-4)

    assert points(rows_only) == (1, {"right_passes", "axis"})


@pytest.mark.parametrize("examine", [lambda _: False, lambda softmax: 1 / 0, lambda softmax: softmax(3)])
def test_failing_a_right_candidate_earns_nothing(examine):
    assert points(examine) == (0, set())


def test_passing_everything_earns_nothing():
    assert points(lambda _: None) == (0, {"right_passes"})


def test_order_changes_with_the_seed_and_the_plan_tells_nothing():
    orders = {tuple(HUNT.challenge(seed).hidden) for seed in range(10)}
    assert len(orders) > 5
    steps = json.dumps(HUNT.challenge(0).steps)
    assert not any(word in steps for word in ("right", "overflow", "axis", "sign"))
