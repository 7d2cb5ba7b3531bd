"""Chapter 2: positions."""

import math
from decimal import Decimal, localcontext

import pytest
import torch

from encoder_lib.positional_encoding import (
    LearnedPositionalEncoding,
    SinusoidalPositionalEncoding,
    sinusoidal_table,
)

BATCH, SEQ, D_MODEL, MAX_LEN = 2, 5, 7, 11


# the table


def test_the_table_by_hand():
    table = sinusoidal_table(3, 4, torch.float64)
    assert table[0].tolist() == [0, 1, 0, 1]
    expected = [math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)]  # 10000^(2/4) = 100
    assert table[2].tolist() == pytest.approx(expected, abs=1e-15)


def test_for_odd_width_the_last_column_is_a_sine():
    table = sinusoidal_table(3, 3, torch.float64)
    slow = 2 / 10000 ** (2 / 3)
    assert table[2].tolist() == pytest.approx([math.sin(2), math.cos(2), math.sin(slow)], abs=1e-15)
    assert sinusoidal_table(3, 1).shape == (3, 1)


def test_moving_by_an_offset_rotates_each_pair():
    table = sinusoidal_table(50, 6, torch.float64)
    for i in range(3):
        angle = 13 / 10000 ** (2 * i / 6)
        sine, cosine = math.sin(angle), math.cos(angle)
        rotation = torch.tensor([[cosine, -sine], [sine, cosine]], dtype=torch.float64)
        pairs = table[:, 2 * i : 2 * i + 2]
        torch.testing.assert_close(pairs[:-13] @ rotation, pairs[13:], rtol=0, atol=1e-13)


def exact_sine_and_cosine(position: int, two_i: int, d_model: int) -> tuple[Decimal, Decimal]:
    """sin and cos of position / 10000^(two_i / d_model) by Taylor's series, to 40 digits and more."""
    with localcontext() as context:
        context.prec = 60

        def arctan_of_inverse(n):
            return sum(Decimal((-1) ** k) / ((2 * k + 1) * Decimal(n) ** (2 * k + 1)) for k in range(50))

        pi = 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))  # Machin
        angle = position / (Decimal(10000).ln() * two_i / d_model).exp() % (2 * pi)
        sine = cosine = Decimal(0)
        term = Decimal(1)
        for k in range(80):
            if k % 2 == 0:
                cosine += term if k % 4 == 0 else -term
            else:
                sine += term if k % 4 == 1 else -term
            term = term * angle / (k + 1)
        return sine, cosine


def test_the_witness_knows_values_that_are_known():
    sine, cosine = exact_sine_and_cosine(1, 0, 4)
    assert str(sine)[:32] == "0.841470984807896506652502321630"  # OEIS A049469
    assert str(cosine)[:32] == "0.540302305868139717400936607442"  # OEIS A049470
    assert abs(sum(value**2 for value in exact_sine_and_cosine(100_000, 2, 30)) - 1) < Decimal("1e-50")


@pytest.mark.parametrize("d_model", [30, 31])
def test_at_position_100_000_the_table_is_exact(d_model):
    """To the last bit in float32; in float64 the angle itself is known to 1e-11 only."""
    exact = [value for two_i in range(0, d_model, 2) for value in exact_sine_and_cosine(100_000, two_i, d_model)]
    exact = torch.tensor([float(value) for value in exact[:d_model]], dtype=torch.float64)
    assert torch.equal(sinusoidal_table(100_001, d_model, torch.float32)[-1], exact.float())
    torch.testing.assert_close(sinusoidal_table(100_001, d_model, torch.float64)[-1], exact, rtol=0, atol=2e-11)


def test_the_table_comes_in_the_default_type(dtype):
    assert sinusoidal_table(3, 4).dtype == dtype


def test_bad_sizes_of_the_table_are_named(unchecked):
    with pytest.raises(ValueError, match="num_positions=0 must be"):
        sinusoidal_table(0, 4)
    with pytest.raises(ValueError, match="d_model=-1 must be"):
        sinusoidal_table(3, -1)


# the modules


def test_sinusoids_are_added_to_every_sequence(dtype):
    encoding = SinusoidalPositionalEncoding(D_MODEL, MAX_LEN).eval()
    x = torch.randn(BATCH, SEQ, D_MODEL)
    assert torch.equal(encoding(x), x + sinusoidal_table(SEQ, D_MODEL))


def test_learned_positions_are_added_and_each_learns(dtype):
    encoding = LearnedPositionalEncoding(MAX_LEN, D_MODEL).eval()
    x = torch.randn(BATCH, SEQ, D_MODEL)
    assert torch.equal(encoding(x), x + encoding.table[:SEQ])
    encoding(x).sum().backward()
    assert torch.equal(encoding.table.grad[:SEQ], torch.full((SEQ, D_MODEL), float(BATCH)))
    assert encoding.table.grad[SEQ:].count_nonzero() == 0


def test_learned_positions_start_small():
    assert LearnedPositionalEncoding(101, 103).table.std().item() == pytest.approx(0.02, rel=0.03)


def test_sinusoids_go_on_past_their_table():
    encoding = SinusoidalPositionalEncoding(D_MODEL, max_len=3, dropout=0.0)
    assert torch.equal(encoding(torch.zeros(1, SEQ, D_MODEL))[0], sinusoidal_table(SEQ, D_MODEL))


def test_a_learned_table_ends(unchecked):
    encoding = LearnedPositionalEncoding(3, D_MODEL)
    with pytest.raises(ValueError, match="length 5 is longer than the learned table, max_len=3"):
        encoding(torch.zeros(BATCH, SEQ, D_MODEL))


@pytest.mark.parametrize(
    "encoding", [SinusoidalPositionalEncoding(101, 103, 0.25), LearnedPositionalEncoding(103, 101, 0.25)]
)
def test_dropout_falls_on_the_sum_in_training_only(encoding):
    x = torch.ones(5, 103, 101)
    dropped = encoding.train()(x)
    kept = dropped != 0
    assert 0.73 < kept.float().mean() < 0.77
    full = encoding.eval()(x)
    torch.testing.assert_close(dropped[kept], full[kept] / 0.75)


def test_the_sinusoids_are_a_constant_that_follows_type_and_device():
    encoding = SinusoidalPositionalEncoding(D_MODEL, MAX_LEN)
    assert not list(encoding.parameters())
    assert not encoding.state_dict()
    assert encoding.double().table.dtype == torch.float64
    assert torch.equal(
        encoding.table, sinusoidal_table(MAX_LEN, D_MODEL, torch.float64)
    )  # all digits, not 32 bits' worth
    assert torch.equal(encoding.float().table, sinusoidal_table(MAX_LEN, D_MODEL, torch.float32))
    assert encoding.to("meta").table.is_meta
    assert encoding(torch.empty(BATCH, MAX_LEN + 1, D_MODEL, device="meta")).is_meta


@pytest.mark.parametrize("make", [SinusoidalPositionalEncoding, lambda d, n, p=0.1: LearnedPositionalEncoding(n, d, p)])
def test_bad_arguments_of_the_modules_are_named(unchecked, make):
    with pytest.raises(ValueError, match="d_model=0 must be"):
        make(0, MAX_LEN)
    with pytest.raises(ValueError, match="must be a whole number of at least 1"):
        make(D_MODEL, 0)
    with pytest.raises(ValueError, match="dropout=1.5 must be at least 0 and below 1"):
        make(D_MODEL, MAX_LEN, 1.5)
    with pytest.raises(ValueError, match=r"the last axis of shape \(2, 5, 1\) must have d_model=7 entries"):
        make(D_MODEL, MAX_LEN)(torch.zeros(BATCH, SEQ, 1))
