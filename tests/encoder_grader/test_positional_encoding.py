"""The exercises of chapter 2: right answers of every style pass, wrong ones lose what is wrong and are named."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch import nn

from encoder_grader.checking import verdict_on
from encoder_grader.collect import collect
from encoder_grader.exercise import exercises, find
from encoder_grader.judge import judge
from encoder_lib.positional_encoding import SinusoidalPositionalEncoding, sinusoidal_table
from tests.encoder_grader.costs import assert_costs_what_is_wrong_and_is_named, assert_every_cost_is_stated

SEEDS = (0, 1, 2017)


def verdict(name: str, source: str = "", seed: int = SEEDS[0], **answer):
    """The verdict on answers given as objects, as the text of a cell, or both."""
    namespace = {"math": math, "np": np, "torch": torch, "nn": nn, "Tensor": torch.Tensor, **answer}
    exec(source, namespace)
    return verdict_on(f"positional_encoding.{name}", namespace, seed)


# --- right answers ------------------------------------------------------------------------------------------------

TABLES = {
    "loops": """
def sinusoidal_table(num_positions, d_model):
    table = torch.zeros(num_positions, d_model)
    for pos in range(num_positions):
        for column in range(d_model):
            angle = pos / 10000 ** ((column - column % 2) / d_model)
            table[pos, column] = math.cos(angle) if column % 2 else math.sin(angle)
    return table
""",
    "float32 angles through exp and log, as the notes have it": """
def sinusoidal_table(num_positions, d_model):
    position = torch.arange(num_positions).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    pe = torch.zeros(num_positions, d_model)
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term[: d_model // 2])
    return pe
""",
    "a cosine is a sine a quarter turn ahead": """
def sinusoidal_table(num_positions, d_model):
    column = torch.arange(d_model)
    frequency = 10000.0 ** -(2 * (column // 2) / d_model)
    return torch.sin(torch.outer(torch.arange(num_positions).double(), frequency.double()) + math.pi / 2 * (column % 2))
""",
    "NumPy": """
def sinusoidal_table(num_positions, d_model):
    angle = np.arange(num_positions)[:, None] / 10000 ** (np.arange(0, d_model + 1, 2)[None] / d_model)
    both = np.empty((num_positions, 2 * angle.shape[1]), np.float32)
    both[:, ::2], both[:, 1::2] = np.sin(angle), np.cos(angle)
    return both[:, :d_model]
""",
    "half precision at the end": """
def sinusoidal_table(num_positions, d_model):
    i = torch.arange(d_model) // 2
    angle = torch.arange(num_positions).unsqueeze(-1) / torch.pow(torch.tensor(10000.0), 2 * i / d_model)
    return torch.where(torch.arange(d_model) % 2 == 0, torch.sin(angle), torch.cos(angle)).half()
""",
    "complex rotation": """
def sinusoidal_table(num_positions, d_model):
    pairs = (d_model + 1) // 2
    turn = torch.polar(torch.ones(pairs).double(), 10000 ** (-2 * torch.arange(pairs).double() / d_model))
    powers = torch.stack([turn ** p for p in range(num_positions)])
    return torch.stack([powers.imag, powers.real], -1).reshape(num_positions, -1)[:, :d_model]
""",
}

SHIFTS = {
    "entry by entry": """
def shift_matrix(offset, d_model):
    if d_model % 2: raise ValueError(d_model)
    m = torch.zeros(d_model, d_model)
    for i in range(d_model // 2):
        b = offset / 10000 ** (2 * i / d_model)
        m[2 * i, 2 * i] = m[2 * i + 1, 2 * i + 1] = math.cos(b)
        m[2 * i + 1, 2 * i], m[2 * i, 2 * i + 1] = math.sin(b), -math.sin(b)
    return m
""",
    "the exponential of a skew matrix": """
def shift_matrix(offset, d_model):
    assert_even = d_model // 2 * 2 == d_model
    if not assert_even: raise ValueError('odd')
    w = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    skew = torch.block_diag(*[torch.tensor([[0, -x], [x, 0]], dtype=torch.float64) for x in w.tolist()])
    return torch.linalg.matrix_exp(offset * skew)
""",
    "complex numbers": """
def shift_matrix(offset, d_model):
    if d_model % 2: raise ValueError('odd')
    rows = torch.eye(d_model, dtype=torch.float64).unflatten(1, (-1, 2)).flip(-1).contiguous()
    angle = offset * 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    turned = torch.view_as_complex(rows) * torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(turned).flip(-1).flatten(1)
""",
    "NumPy": """
def shift_matrix(offset, d_model):
    if d_model % 2 != 0: raise ValueError('odd')
    b = offset * 10000.0 ** (-np.arange(0, d_model, 2) / d_model)
    m = np.diag(np.repeat(np.cos(b), 2))
    step = np.zeros(d_model - 1); step[::2] = np.sin(b)
    return m - np.diag(step, 1) + np.diag(step, -1)
""",
}

MODULES = {
    "index by arange, dropout as a function": """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.p, self.max_len = dropout, max_len
        self.register_buffer('pe', sinusoidal_table(max_len, d_model), persistent=False)
    def forward(self, x):
        if x.shape[1] > self.max_len: raise ValueError((x.shape[1], self.max_len))
        rows = self.pe[torch.arange(x.shape[1], device=self.pe.device)]
        return nn.functional.dropout(x + rows, self.p, self.training)
""",
    "a leading axis, float64": """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer('pe', sinusoidal_table(max_len, d_model).double()[None])
    def forward(self, x):
        seq = x.size(1)
        if not seq <= self.pe.size(1): raise ValueError(seq)
        return self.dropout(x + self.pe[:, :seq])
""",
    "a frozen embedding": """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.rows = nn.Embedding.from_pretrained(sinusoidal_table(max_len, d_model), freeze=True)
        self.dropout = nn.Dropout(dropout)
    def forward(self, x):
        if x.shape[1] > self.rows.num_embeddings: raise ValueError('too long')
        places = torch.arange(x.shape[1]).to(self.rows.weight.device)
        return self.dropout(x + self.rows(places).unsqueeze(0))
""",
    "the mask of dropout drawn by hand, an error of one's own": """
class TooLong(ValueError): pass
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.dropout = dropout
        self.register_buffer('pe', sinusoidal_table(max_len, d_model))
    def forward(self, x):
        if len(self.pe) < x.shape[1]: raise TooLong('too long')
        y = torch.stack([sequence + self.pe[:x.shape[1]] for sequence in x])
        if self.training and self.dropout:
            y = torch.where(torch.rand(y.shape) < self.dropout, 0, y / (1 - self.dropout))
        return y
""",
}

LEARNED = {
    "a parameter": """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(max_len, d_model))
        nn.init.normal_(self.table, 0, 0.02)
        self.dropout = nn.Dropout(dropout)
    def forward(self, x):
        if x.shape[1] > len(self.table): raise ValueError('too long')
        return self.dropout(x + self.table[None, :x.shape[1]].expand(len(x), -1, -1))
""",
    "an embedding under another name": """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.positions, self.dropout = nn.Embedding(max_len, d_model), nn.Dropout(dropout)
        self.positions.weight.data.normal_(std=0.02)
    def forward(self, x):
        if x.shape[1] > self.positions.num_embeddings: raise ValueError('too long')
        return self.dropout(x + self.positions(torch.arange(x.shape[1])))
""",
    "a leading axis, with load_reference": """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(max_len, d_model))
        self.p = dropout
    def load_reference(self, weights):
        self.table.data = weights['table'].clone()
    def forward(self, x):
        batch, seq, d_model = x.shape
        if seq > self.table.shape[0]: raise ValueError('too long')
        total = torch.einsum('bsd,sd->bsd', x, torch.ones(seq, d_model)) + self.table[:seq]
        return nn.functional.dropout(total, self.p, training=self.training)
""",
    "truncated at four standard deviations, float64": """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_len, d_model, dtype=torch.float64))
        nn.init.trunc_normal_(self.table, std=0.02, a=-0.08, b=0.08)
        self.dropout = nn.Dropout(dropout)
    def forward(self, x):
        if x.shape[1] > self.table.shape[0]: raise ValueError('too long')
        rows = [x[:, p] + self.table[p] for p in range(x.shape[1])]
        return self.dropout(torch.stack(rows, dim=1))
""",
}

COUNTS = {
    "math": """
shape_of_table, fixed_parameters, learned_parameters = (196, 512), 0, 100352
def wavelength(pair, d_model): return 2 * math.pi * 10000 ** (2 * pair / d_model)
def dot_product(distance, d_model):
    return sum(math.cos(distance / 10000 ** (2 * i / d_model)) for i in range(d_model // 2))
def slow_pairs(num_positions, d_model):
    return sum(1 for i in range(d_model // 2) if wavelength(i, d_model) > num_positions)
""",
    "torch": """
shape_of_table, fixed_parameters, learned_parameters = torch.Size([196, 512]), 0, torch.tensor(100352)
def wavelength(pair, d_model): return torch.tensor(2 * math.pi) * 10000 ** (2 * pair / d_model)
def dot_product(distance, d_model):
    return torch.cos(distance * 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)).sum()
def slow_pairs(num_positions, d_model):
    return (2 * math.pi * 10000.0 ** (torch.arange(0, d_model, 2) / d_model) > num_positions).sum()
""",
    "NumPy": """
shape_of_table, fixed_parameters, learned_parameters = [196, 512], np.int64(0), np.int64(196) * 512
def wavelength(pair, d_model): return np.float64(2 * np.pi) * 10000 ** (2 * pair / d_model)
def dot_product(distance, d_model):
    return np.cos(distance * 10000.0 ** (-np.arange(0, d_model, 2) / d_model)).sum()
def slow_pairs(num_positions, d_model):
    return np.count_nonzero(2 * np.pi * 10000.0 ** (np.arange(0, d_model, 2) / d_model) > num_positions)
""",
    "by way of the table, and of a logarithm": """
shape_of_table, fixed_parameters, learned_parameters = (196, 512), 0, 196 * 512
def wavelength(pair, d_model): return math.exp(math.log(2 * math.pi) + 2 * pair / d_model * math.log(10000))
def dot_product(distance, d_model):
    rows = sinusoidal_table(distance + 1, d_model)
    return float(rows[0] @ rows[-1])
def slow_pairs(num_positions, d_model):
    first = math.log(num_positions / (2 * math.pi), 10000) * d_model / 2
    return d_model // 2 - max(0, math.floor(first) + 1)
""",
}

STYLES = {
    "sinusoidal_table": TABLES,
    "shift_matrix": SHIFTS,
    "sinusoidal_encoding": MODULES,
    "learned_encoding": LEARNED,
    "counts": COUNTS,
}
RIGHT = [
    pytest.param(exercise, source, id=f"{exercise}: {style}")
    for exercise, styles in STYLES.items()
    for style, source in styles.items()
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exercise, source", RIGHT)
def test_right_answer_of_any_style_gets_full_marks(exercise, source, seed):
    given = {} if exercise == "sinusoidal_table" else {"sinusoidal_table": sinusoidal_table}
    outcome = verdict(exercise, source, seed, **given)
    assert outcome.points == outcome.maximum, outcome


# --- wrong answers ------------------------------------------------------------------------------------------------

# what each misconception leaves of the points, and the claims it costs
COST = {
    "sinusoidal_table": {
        "swapped": {"layout", "odd"},  # the column left over is then a cosine
        "halves": {"layout"},
        "starts_at_1": {"start"},
        "i_for_two_i": {"frequencies"},
        "doubled_twice": {"frequencies"},
        "last_pair_10000": {"frequencies"},
        "base_1000": {"frequencies"},
        "multiplied": {"layout", "frequencies"},  # then the pairs do not go from fast to slow
        "own_exponents": {"frequencies"},
        "note_002": {"odd"},
        "cosine_last": {"odd"},
        "empty_last": {"odd"},
        "one_column_less": {"odd"},
    },
    "shift_matrix": {  # whatever is wrong with a shift by k, it does not move the rows by k
        "backwards": {"moved"},
        "reflection": {"moved", "undone"},
        "sines_on_diagonal": {"angles", "moved", "undone"},
        "halves": {"blocks", "moved"},
        "i_for_two_i": {"angles", "moved"},
        "doubled_twice": {"angles", "moved"},
        "base_1000": {"angles", "moved"},
        "one_angle": {"angles", "moved"},
        "one_step": {"angles", "moved", "undone"},
        "distance_only": {"undone"},
        "odd_let_through": {"odd"},
    },
    "sinusoidal_encoding": {
        "along_batch": {"positions"},
        "starts_at_1": {"positions"},
        "one_row": {"positions"},
        "multiplied": {"positions", "added"},
        "scaled": {"added"},
        "parameter": {"buffer"},
        "attribute": {"buffer"},
        "unchecked": {"too_long"},
        "full_refused": {"too_long"},
        "clamped": {"too_long"},
        "wrapped": {"too_long"},
        "dropout_on_table": {"training"},
        "dropout_on_x": {"training"},
        "no_dropout": {"training"},
        "unscaled_dropout": {"training"},
        "dropout_always": {"evaluation"},
    },
    "learned_encoding": {
        "zeros": {"initialised"},
        "default_init": {"initialised"},
        "std_is_variance": {"initialised"},
        "uniform": {"initialised"},
        "buffer": {"gradients"},
        "along_batch": {"positions", "gradients"},  # a gradient goes where the row was used
        "one_row": {"positions", "gradients"},
        "multiplied": {"positions", "gradients"},
        "clamped": {"too_long"},
        "wrapped": {"too_long"},
        "cut": {"too_long"},
        "unchecked": {"too_long"},
        "full_refused": {"too_long"},
        "dropout_on_table": {"dropout"},
        "no_dropout": {"dropout"},
        "dropout_always": {"dropout"},
    },
    "counts": {
        "block_length": {"prediction"},
        "table_counted": {"prediction"},
        "one_row_learned": {"prediction"},
        "one_number_each": {"prediction"},
        "without_two_pi": {"wavelength", "slow_pairs"},
        "column_for_pair": {"wavelength", "slow_pairs"},
        "columns_counted": {"slow_pairs"},
        "fast_counted": {"slow_pairs"},
        "every_column_1": {"dot_product"},
        "sines": {"dot_product"},
        "divided_by_width": {"dot_product"},
    },
}


def test_every_misconception_has_its_cost_stated_here():
    assert_every_cost_is_stated("positional_encoding", COST)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exercise, misconception", [(e, m) for e, cost in COST.items() for m in cost])
def test_misconception_costs_what_is_wrong_and_is_named(exercise, misconception, seed):
    claims = COST[exercise][misconception]
    assert_costs_what_is_wrong_and_is_named(f"positional_encoding.{exercise}", misconception, claims, seed)


@pytest.mark.parametrize("mistake", COST["sinusoidal_table"])
def test_a_table_that_is_wrong_already_costs_nothing_more_in_the_module(mistake):
    wrong = next(m for m in find("positional_encoding.sinusoidal_table").misconceptions if m.name == mistake)
    outcome = verdict("sinusoidal_encoding", MODULES["a leading axis, float64"], **wrong.answer)
    assert outcome.points == outcome.maximum, outcome


def test_a_module_with_a_table_of_its_own_does_not_need_the_function_before():
    source = MODULES["a leading axis, float64"].replace("sinusoidal_table(", "table(")
    outcome = verdict("sinusoidal_encoding", source, table=sinusoidal_table)
    assert outcome.points == outcome.maximum, outcome


# an answer of no known kind → what is true of it nevertheless
SOMETHING_ELSE = {
    "straight lines": (
        "sinusoidal_table",
        "def sinusoidal_table(n, d): return torch.arange(n)[:, None].expand(n, d) / n",
        set(),
    ),
    "negative sines": (
        "sinusoidal_table",
        "def sinusoidal_table(n, d): return table(n, d) * (-1.0) ** (torch.arange(d) + 1)",
        {"start", "frequencies", "odd"},
    ),
    "slow pairs first": (
        "sinusoidal_table",
        "def sinusoidal_table(n, d): return table(n, d + d % 2).unflatten(1, (-1, 2)).flip(1).flatten(1)[:, :d]",
        {"start", "frequencies", "odd"},
    ),
    "no shift at all": ("shift_matrix", "def shift_matrix(offset, d): return torch.eye(d)", set()),
    "turned by half a turn more": (
        "shift_matrix",
        """
def shift_matrix(offset, d):
    if d % 2: raise ValueError
    b = (offset * 10000.0 ** (-torch.arange(0, d, 2) / d)).tolist()
    return -torch.block_diag(*[torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]]) for a in b])
""",
        {"blocks", "odd"},
    ),
    "x as it came": (
        "sinusoidal_encoding",
        """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len, dropout): super().__init__()
    def forward(self, x): return x
""",
        {"added", "buffer", "evaluation"},
    ),
}


@pytest.mark.parametrize("what", SOMETHING_ELSE)
def test_an_answer_of_no_known_kind_keeps_only_what_is_true_of_it(what):
    exercise, source, holds = SOMETHING_ELSE[what]
    outcome = verdict(exercise, source, table=sinusoidal_table)
    assert {result.claim for result in outcome.results if result.holds} == holds, outcome


ZEROS = {
    "sinusoidal_table": "def sinusoidal_table(n, d): return torch.zeros(n, d)",
    "shift_matrix": "def shift_matrix(offset, d): return torch.zeros(d, d)",
    "sinusoidal_encoding": """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len, dropout):
        super().__init__(); self.table = nn.Parameter(torch.zeros(max_len, d_model))
    def forward(self, x): return torch.zeros_like(x)
""",
    "learned_encoding": """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout):
        super().__init__(); self.table = nn.Parameter(torch.zeros(max_len, d_model))
    def forward(self, x): return torch.zeros_like(x)
""",
    "counts": """
shape_of_table, fixed_parameters, learned_parameters = (0, 0), 0, 0
def wavelength(pair, d_model): return 0.0
def dot_product(distance, d_model): return 0.0
def slow_pairs(num_positions, d_model): return 0
""",
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exercise", ZEROS)
def test_zeros_of_the_right_shape_earn_nothing(exercise, seed):
    outcome = verdict(exercise, ZEROS[exercise], seed)
    assert outcome.points == 0, outcome


@pytest.mark.parametrize("exercise", [e.name for e in exercises("positional_encoding")])
def test_nothing_defined_earns_nothing_and_says_what_is_missing(exercise):
    outcome = verdict_on(exercise, {})
    assert outcome.points == 0
    assert "is not defined: run the cell that defines it" in str(outcome)


@pytest.mark.parametrize("exercise", [e.name for e in exercises("positional_encoding")])
def test_verdict_never_shows_the_expected_numbers(exercise):
    """What is right is nowhere in the messages: neither the cat's shape nor its count."""
    entry = find(exercise)
    for misconception in entry.misconceptions:
        text = str(verdict_on(exercise, entry.reference | misconception.answer))
        assert "100352" not in text and "100,352" not in text


def test_a_message_names_the_row_that_a_position_past_the_end_got():
    entry = find("positional_encoding.learned_encoding")
    nameless = dataclasses.replace(entry, misconceptions=())
    plan = entry.challenge(0)
    for name, row in (("clamped", "the last row"), ("wrapped", "row 0"), ("cut", "no row")):
        wrong = next(m for m in entry.misconceptions if m.name == name)
        assert f"position max_len gets {row}" in str(judge(nameless, plan, collect(plan, wrong.answer)))


def test_a_table_along_the_batch_is_not_said_to_end_in_its_last_row():
    """Every position gets the same row there, so "the last row" would be true of any."""

    class AlongBatch(SinusoidalPositionalEncoding):
        def forward(self, x):
            return self.dropout(x + self.table[: x.shape[0], None])

    text = str(verdict_on("positional_encoding.sinusoidal_encoding", {"SinusoidalPositionalEncoding": AlongBatch}))
    assert "the same row as every other position" in text
    assert "share its last row" not in text


@pytest.mark.parametrize("exercise", [e.name for e in exercises("positional_encoding")])
def test_check_does_not_depend_on_the_learners_settings(exercise):
    entry = find(exercise)
    with torch.inference_mode():
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        try:
            outcome = verdict_on(entry.name, dict(entry.reference))
        finally:
            torch.set_default_device(None)
            torch.set_default_dtype(torch.float32)
    assert outcome.points == outcome.maximum, outcome


@pytest.mark.parametrize("exercise", [e.name for e in exercises("positional_encoding")])
def test_sizes_change_with_the_seed(exercise):
    """Or what holds for the local challenge alone would pass the graded one."""
    plans = [find(exercise).challenge(seed) for seed in range(8)]
    assert len({str([step["says"] for step in plan.steps]) for plan in plans}) >= 7
