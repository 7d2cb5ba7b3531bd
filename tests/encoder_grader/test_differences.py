"""How far apart two quantities are, and how that is said."""

import math

import pytest
import torch

from encoder_grader.differences import difference, distance

WANT = torch.tensor([[1.0, -2.0, 3.0, 0.5], [4.0, 5.0, -6.0, 7.5], [8.0, 9.5, 10.0, -11.0]])
SQUARE = WANT[:, :3]


@pytest.mark.parametrize(
    ("got", "words"),
    [
        (WANT * 1.5, "every number is 1.5 times what it should be"),
        (WANT + 0.25, "every number is off by the same 0.25"),
        (
            WANT * torch.tensor([1.0, 2.0, 4.0])[:, None],
            "along axis 0 the numbers are multiplied by factors from 1 to 4",
        ),
        (WANT * torch.tensor([1.0, 2.0, 3.0, 0.5]), "along axis 1 the numbers are multiplied by factors from 0.5 to 3"),
        (WANT.flip(1), "the numbers are right, but run backwards along axis 1"),
        (WANT.roll(1, 0), "the numbers are right, but moved by one place along axis 0"),
        (WANT.flatten()[torch.tensor([5, 1, 2, 3, 4, 0, 6, 7, 8, 9, 10, 11])].view(3, 4), "but stand in other places"),
        (WANT * torch.tensor([1.0, 0.0, 1.0, 1.0]), "where axis 1 is 1, all the numbers are zero"),
        (WANT + torch.tensor([1.0, 2.0, 3.0])[:, None], "for each place along axis 0 the numbers are off by a number"),
        (WANT + 0.01 * (torch.arange(12).view(3, 4) > 0), "nearly all of the 12 numbers differ, by up to 0.01"),
        (WANT * 0, "all the numbers are zero"),
        (
            WANT + torch.tensor([0, 0, 1.0, 0]) * torch.tensor([[1.0], [2], [5]]),
            "3 of 12 numbers differ, all of them where axis 1 is 2",
        ),
        (WANT + (torch.arange(12).view(3, 4) == 6) * 9, "1 of 12 numbers differ, the first at index (1, 2)"),
        (WANT.masked_fill(WANT == 7.5, math.nan), "1 of 12 numbers differ, the first at index (1, 3)"),
        (WANT[:2], "the shape is (2, 4), but should be (3, 4)"),
    ],
)
def test_a_difference_is_said_by_what_it_is(got, words):
    assert words in difference(got, WANT, 1e-4)


def test_two_axes_that_changed_places():
    assert difference(SQUARE.T, SQUARE, 1e-4) == "the numbers are right, but axes 0 and 1 have changed places"


def test_truth_values_are_no_numbers():
    want = torch.ones(3, 4, dtype=torch.bool).tril()
    assert difference(want.T.new_ones(3, 4), want, 1e-4).startswith("6 of 12 truth values are the wrong way round")
    assert difference(want & False, want, 1e-4) == "everything is False"


@pytest.mark.parametrize(
    ("got", "want", "far"),
    [
        (WANT, WANT, 0),
        (WANT + 0.11, WANT, 0.01),  # of the largest magnitude, 11
        (torch.zeros(2), torch.full((2,), 1e-6), 1e-3),  # of the smallest scale there is
        (torch.tensor([math.inf, 1.0]), torch.tensor([math.inf, 1.0]), 0),
        (torch.tensor([-math.inf, 1.0]), torch.tensor([math.inf, 1.0]), math.inf),
        (torch.tensor([math.nan]), torch.tensor([1.0]), math.inf),
        (WANT[0], WANT, math.inf),
        (2.0, 2.0, 0),
        (1.98, 2.0, 0.01),
        (3, 2, math.inf),
        ("a", "b", math.inf),
        (None, 2.0, math.inf),
        (True, True, 0),
        ((1.0, 1.98), (1.0, 2.0), 0.01),
        ({"a": 1, "b": 1.98}, {"b": 2.0, "a": 1}, 0.01),
        ({"a": 1}, {"b": 1}, math.inf),
        ((), (), 0),
    ],
)
def test_a_distance_is_a_share_of_the_largest_magnitude(got, want, far):
    assert distance(got, want) == pytest.approx(far, abs=1e-6)
    assert (difference(got, want, 1e-4) is None) == (far <= 1e-4)


def test_a_factor_is_not_read_off_where_nothing_should_be():
    want = torch.cat([WANT, torch.zeros(1, 4)])
    got = want * torch.tensor([1.0, 2.0, 4.0, 1.0])[:, None]
    assert difference(got, want, 1e-4) == "along axis 0 the numbers are multiplied by factors from 1 to 4"


def test_what_a_value_is_stands_before_what_is_wrong_with_it():
    want = {"the rows": WANT, "their number": 3.0, "and more": 1048576}
    got = {"the rows": WANT, "their number": 10 / 3, "and more": 1}
    assert difference(got, want, 1e-4) == "their number: 3.33333 is not right"
    got = {"the rows": WANT, "their number": 3.0, "and more": 1050624.0}
    assert difference(got, want, 1e-4) == "and more: 1050624 is not right"
    assert difference(want | {"the rows": WANT * 2}, want, 1e-4).startswith("the rows: every number is 2")
