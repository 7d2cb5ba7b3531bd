"""The exercises of chapter 2, positional encoding."""

import math

import torch
from torch import Tensor, nn

from encoder_grader.differences import distance, in_figures
from encoder_grader.exercise import Claim, Exercise, Misconception
from encoder_grader.judge import Answers, CannotJudge, named
from encoder_grader.plan import Plan, Ref, pick
from encoder_lib.positional_encoding import LearnedPositionalEncoding, SinusoidalPositionalEncoding, sinusoidal_table

THE_TABLE, WAVELENGTHS = "“The table” in chapter 2", "“Wavelengths” in chapter 2"
ODD_WIDTHS, ROTATION = "“Odd widths” in chapter 2", "“A shift is a rotation” in chapter 2"
MODULE, LEARNED = "“The module” in chapter 2", "“Learned positions” in chapter 2"
DISTANCE, COUNTING = "“Only the distance counts” in chapter 2", "“Counting” in chapter 2"
WRONG = "“What goes wrong” in chapter 2"

# --- 1. the table ----------------------------------------------------------------------------------------------------

LAGS = (1, 3, 8, 16, 24)  # steps over which a column's frequency is measured: the slow ones need the long steps
OF_FREQUENCIES = 4e-5  # tolerance: float32 angles err by 3e-6, a base of 10001 by 7e-5


def _table_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan()
    half = pick(draw, 4, 6)  # this or half + 3 is odd: d_model is a multiple of 4 at one width at most
    plan.call("sinusoidal_table", pick(draw, 58, 62), 2 * half, label="table")
    plan.call("sinusoidal_table", pick(draw, 61, 64), 2 * half + 6, label="wider")
    plan.call("sinusoidal_table", 1, 2 * half, label="one position")
    plan.call("sinusoidal_table", pick(draw, 40, 60), 2 * pick(draw, 4, 7) + 1, label="odd")
    return plan


def _both_tables(of_one):
    return lambda a: (of_one(a["table"]), of_one(a["wider"]))


def _row_0(table: Tensor) -> Tensor:
    return table[0].sort().values  # as many zeros as ones, wherever they stand


def _start(table: Tensor) -> tuple:
    """Whether row 0 is that of position 1, told from the fastest pair alone, the same for every base; else the row."""
    fastest = (_cosines_of_turns(table)[0] - math.cos(1)).abs() < 1e-3
    ones = torch.tensor([math.cos(1), math.sin(1)], dtype=table.dtype)
    if distance(table[0][fastest].sort().values, ones) < 1e-3:
        return True, _row_0(sinusoidal_table(*table.shape, torch.float64))
    return False, _row_0(table)


def _start_in_words(got: tuple) -> str:
    row = got[0][1]
    zeros, ones = int((row.abs() < 1e-4).sum()), int(((row - 1).abs() < 1e-4).sum())
    return f"row 0 of your table with {len(row)} columns holds {zeros} zeros and {ones} ones"


def _order(table: Tensor) -> tuple:
    """Which columns start high, which start by rising, whether the frequencies fall; columns 2 and on."""
    slow, turns = table[:, 2:], _cosines_of_turns(table)[0].clamp(-1, 1).arccos()
    return slow[0] > 0.5, slow[1] > slow[0], bool((turns[1:] <= turns[:-1] + 0.01).all()), bool(slow.any())


def _layout(table: Tensor) -> tuple:
    """The order, and where nothing else is wrong, all numbers: the first pair's, and the heights of the waves."""
    right = sinusoidal_table(*table.shape, torch.float64)
    sound = all(
        distance(of(table), of(right)) <= tolerance
        for of, tolerance in ((_start, 1e-4), (_frequencies, OF_FREQUENCIES), (_order, 0.0))
    )
    return _order(table), table if sound else right


def _layout_in_words(got: tuple) -> str:
    for (high, rising, falling_off, any_), _ in got:
        table = f"your table with {len(high) + 2} columns"
        if not any_:
            return f"in {table}, all columns but the first two are zero in every row"
        for column, (starts_high, rises) in enumerate(zip(high.tolist(), rising.tolist(), strict=True), 2):
            if starts_high != column % 2:
                how = "high, as a cosine does, where a sine" if starts_high else "low, as a sine does, where a cosine"
                return f"in {table}, column {column} starts {how} belongs"
            if rises == column % 2:
                how = "starts by rising, where a cosine falls" if rises else "does not start by rising, as a sine does"
                return f"in {table}, column {column} {how}"
        if not falling_off:
            return f"in {table}, the pairs do not go from fast to slow"
    return "from column 2 on your columns stand in order: look at the first pair, and at the heights of the waves"


def _cosines_of_turns(table: Tensor) -> Tensor:
    """cos(kω), (lags, d_model), of each column's wave: x(t + k) + x(t − k) = 2 cos(kω) x(t), whatever its phase."""
    found = []
    for k in LAGS:
        middle, sides = table[k:-k], table[2 * k :] + table[: -2 * k]
        found.append((middle * sides).sum(0) / (2 * middle.square().sum(0)).clamp(min=1e-12))
    return torch.stack(found)


def _frequencies(table: Tensor) -> Tensor:
    """The turns of all columns, in whichever order these stand."""
    return _cosines_of_turns(table).sort(descending=True).values


def _frequencies_in_words(got: tuple) -> str:
    right = [_frequencies(sinusoidal_table(64, turns.shape[1], torch.float64)) for turns in got]
    wrong = [distance(turns, want) > OF_FREQUENCIES for turns, want in zip(got, right, strict=True)].index(True)
    width, turns = got[wrong].shape[1], _turns_in_words(got[wrong])
    if turns == _turns_in_words(right[wrong]):
        return f"at d_model={width}, the fastest of your waves may be right, but not all the others"
    return f"at d_model={width}, your waves turn by {turns} radians from one position to the next"


def _turns_in_words(cosines: Tensor) -> str:
    """From the slowest wave to the fastest."""
    turns = cosines[0][cosines[0] != 0].clamp(-1, 1).arccos()  # an empty column does not turn
    if not len(turns):
        return "no"
    # the cosine of a smaller turn is 1 up to rounding
    slowest, fastest = (f"{turn:.2g}" if turn > 0.01 else "less than 0.01" for turn in (turns.min(), turns.max()))
    return fastest if slowest == fastest else f"{slowest} to {fastest}"


def _odd(a: Answers) -> tuple:
    """How many columns of the odd table start low, and how many high; whether the last is filled; and all numbers.

    The numbers count where the columns are as many as they should be, and the even tables right: what is wrong there is
    lost there.
    """
    table = a["odd"]
    first = table[0][table.any(dim=0)]
    low, high = int((first < 0.7).sum()), int((first > 0.7).sum())
    sound = low == high + 1 and all(
        distance(even, sinusoidal_table(*even.shape, torch.float64)) < 1e-4 for even in (a["table"], a["wider"])
    )
    return low, high, bool(table[:, -1].any()), table if sound else sinusoidal_table(*table.shape, torch.float64)


def _odd_in_words(got: tuple) -> str:
    low, high, _, table = got
    width = table.shape[1]
    empty = width - low - high
    if low == high + 1 and not empty:
        return (
            "sines and cosines are as many as they should be, but not all of their numbers are right at an odd d_model"
        )
    return (
        f"at an odd d_model, {width}, {low} of your columns start low, as a sine does, {high} start high, as a "
        "cosine does" + f", and {empty} hold nothing but zeros" * (empty > 0)
    )


def _waves(start=0, exponent=None, base=10000.0, arrange=None, odd=None, multiply=False):
    """A sinusoidal_table with one part replaced; `exponent` gets i and d_model, `arrange` sines and cosines."""

    def table(num_positions, d_model):
        position = torch.arange(start, start + num_positions, dtype=torch.float64)[:, None]
        i = torch.arange((d_model + 1) // 2, dtype=torch.float64)
        divisor = base ** (2 * i / d_model if exponent is None else exponent(i, d_model))
        angles = position * divisor if multiply else position / divisor
        sines, cosines = angles.sin(), angles.cos()
        if d_model % 2 and odd is not None:
            return odd(sines, cosines, d_model).float()
        if arrange is not None:
            return arrange(sines, cosines)[:, :d_model].float()
        return _interleaved(sines, cosines)[:, :d_model].float()

    return table


def _interleaved(even: Tensor, odd: Tensor) -> Tensor:
    return torch.stack([even, odd], dim=-1).flatten(1)


def _halves(sines: Tensor, cosines: Tensor) -> Tensor:
    return torch.cat([sines, cosines], dim=1)


def _own_exponents(num_positions: int, d_model: int) -> Tensor:
    """Each column a frequency of its own: the cosine does not share its sine's."""
    position = torch.arange(num_positions, dtype=torch.float64)[:, None]
    column = torch.arange(d_model)
    angles = position / 10000.0 ** (column / d_model)
    return torch.where(column % 2 == 0, angles.sin(), angles.cos()).float()


def _note_002(num_positions: int, d_model: int) -> Tensor:
    position = torch.arange(num_positions).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    table = torch.zeros(num_positions, d_model)
    table[:, 0::2] = torch.sin(position * div_term)
    table[:, 1::2] = torch.cos(position * div_term)
    return table


def _cosine_last(sines: Tensor, cosines: Tensor, d_model: int) -> Tensor:
    table = _interleaved(sines, cosines)
    return torch.cat([table[:, : d_model - 1], cosines[:, -1:]], dim=1)


def _empty_last(sines: Tensor, cosines: Tensor, d_model: int) -> Tensor:
    table = _interleaved(sines, cosines)[:, :d_model].clone()
    table[:, -1] = 0
    return table


def _one_column_less(sines: Tensor, cosines: Tensor, d_model: int) -> Tensor:
    return _interleaved(sines, cosines)[:, : d_model - 1]


SINUSOIDAL_TABLE = Exercise(
    name="positional_encoding.sinusoidal_table",
    title="The sinusoidal table",
    challenge=_table_challenge,
    reference={"sinusoidal_table": sinusoidal_table},
    claims=(
        Claim(
            "start",
            1,
            "row 0 belongs to position 0: its sines are 0, its cosines 1",
            lambda a: (_start(a["table"]), _start(a["wider"]), a["one position"].shape),
            reason=_start_in_words,
            see=THE_TABLE,
        ),
        Claim(
            "layout",
            2,
            "sine and cosine alternate, sine first, and the pairs go from fast to slow",
            _both_tables(_layout),
            reason=_layout_in_words,
            picture=lambda a: a["table"],
            see=THE_TABLE,
        ),
        Claim(
            "frequencies",
            2,
            "pair i turns by 10000^(−2i/d_model) radians from each position to the next",
            _both_tables(_frequencies),
            tolerance=OF_FREQUENCIES,
            reason=_frequencies_in_words,
            picture=lambda a: a["table"],
            see=WAVELENGTHS,
        ),
        Claim(
            "odd",
            1,
            "an odd d_model leaves one sine without a cosine",
            _odd,
            reason=_odd_in_words,
            see=ODD_WIDTHS,
        ),
    ),
    misconceptions=(
        Misconception(
            "swapped",
            "you swapped sine and cosine",
            THE_TABLE,
            {"sinusoidal_table": _waves(arrange=lambda sines, cosines: _interleaved(cosines, sines))},
        ),
        Misconception(
            "halves",
            "you put all sines into the first half and all cosines into the second: here they alternate",
            WRONG,
            {"sinusoidal_table": _waves(arrange=_halves)},
        ),
        Misconception(
            "starts_at_1",
            "your first row is that of position 1: positions count from 0",
            THE_TABLE,
            {"sinusoidal_table": _waves(start=1)},
        ),
        Misconception(
            "i_for_two_i",
            "the factor 2 is missing in your exponent: i counts pairs, and the exponent is 2i/d_model",
            WRONG,
            {"sinusoidal_table": _waves(exponent=lambda i, d_model: i / d_model)},
        ),
        Misconception(
            "doubled_twice",
            "your exponent is 4i/d_model, the 2 counted twice: once in the steps of your range, once in the formula",
            WRONG,
            {"sinusoidal_table": _waves(exponent=lambda i, d_model: 4 * i / d_model)},
        ),
        Misconception(
            "last_pair_10000",
            "you spread the exponents from 0 to 1: they end at 1 − 2/d_model, and the slowest pair stays below 10000",
            WAVELENGTHS,
            {"sinusoidal_table": _waves(exponent=lambda i, d_model: i / i[-1])},
        ),
        Misconception(
            "base_1000",
            "your waves slow down towards 1000, not 10000",
            WAVELENGTHS,
            {"sinusoidal_table": _waves(base=1000.0)},
        ),
        Misconception(
            "multiplied",
            "you multiplied the position by 10000^(2i/d_model): it is divided by it",
            WAVELENGTHS,
            {"sinusoidal_table": _waves(multiply=True)},
        ),
        Misconception(
            "own_exponents",
            "each of your columns has a frequency of its own: a cosine has the frequency of the sine before it",
            THE_TABLE,
            {"sinusoidal_table": _own_exponents},
        ),
        Misconception(
            "note_002",
            "for an odd d_model there is one cosine fewer than there are sines",
            ODD_WIDTHS,
            {"sinusoidal_table": _note_002},
        ),
        Misconception(
            "cosine_last",
            "for an odd d_model your last column is a cosine",
            ODD_WIDTHS,
            {"sinusoidal_table": _waves(odd=_cosine_last)},
        ),
        Misconception(
            "empty_last",
            "for an odd d_model your last column is left empty",
            ODD_WIDTHS,
            {"sinusoidal_table": _waves(odd=_empty_last)},
        ),
        Misconception(
            "one_column_less",
            "for an odd d_model your table lacks its last column",
            ODD_WIDTHS,
            {"sinusoidal_table": _waves(odd=_one_column_less)},
        ),
        Misconception(
            "rounded_up",
            "for an odd d_model your exponents divide by d_model + 1: one more than there are columns",
            ODD_WIDTHS,
            {"sinusoidal_table": _waves(exponent=lambda i, d_model: 2 * i / (d_model + d_model % 2))},
        ),
    ),
)

# --- 2. the shift ----------------------------------------------------------------------------------------------------


def shift_matrix(offset: int, d_model: int) -> Tensor:
    """The matrix that carries the row of each position to the row `offset` positions on."""
    if d_model % 2:
        raise ValueError(f"d_model={d_model} is odd: the last sine has no cosine to turn with")
    angles = offset / 10000.0 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    return _blocks(angles.cos(), -angles.sin(), angles.sin(), angles.cos()).float()


def _blocks(upper_left: Tensor, upper_right: Tensor, lower_left: Tensor, lower_right: Tensor) -> Tensor:
    """The matrix with 2 × 2 blocks along its diagonal."""
    matrix = torch.zeros(2 * len(upper_left), 2 * len(upper_left), dtype=upper_left.dtype)
    even, odd = torch.arange(0, len(matrix), 2), torch.arange(1, len(matrix), 2)
    matrix[even, even], matrix[even, odd] = upper_left, upper_right
    matrix[odd, even], matrix[odd, odd] = lower_left, lower_right
    return matrix


OF_ANGLES = 2e-5  # tolerance: float32 angles err by 1e-6, a base of 10001 by 1e-4


def _shift_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan()
    half = pick(draw, 3, 5)  # this or half + 3 is odd: d_model is a multiple of 4 at one width at most
    for name, offset, d_model in (("narrow", pick(draw, 5, 13), 2 * half), ("wide", pick(draw, 25, 40), 2 * half + 6)):
        for label, by in (("on", offset), ("back", -offset), ("nowhere", 0)):
            plan.call("shift_matrix", by, d_model, label=f"{name} {label}")
        plan.hidden[name] = offset, d_model
    odd = 2 * pick(draw, 3, 6) + 1
    plan.call("shift_matrix", 3, odd, label="odd")
    plan.call("shift_matrix", 4, odd + 2, label="odder")
    return plan


def _of_shifts(quantity, words: str = "shift_matrix({0}, {1})"):
    """The quantity of both sizes; it gets the matrices on, back and nowhere, the offset, and the table."""

    def of_both(a: Answers) -> dict:
        found = {}
        for name in ("narrow", "wide"):
            offset, d_model = a.hidden[name]
            matrices = (a[f"{name} {label}"].double() for label in ("on", "back", "nowhere"))
            table = sinusoidal_table(80, d_model, torch.float64)
            found[words.format(offset, d_model)] = quantity(*matrices, offset, table)
        return found

    return of_both


def _outside(on: Tensor, *_) -> tuple:
    pair = torch.arange(len(on)) // 2
    mixes = not torch.equal(on, on.diagonal().diag())  # sine with cosine, inside a block
    return (on.abs() > 1e-4) & (pair[:, None] != pair), mixes


def _outside_in_words(got: dict) -> str:
    for call, (pattern, _) in got.items():
        if pattern.any():
            return f"{int(pattern.sum())} entries of {call} outside the blocks are not 0"
    call = next(call for call, (_, mixes) in got.items() if not mixes)
    return f"inside the blocks of {call}, too, all entries off the diagonal are 0: the sine and cosine of a pair have to mix"


def _cosines(on: Tensor, back: Tensor, *_) -> Tensor:
    return torch.cat([on.diagonal(), back.diagonal()]).sort().values


def _moved(on: Tensor, back: Tensor, nowhere: Tensor, offset: int, table: Tensor) -> Tensor:
    return table[:-offset] @ on


def _undone(on: Tensor, back: Tensor, nowhere: Tensor, *_) -> tuple:
    """Whether one turns as the other, whatever the angles, or not at all; else what comes of one after the other."""
    turns = not torch.equal(on, torch.eye(len(on), dtype=on.dtype))
    same = torch.equal(on, back)
    return nowhere if same else on @ back, nowhere, same, turns


def _undone_in_words(got: dict) -> str:
    for both, nowhere, same, turns in got.values():
        one = torch.eye(len(both), dtype=both.dtype)
        if not turns:
            return "your shift by k changes nothing"
        if same:
            return "your shifts by k and by −k are the same"
        if distance(nowhere, one) > 1e-4:
            return "your shift by 0 changes something"
    return "your shift by k and then by −k does not lead back"


def _odd_errors_in_words(got: tuple) -> str:
    wrong = next(error for error in got if error != "ValueError")
    if wrong:
        return f"your code raises {wrong} instead of a ValueError"
    return "no error is raised at one odd width at least"


def _shift(build=None, exponent=None, base=10000.0, offset=lambda k: k, odd=True):
    """A shift_matrix with one part replaced; `build` gets cosines and sines."""

    def matrix(k, d_model):
        if d_model % 2 and odd:
            raise ValueError(f"d_model={d_model}")
        i = torch.arange(d_model // 2, dtype=torch.float64)
        power = 2 * i / d_model if exponent is None else exponent(i, d_model)
        angles = offset(k) / base**power
        cosines, sines = angles.cos(), angles.sin()
        built = _blocks(cosines, -sines, sines, cosines) if build is None else build(cosines, sines)
        if d_model % 2:
            built = nn.functional.pad(built, (0, 1, 0, 1))
            built[-1, -1] = 1
        return built.float()

    return {"shift_matrix": matrix}


def _big_blocks(cosines: Tensor, sines: Tensor) -> Tensor:
    c, s = cosines.diag(), sines.diag()
    return torch.cat([torch.cat([c, -s], dim=1), torch.cat([s, c], dim=1)])


SHIFT_MATRIX = Exercise(
    name="positional_encoding.shift_matrix",
    title="A shift is a rotation",
    challenge=_shift_challenge,
    reference={"shift_matrix": shift_matrix},
    claims=(
        Claim(
            "blocks",
            1,
            "no pair mixes with another: outside the 2 × 2 blocks along the diagonal all entries are 0",
            _of_shifts(_outside),
            reason=_outside_in_words,
            picture=lambda a: a["narrow on"],
            see=ROTATION,
        ),
        Claim(
            "angles",
            1,
            "block i turns by the angle that pair i covers in `offset` positions",
            _of_shifts(_cosines),
            tolerance=OF_ANGLES,
            reason=lambda _: "on the diagonal of your matrix the cosines are not those of the right angles",
            see=ROTATION,
        ),
        Claim(
            "moved",
            2,
            "`table[pos] @ shift_matrix(k, d_model)` is `table[pos + k]`, at every position",
            _of_shifts(_moved, "`table[:-{0}] @ shift_matrix({0}, {1})`"),
            tolerance=OF_ANGLES,
            see=ROTATION,
        ),
        Claim(
            "undone",
            1,
            "a shift by −k undoes the shift by k, and a shift by 0 changes nothing",
            _of_shifts(_undone),
            reason=_undone_in_words,
            see=ROTATION,
        ),
        Claim(
            "odd",
            1,
            "an odd d_model raises a ValueError: the last sine has no cosine to turn with",
            lambda a: (a.raises("odd"), a.raises("odder")),
            reason=_odd_errors_in_words,
            see=ROTATION,
        ),
    ),
    misconceptions=(
        Misconception(
            "backwards",
            "your matrix turns the wrong way: it shifts by −k",
            ROTATION,
            _shift(lambda c, s: _blocks(c, s, -s, c)),
        ),
        Misconception(
            "reflection",
            "both your sines have the same sign: that mirrors, a rotation needs one of each",
            ROTATION,
            _shift(lambda c, s: _blocks(c, s, s, c)),
        ),
        Misconception(
            "sines_on_diagonal",
            "you put the sines on the diagonal, where the cosines belong",
            ROTATION,
            _shift(lambda c, s: _blocks(s, -c, c, s)),
        ),
        Misconception(
            "halves",
            "your matrix fits a table with all sines first: here sine and cosine alternate",
            WRONG,
            _shift(_big_blocks),
        ),
        Misconception(
            "i_for_two_i",
            "the factor 2 is missing in your exponent: i counts pairs, and the exponent is 2i/d_model",
            WRONG,
            _shift(exponent=lambda i, d_model: i / d_model),
        ),
        Misconception(
            "doubled_twice",
            "your exponent is 4i/d_model, the 2 counted twice",
            WRONG,
            _shift(exponent=lambda i, d_model: 4 * i / d_model),
        ),
        Misconception("base_1000", "your angles belong to base 1000, not 10000", WAVELENGTHS, _shift(base=1000.0)),
        Misconception(
            "one_angle",
            "all your blocks turn by the same angle: each pair has its own frequency",
            ROTATION,
            _shift(exponent=lambda i, d_model: 0 * i),
        ),
        Misconception(
            "one_step",
            "your matrix shifts by one position, whatever the offset is",
            ROTATION,
            _shift(offset=lambda k: 1),
        ),
        Misconception(
            "distance_only",
            "you lose the offset's sign: a shift back is not a shift forward",
            ROTATION,
            _shift(offset=abs),
        ),
        Misconception(
            "odd_let_through",
            "for an odd d_model your function returns instead of raising an error: the last sine cannot be shifted "
            "without its cosine",
            ROTATION,
            _shift(odd=False),
        ),
    ),
)

# --- 3. and 4. the modules -------------------------------------------------------------------------------------------


class _FixedLength(SinusoidalPositionalEncoding):
    """The exercise's module ends at max_len; the library's computes further rows when they are asked for."""

    def forward(self, x):
        if x.shape[1] > self.max_len:
            raise ValueError(f"a sequence of length {x.shape[1]} is longer than max_len={self.max_len}")
        return super().forward(x)


def _named(a: Answers, label: str) -> str | None:
    error = a.raises(label)
    return "unnamed" if error == "ValueError" and not a.mentions(label, *a.hidden["lengths"][label]) else error


def _too_long(a: Answers) -> tuple:
    """What a sequence of exactly max_len, and longer ones, raise; and which row a longer one's last position got.

    A longer one's ValueError is "unnamed" where it does not name both lengths.
    """
    raised = a.raises("full"), *(_named(a, label) for label in ("long", "far longer", "long in evaluation"))
    got, rows = a.recording.tensors.get("long"), a.recording.tensors.get("full")
    if got is None or rows is None or got.dim() != 3 or rows.dim() != 3 or got.shape[1] != rows.shape[1] + 1:
        return raised, "nothing"
    if not rows.any():
        return raised, "no row, like every other position"
    if torch.allclose(rows[0, -1], rows[0, 0], atol=1e-4):
        return raised, "the same row as every other position"
    for name, row in (("the last row", rows[0, -1]), ("row 0", rows[0, 0]), ("no row", torch.zeros_like(rows[0, 0]))):
        if torch.allclose(got[0, -1].double(), row.double(), atol=1e-4):
            return raised, name
    return raised, "another row"


def _too_long_by_itself(a: Answers) -> tuple:
    """The same, and what a module made without `max_len=` raises at 5000 positions and at one more."""
    return *_too_long(a), tuple(a.raises(label) for label in ("default full", "default long"))


def _too_long_in_words(got: tuple) -> str:
    (full, *long), row, *by_itself = got
    if full:
        return f"a sequence of exactly max_len raises {full}: it still fits"
    lengths = ("max_len + 1", "2·max_len + 3", "2·max_len + 3")
    for length, error in zip(lengths, long, strict=True):
        if error not in (None, "ValueError", "unnamed"):
            return f"a sequence of {length} positions raises {error} instead of a ValueError"
    if None not in long and "unnamed" in long:
        return "your ValueError for a sequence that is too long does not name both lengths"
    if None not in long:
        return f"made without `max_len=`, your module {'refuses 5000' if by_itself[0][0] else 'takes 5001'} positions"
    if row == "nothing":  # it was refused in training
        return "in evaluation a sequence that is too long goes through"
    return f"a sequence that is too long goes through, and position max_len gets {row}"


def _within(value: Tensor, right: float, deviation: float) -> Tensor:
    """A value estimated from a sample, or what is right where the two are five standard deviations apart at most.

    A right answer is refused once in two million checks.
    """
    return torch.as_tensor(right, dtype=value.dtype) if (value - right).abs() <= 5 * deviation else value


def _left(got: Tensor, x: Tensor, total: Tensor, p: float) -> tuple:
    """What training leaves: the shares of zeros, of entries total/(1 − p), and of x, the row or their total alone.

    Then, for each axis, how far the shares of zeros along it lie apart: more than 1 where entries share a mask.
    """
    some = (total.abs() > 1e-3) & ((total - x).abs() > 1e-2)  # elsewhere a zero, or x, says nothing
    some = some if some.any() else total.abs() > 1e-3
    if not some.any():
        return torch.zeros(5, dtype=x.dtype), torch.zeros(3, dtype=x.dtype)
    deviation = math.sqrt(p * (1 - p) / int(some.sum()))

    def share(of: Tensor, zeros: bool = False) -> Tensor:
        same = ((got - of).abs() < 1e-4 * (1 + of.abs())) & ((got == 0) == zeros)
        return same[some].double().mean()

    zeros, kept = share(0 * x, zeros=True), share(total / (1 - p))
    zeros, kept = _within(zeros, p, deviation), _within(kept, 1 - p, deviation)
    shares = torch.stack([zeros, kept, share(x), share(total - x), share(total)])
    if not total.all():  # then some zeros are none of dropout's
        return shares, torch.ones(3, dtype=x.dtype)
    return shares, torch.stack([_apart((got == 0).double(), axis) for axis in range(3)])


def _apart(zeros: Tensor, axis: int) -> Tensor:
    """How far the means along an axis lie apart, where entries drawn one by one give 1."""
    p, means = zeros.mean(), zeros.mean(axis)
    if p * (1 - p) < 1e-3:  # hardly anything is dropped, or all
        return torch.ones_like(p)
    return _within(means.std() / (p * (1 - p) / zeros.shape[axis]).sqrt(), 1.0, (2 * means.numel()) ** -0.5)


def _dropped(a: Answers) -> tuple:
    """What training leaves at the dropout that was asked for, and at the one that a module has by itself.

    And whether a second call, where something is dropped, drops the same; the dropout asked for; and whether a module
    made without dropout drops.
    """
    x, total, p = a.hidden["x"].double(), a["undropped"], a.hidden["p"]
    trained, again = a["trained"], a["trained again"]
    same = bool((trained == 0).any()) and torch.equal(trained == 0, again == 0)
    return _left(trained, x, total, p), _left(a["by itself"], x, total, 0.1), same, p, _always_drops(a)


def _always_drops(a: Answers) -> bool:
    """Whether the module made with `dropout=0.0` drops entries: is 0 where another is not, in evaluation."""
    total, evaluated = a["undropped"], a.recording.tensors.get("evaluated")
    if evaluated is None or evaluated.shape != total.shape:
        return False
    return bool(((total == 0) & (evaluated != 0)).double().mean() > 0.05)


ALWAYS_DROPS = (
    "made with `dropout=0.0`, your module still drops entries: make sure that it uses its argument, and as the share to "
    "drop"
)


def _dropped_in_words(got: tuple) -> str:
    """What is wrong in training; empty where nothing is."""
    (shares, apart), (by_itself, _), same, p, always_drops = got
    zeros, kept, *_, unchanged = shares.tolist()
    if always_drops:
        return ALWAYS_DROPS
    if unchanged > 0.99:
        return "in training your module drops nothing"
    left = (
        f"in training {zeros:.0%} of the entries are 0, {kept:.0%} are 1/(1 − dropout) times the sum, "
        f"and {unchanged:.0%} are the sum unchanged"
    )
    if zeros == 0 or zeros + kept < 0.99:
        return left
    if apart.max() > 1:
        together = (
            "all sequences share one mask",
            "all positions share one mask",
            "a vector is dropped whole or not at all",
        )
        return f"in training {together[int(apart.argmax())]}: draw for each entry on its own"
    if same:
        return "in training every call drops the same entries"
    if abs(zeros - p) > 0.01:
        return left
    if abs(by_itself[0] - 0.1) > 0.01:
        return f"made without `dropout=`, your module drops {by_itself[0]:.0%} of the entries: look at the signature"
    return ""


def _undropped(a: Answers) -> tuple:
    """Whether evaluation gives what a module without dropout gives, whether it drops entries, whether that one does."""
    total, evaluated = a["undropped"], a["evaluated"]
    drops = bool(((evaluated == 0) & (total != 0)).double().mean() > 0.05)
    return torch.allclose(evaluated, total, atol=1e-4), drops, bool(total.any()), _always_drops(a)


def _undropped_in_words(got: tuple) -> str:
    """What is wrong in evaluation; empty where nothing is."""
    same, *_, always_drops = got
    if always_drops:
        return ALWAYS_DROPS
    return "" if same else "after `module.eval()` the output is not what it is without dropout"


def _dropout_in_words(got: tuple) -> str:
    found = (_dropped_in_words(got[0]), _undropped_in_words(got[1]))
    return "; and ".join(filter(None, dict.fromkeys(found)))


def _dropout_steps(plan: Plan, draw: torch.Generator, make, seq: int, seed: int) -> None:
    """The same x through a module without dropout, and through some with, in training and in evaluation.

    Never 0.5, at which what is kept and what is dropped are alike; and wide, since many numbers make shares sure.
    """
    p = pick(draw, 2, 4) / 10
    values = torch.randn(12, seq, WIDE, generator=draw)
    x = plan.tensor("x", values)
    plan.call(make(0.0), x, label="undropped")
    module = make(p)
    plan.seed(seed)
    plan.call(module, x, label="trained")
    plan.call(module, x, label="trained again")
    plan.train(module, False)
    plan.call(module, x, label="evaluated")
    plan.call(make(), x, label="by itself")
    plan.hidden |= {"p": p, "x": values}


def _name(label: str, kind: str) -> str:
    """Of a tensor, as messages show it."""
    return f"{label.replace(' ', '_')}_{kind}"


def _length_steps(plan: Plan, module: Ref, max_len: int, d_model: int) -> None:
    plan.hidden["lengths"] = {}
    for label, seq in (("full", max_len), ("long", max_len + 1), ("far longer", 2 * max_len + 3)):
        zeros = plan.tensor(_name(label, "zeros"), torch.zeros(2, seq, d_model))
        plan.call(module, zeros, label=label)
        plan.hidden["lengths"][label] = plan.hidden["lengths"]["long in evaluation"] = str(seq), str(max_len)
    plan.train(module, False)
    plan.call(module, zeros, label="long in evaluation")


WIDE = 64  # of the modules with dropout
BATCHES = ("first", "one sequence", "one position")


def _module_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan()
    half, made = pick(draw, 4, 6), []
    for label, d_model, batch, seq in (
        ("first", 2 * half, 3, pick(draw, 7, 10)),
        ("one sequence", 2 * half + 6, 1, pick(draw, 7, 10)),
        ("one position", 2 * half + 8, 2, 1),
    ):
        max_len = pick(draw, 20, 30)
        plan.call("sinusoidal_table", max_len, d_model, label=f"{label} table")
        module = plan.call("SinusoidalPositionalEncoding", d_model, max_len, 0.0)
        made.append((module, label, d_model, batch, seq))
    for module, label, d_model, batch, seq in made:
        zeros = plan.tensor(_name(label, "zeros"), torch.zeros(batch, seq, d_model))
        plan.call(module, zeros, label=f"{label} zero")
        values = torch.randn(batch, 2 * seq - 1, d_model, generator=draw)
        plan.call(module, plan.tensor(_name(label, "x"), values), label=f"{label} sum")
        plan.call(module, plan.tensor(_name(label, "minus_x"), -values), label=f"{label} difference")
        plan.hidden[label] = values
    learning = plan.tensor("learning_x", torch.randn(2, 4, d_model, generator=draw), requires_grad=True)
    upstream = torch.randn(2, 4, d_model, generator=draw)
    plan.gradient(plan.call(module, learning), upstream, learning, label="gradient")
    by_itself = plan.call("SinusoidalPositionalEncoding", 2)
    for label, seq in (("default full", 5000), ("default long", 5001)):
        plan.call(by_itself, plan.tensor(_name(label, "zeros"), torch.zeros(1, seq, 2)), label=label)
    plan.call("sinusoidal_table", 30, 2 * half + 1, label="odd table")
    odd = plan.call("SinusoidalPositionalEncoding", 2 * half + 1, 40, 0.0)
    plan.call(odd, plan.tensor("odd_zeros", torch.zeros(2, 4, 2 * half + 1)), label="odd zero")
    _length_steps(plan, module, max_len, d_model)

    def make(*dropout: float) -> Ref:
        return plan.call("SinusoidalPositionalEncoding", WIDE, max_len, *dropout)

    _dropout_steps(plan, draw, make, max_len - 1, seed)
    moved = make(0.3)
    plan.learned(moved, label="learned")
    plan.train(moved, False)
    plan.hidden["moved x"] = torch.randn(2, 5, WIDE, generator=draw)
    x = plan.tensor("moved_x", plan.hidden["moved x"])
    plan.call(moved, x, label="before")
    plan.call(plan.attribute(moved, "to"), "meta")
    plan.call(moved, plan.call(plan.attribute(x, "to"), "meta"), label="moved")
    plan.call(moved, x, label="left behind")
    return plan


def _row_numbers(a: Answers, label: str) -> Tensor:
    """Which row of the learner's own table each position gets, or of the right one; −1 for none of them.

    −2 where nothing is added, −3 where nothing is left of an x of zeros, but other x are changed.
    """
    got = a[f"{label} zero"].double()
    batch, seq, d_model = got.shape
    found = []
    for table in (a.recording.tensors.get(f"{label} table"), sinusoidal_table(30, d_model)):
        if table is not None and table.dim() == 2 and table.shape[1] == d_model:
            near = torch.cdist(got.flatten(0, 1), table.double()).min(dim=1)
            found.append(torch.where(near.values < 1e-3, near.indices, -1).reshape(batch, seq))
    numbers = max(found, key=lambda numbers: int((numbers >= 0).sum()))
    if got.any():
        return numbers
    return numbers.fill_(-2 if distance(a[f"{label} sum"], a.hidden[label].double()) < 1e-4 else -3)


def _all_row_numbers(a: Answers) -> tuple:
    """For each batch; and what a module of an odd width raises, where the learner's own table is not what is wrong."""
    batches = tuple(_row_numbers(a, label) for label in BATCHES)
    try:
        a["odd table"]
    except CannotJudge as why:
        if why.key[0] != "missing":  # else the module has a table of its own
            return *batches, None
    return *batches, a.raises("odd zero")


def _row_numbers_in_words(got: tuple) -> str:
    *batches, odd = got
    for numbers in batches:
        wrong = (numbers != torch.arange(numbers.shape[1])).nonzero()
        if len(wrong):
            sequence, place = wrong[0].tolist()
            row = numbers[sequence, place].item()
            gets = (
                f"row {row}" if row >= 0 else "numbers that are no row of the table" if row == -1 else "no row at all"
            )
            return f"position {place} of sequence {sequence} gets {gets}"
    return f"at an odd d_model your module raises {odd}"


def _kept(a: Answers) -> tuple:
    """Whether anything learns, what a call raises where module and x have moved, and what is added where x has not."""
    if a.raises("before"):
        a["before"]  # no call goes through, whether moved or not: that is what is said
    return a["learned"] > 0, a.raises("moved"), _stays(a)


def _stays(a: Answers) -> str:
    """What a module that was sent away still adds to an x that was not; empty where that fails, as it should."""
    before, after = (a.recording.tensors.get(label) for label in ("before", "left behind"))
    if before is None or after is None or before.shape != after.shape:
        return ""
    x = a.hidden["moved x"]
    if torch.allclose(before.double(), x.double(), atol=1e-4):
        return "nothing"
    return "rows" if torch.allclose(before.double(), after.double(), atol=1e-4) else ""


def _buffer_in_words(got: tuple) -> str:
    learned, error, stays = got
    if learned:
        return "some of the module's numbers learn"
    if error:
        return f"after `module.to(device)` a call raises {error}: the table did not move along"
    if stays == "nothing":
        return "your module adds nothing to x, so it keeps no table"
    return "a module that was sent to another device still adds rows to an x that was not: it keeps no table"


def _added(a: Answers) -> dict:
    """Half of what x and −x differ by: x itself, whatever is added to it; and the gradient that reaches x."""
    if any(a.changed(label) for label in (*(f"{label} sum" for label in BATCHES), "evaluated")):
        raise CannotJudge("after the call x itself is another: it has to stay as it came", ("changed",))
    found = {
        f"`{_name(label, 'x')}`, with the rows taken off again": (a[f"{label} sum"] - a[f"{label} difference"]) / 2
        for label in BATCHES
    }
    return found | {"the gradient that reaches x": a["gradient"]}


class _Adds(nn.Module):
    """A positional encoding in which each mistake is a switch."""

    def __init__(
        self, d_model, max_len=5000, dropout=0.1, *, keep="buffer", take=None, combine=None, drop="sum", long=None
    ):
        super().__init__()
        table = sinusoidal_table(max_len + 1, d_model)  # the last row for those who start at 1
        if keep == "parameter":
            self.table = nn.Parameter(table)
        elif keep in ("attribute", "nothing"):
            self.table = table
        else:
            self.register_buffer("table", table)
        self.max_len, self.dropout = max_len, nn.Dropout(dropout)
        self.take, self.combine, self.drop, self.long = take, combine, drop, long

    def forward(self, x):
        seq = x.shape[1]
        if self.long == "unnamed" and seq > self.max_len:
            raise ValueError("the sequence is too long")
        if self.long is None and seq > self.max_len or self.long == "full refused" and seq >= self.max_len:
            raise ValueError(f"{seq} positions, max_len={self.max_len}")
        table = self.table[: self.max_len]
        if self.long in ("clamped", "wrapped") and seq > self.max_len:
            place = torch.arange(seq)
            row = table[place.clamp(max=self.max_len - 1) if self.long == "clamped" else place % self.max_len]
        elif self.long == "cut":
            row = nn.functional.pad(table, (0, 0, 0, max(0, seq - self.max_len)))[:seq]
        else:
            row = table[:seq] if self.take is None else self.take(self.table, x)
        if self.drop == "row":
            return x + self.dropout(row)
        if self.drop == "x":
            return self.dropout(x) + row
        total = x + row if self.combine is None else self.combine(x, row)
        if self.drop == "none":
            return total
        if self.drop == "always":
            return nn.functional.dropout(total, self.dropout.p)
        if self.drop == "unscaled":
            return total * (torch.rand_like(total) >= self.dropout.p) if self.training else total
        return self.dropout(total)


def _adds(**switches):
    return {"SinusoidalPositionalEncoding": lambda *args, **kwargs: _Adds(*args, **kwargs, **switches)}


def _along_batch(table: Tensor, x: Tensor) -> Tensor:
    return table[: x.shape[0]].unsqueeze(1)


CUT_OFF = "your module cuts x off from autograd: what stands before it, the embedding, never learns"


def _computed_anew(_: Tensor, x: Tensor) -> Tensor:
    return sinusoidal_table(x.shape[1], x.shape[2]).to(x.device)


SINUSOIDAL_MODULE = Exercise(
    name="positional_encoding.sinusoidal_encoding",
    title="SinusoidalPositionalEncoding",
    challenge=_module_challenge,
    reference={"SinusoidalPositionalEncoding": _FixedLength, "sinusoidal_table": sinusoidal_table},
    claims=(
        Claim(
            "positions",
            1,
            "position p of every sequence gets row p of the sinusoidal table",
            _all_row_numbers,
            reason=_row_numbers_in_words,
            see=MODULE,
        ),
        Claim("added", 1, "the rows are added to x as it is", _added, see=MODULE),
        Claim(
            "buffer",
            1,
            "the table is a buffer: it does not learn, and it moves with the module to another device",
            _kept,
            reason=_buffer_in_words,
            see=MODULE,
        ),
        Claim(
            "too_long",
            1,
            "a sequence longer than max_len raises a ValueError that names both lengths, one of exactly max_len none",
            _too_long_by_itself,
            reason=_too_long_in_words,
            see=MODULE,
        ),
        Claim(
            "training",
            1,
            "in training dropout falls on the sum x + PE",
            _dropped,
            tolerance=0.05,
            reason=_dropped_in_words,
            see=MODULE,
        ),
        Claim(
            "evaluation",
            1,
            "in evaluation nothing is dropped",
            _undropped,
            reason=_undropped_in_words,
            see=MODULE,
        ),
    ),
    misconceptions=(
        Misconception(
            "along_batch",
            "your positions count the sequences of the batch: position belongs to axis 1",
            WRONG,
            _adds(take=_along_batch),
        ),
        Misconception(
            "starts_at_1",
            "your first vector gets row 1: positions count from 0",
            MODULE,
            _adds(take=lambda table, x: table[1 : x.shape[1] + 1]),
        ),
        Misconception(
            "one_row",
            "every position gets row 0",
            MODULE,
            _adds(take=lambda table, x: table[:1]),
        ),
        Misconception("multiplied", "you multiplied x by the table", WRONG, _adds(combine=lambda x, row: x * row)),
        Misconception(
            "not_added",
            "your module gives x back without the rows of the table",
            MODULE,
            _adds(combine=lambda x, row: x + 0 * row),
        ),
        Misconception(
            "scaled",
            "you multiplied x by √d_model: the embedding of chapter 1 has done that already",
            MODULE,
            _adds(combine=lambda x, row: x * x.shape[-1] ** 0.5 + row),
        ),
        Misconception(
            "in_place",
            "you change x itself, in place: whoever reads x afterwards finds something else there",
            MODULE,
            _adds(combine=lambda x, row: x.add_(row)),
        ),
        Misconception("detached", CUT_OFF, MODULE, _adds(combine=lambda x, row: x.detach() + row)),
        Misconception(
            "parameter", "your table is a parameter, so training changes it", MODULE, _adds(keep="parameter")
        ),
        Misconception(
            "attribute",
            "your table is a plain attribute, so the module does not know that it has to take it along",
            MODULE,
            _adds(keep="attribute"),
        ),
        Misconception(
            "computed_anew",
            "you compute the table anew in every call: compute it once, and keep it",
            MODULE,
            _adds(keep="nothing", take=_computed_anew),
        ),
        Misconception(
            "unchecked",
            "you let the addition fail: the slice of the table is shorter than x",
            WRONG,
            _adds(long="unchecked"),
        ),
        Misconception("full_refused", "you refuse a sequence of exactly max_len", MODULE, _adds(long="full refused")),
        Misconception("unnamed", "your ValueError does not name both lengths", MODULE, _adds(long="unnamed")),
        Misconception(
            "clamped", "positions beyond the table silently share its last row", WRONG, _adds(long="clamped")
        ),
        Misconception(
            "wrapped", "positions beyond the table silently start again at row 0", WRONG, _adds(long="wrapped")
        ),
        Misconception(
            "dropout_on_table",
            "your dropout falls on the table alone: it belongs on the sum",
            MODULE,
            _adds(drop="row"),
        ),
        Misconception("dropout_on_x", "your dropout falls on x alone: it belongs on the sum", MODULE, _adds(drop="x")),
        Misconception("no_dropout", "in training your module drops nothing", MODULE, _adds(drop="none")),
        Misconception(
            "unscaled_dropout",
            "you set entries to zero without scaling the others up by 1/(1 − dropout)",
            MODULE,
            _adds(drop="unscaled"),
        ),
        Misconception("dropout_always", "your dropout goes on in evaluation", MODULE, _adds(drop="always")),
    ),
)


NORMAL = 0.6827  # of a normal distribution's numbers lie within one standard deviation


def _learned_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan()
    max_len, d_model = pick(draw, 12, 17), pick(draw, 18, 23)
    rows = torch.randn(max_len, d_model, generator=draw)

    def make(*dropout: float, table: Tensor = rows) -> Ref:
        module = plan.call("LearnedPositionalEncoding", *table.shape, *dropout)
        plan.load(module, {"table": table})
        return module

    wide = torch.randn(pick(draw, 8, 10), d_model + 4, generator=draw)
    module, other = make(0.0), make(0.0, table=wide)
    for label, batch, seq in (("several", 3, max_len - 5), ("one sequence", 1, max_len - 2), ("one position", 2, 1)):
        values = torch.randn(batch, seq, d_model, generator=draw)
        plan.call(module, plan.tensor(_name(label, "x"), values), label=label)
    x = plan.tensor("wide_x", torch.randn(2, len(wide) - 1, d_model + 4, generator=draw))
    plan.call(other, x, label="wide")
    plan.load(other, {"table": wide.flip(0)})  # as after a step of training
    plan.call(other, x, label="wide again")
    _length_steps(plan, module, max_len, d_model)
    wide = torch.randn(max_len, WIDE, generator=draw)
    _dropout_steps(plan, draw, lambda *p: make(*p, table=wide), max_len - 1, seed)

    learner = make(0.0)
    seq = max_len - 4
    values, upstream = torch.randn(2, 3, seq, d_model, generator=draw)
    table = plan.parameter(learner, "table", (max_len, d_model))
    plan.gradient(plan.call(learner, plan.tensor("gradient_x", values)), upstream, table, label="gradient")
    x = plan.tensor("learning_x", values, requires_grad=True)
    plan.gradient(plan.call(learner, x), upstream, x, label="gradient of x")

    size = pick(draw, 70, 90), pick(draw, 100, 130)
    plan.seed(seed)
    fresh = plan.call("LearnedPositionalEncoding", *size, 0.0)
    plan.parameter(fresh, "table", size, label="fresh")
    return plan


def _spread(weight: Tensor) -> tuple:
    """Mean, standard deviation and share within one of them, where N(0, 0.02²) gives 0, 1 and 0.683, each ÷ 0.02.

    Then how far the means of the rows, and of the columns, lie apart: little, where all numbers are drawn. And whether
    the share is that of a normal distribution.
    """
    weight = weight / 0.02
    count, (rows, columns) = weight.numel(), weight.shape
    share = _within((weight.abs() < weight.std()).double().mean(), NORMAL, math.sqrt(NORMAL * (1 - NORMAL) / count))
    numbers = [
        _within(weight.mean(), 0.0, count**-0.5),
        _within(weight.std(), 1.0, (2 * count) ** -0.5),
        share,
        _within(weight.mean(1).std(), columns**-0.5, (2 * count) ** -0.5),
        _within(weight.mean(0).std(), rows**-0.5, (2 * count) ** -0.5),
    ]
    return torch.stack(numbers), share.item() == NORMAL


def _spread_in_words(got: tuple) -> str:
    spread, _ = got
    mean, deviation, share = (spread[:3] * torch.tensor([0.02, 0.02, 1])).tolist()
    if deviation == 0:
        return f"all fresh numbers are {in_figures(mean)}"
    if spread[3:].max() > 0.3 * spread[1]:
        return "your rows, or your columns, are like one another: draw each number on its own"
    return (
        f"your fresh numbers have mean {mean:z.4f} and standard deviation {deviation:.4g}, and {share:.0%} of them lie "
        "within one standard deviation (of a normal distribution, 68%)"
    )


def _gradients(a: Answers) -> dict:
    """The table's gradient, where x gets one as well."""
    gradient = a["gradient"]
    if gradient.any() and not a["gradient of x"].any():
        raise CannotJudge("no gradient reaches x", ("cut off",))
    return {"the gradient of `table`": gradient}


class _Learns(_Adds):
    """A learned table in which each mistake is a switch."""

    def __init__(self, max_len, d_model, dropout=0.1, *, std=0.02, kind="normal", frozen=False, **switches):
        super().__init__(d_model, max_len, dropout, **switches)
        del self.table
        table = torch.empty(max_len, d_model)
        if kind == "uniform":
            nn.init.uniform_(table, -std, std)
        else:
            nn.init.normal_(table, std=std)
        if frozen:
            self.register_buffer("table", table)
        else:
            self.table = nn.Parameter(table)


def _learns(**switches):
    return {"LearnedPositionalEncoding": lambda *args, **kwargs: _Learns(*args, **kwargs, **switches)}


LEARNED_ENCODING = Exercise(
    name="positional_encoding.learned_encoding",
    title="LearnedPositionalEncoding",
    challenge=_learned_challenge,
    reference={"LearnedPositionalEncoding": LearnedPositionalEncoding},
    claims=(
        Claim(
            "positions",
            1,
            "row p of `table` is added at position p of every sequence",
            lambda a: tuple(a[label] for label in ("several", "one sequence", "one position", "wide", "wide again")),
            see=LEARNED,
        ),
        Claim(
            "initialised",
            1,
            "a fresh table is drawn from N(0, 0.02²)",
            lambda a: _spread(a["fresh"]),
            tolerance=0.03,
            reason=_spread_in_words,
            see=LEARNED,
        ),
        Claim(
            "gradients",
            1,
            "row p gets the sum of the gradients above position p, over the batch; rows not in use get none",
            _gradients,
            see=LEARNED,
        ),
        Claim(
            "too_long",
            1,
            "a sequence longer than max_len raises a ValueError that names both lengths, one of exactly max_len none",
            _too_long,
            reason=_too_long_in_words,
            see=LEARNED,
        ),
        Claim(
            "dropout",
            1,
            "dropout falls on the sum, in training only",
            lambda a: (_dropped(a), _undropped(a)),
            tolerance=0.05,
            reason=_dropout_in_words,
            see=MODULE,
        ),
    ),
    misconceptions=(
        Misconception(
            "zeros",
            "your table starts as zeros: until it has learned, all positions are the same to the model",
            LEARNED,
            _learns(std=0.0),
        ),
        Misconception(
            "default_init",
            "the standard deviation of your table is about 1: nn.Embedding's default, and `normal_`'s where 0.02 goes in "
            "as the mean",
            LEARNED,
            _learns(std=1.0),
        ),
        Misconception(
            "std_is_variance",
            "you passed the variance 0.02² where the standard deviation belongs",
            LEARNED,
            _learns(std=0.02**2),
        ),
        Misconception("uniform", "your table is drawn from a uniform distribution", LEARNED, _learns(kind="uniform")),
        Misconception(
            "buffer",
            "no gradient reaches your table, so it never learns: it is a buffer or frozen, or cut off by `.data` or "
            "`detach`",
            LEARNED,
            _learns(frozen=True),
        ),
        Misconception("detached", CUT_OFF, LEARNED, _learns(combine=lambda x, row: x.detach() + row)),
        Misconception(
            "along_batch",
            "your positions count the sequences of the batch: position belongs to axis 1",
            WRONG,
            _learns(take=_along_batch),
        ),
        Misconception("one_row", "every position gets row 0", LEARNED, _learns(take=lambda table, x: table[:1])),
        Misconception("multiplied", "you multiplied x by the table", WRONG, _learns(combine=lambda x, row: x * row)),
        Misconception(
            "clamped", "positions beyond the table silently share its last row", WRONG, _learns(long="clamped")
        ),
        Misconception(
            "wrapped", "positions beyond the table silently start again at row 0", WRONG, _learns(long="wrapped")
        ),
        Misconception("cut", "positions beyond the table silently get nothing at all", WRONG, _learns(long="cut")),
        Misconception(
            "unchecked",
            "you let the addition fail: the slice of the table is shorter than x",
            WRONG,
            _learns(long="unchecked"),
        ),
        Misconception(
            "full_refused", "you refuse a sequence of exactly max_len", LEARNED, _learns(long="full refused")
        ),
        Misconception("unnamed", "your ValueError does not name both lengths", LEARNED, _learns(long="unnamed")),
        Misconception(
            "dropout_on_table",
            "your dropout falls on the table alone: it belongs on the sum",
            MODULE,
            _learns(drop="row"),
        ),
        Misconception(
            "dropout_on_x", "your dropout falls on x alone: it belongs on the sum", MODULE, _learns(drop="x")
        ),
        Misconception("no_dropout", "in training your module drops nothing", MODULE, _learns(drop="none")),
        Misconception("dropout_always", "your dropout goes on in evaluation", MODULE, _learns(drop="always")),
    ),
)

# --- 5. counts -------------------------------------------------------------------------------------------------------


def wavelength(pair: int, d_model: int) -> float:
    """How many positions pair number `pair` takes for one turn."""
    return 2 * math.pi * 10000 ** (2 * pair / d_model)


def dot_product(distance: int, d_model: int) -> float:
    """The dot product of two rows of the table that stand this far apart."""
    return sum(math.cos(distance / 10000 ** (2 * i / d_model)) for i in range(d_model // 2))


def slow_pairs(num_positions: int, d_model: int) -> int:
    """How many pairs have not turned once after this many positions."""
    return sum(wavelength(i, d_model) > num_positions for i in range(d_model // 2))


OF_COUNTS = 1e-5  # tolerance: float32 errs by 4e-7, a base of 10001 by 3e-5


def _counts_challenge(seed: int) -> Plan:
    draw = torch.Generator().manual_seed(seed)
    plan = Plan()
    for name in ("shape_of_table", "fixed_parameters", "learned_parameters"):
        plan.name(name, label=name)

    def call(function: str, number: int, d_model: int, label: str) -> None:
        plan.call(function, number, d_model, label=label)
        plan.hidden[label] = function, number, d_model

    for number in range(3):
        d_model = 2 * pick(draw, 20 + 60 * number, 70 + 60 * number)
        call("wavelength", pick(draw, 3, 9), d_model, f"wavelength {number}")
        call("wavelength", d_model // 2 - 1, d_model, f"longest {number}")
        call("dot_product", pick(draw, 2, 9), d_model, f"dot {number}")
        call("dot_product", 0, d_model, f"square {number}")
        call("slow_pairs", pick(draw, 30, 2000), d_model, f"slow {number}")
        plan.call("dot_product", pick(draw, 100, 150), 4, label=f"narrow {number}")
    call("slow_pairs", pick(draw, 2, 6), d_model, "all slow")
    call("slow_pairs", pick(draw, 70_000, 90_000), d_model, "all fast")
    return plan


def _of_calls(*labels: str):
    """What the calls with these labels give, each beside the call itself, for the messages."""
    return lambda a: tuple((a.hidden[label], a[label]) for label in labels)


def _narrow(a: Answers) -> Tensor:
    """Two pairs only, far apart: here the base's last digit shows. The two may cancel, so all are one quantity."""
    return torch.tensor([a[f"narrow {number}"] for number in range(3)] + [2.0], dtype=torch.float64)


def _call_in_words(got: tuple) -> str:
    right = {"wavelength": wavelength, "dot_product": dot_product, "slow_pairs": slow_pairs}
    for (function, *args), result in got:
        if distance(result, right[function](*args)) > OF_COUNTS:
            return f"`{function}({args[0]}, {args[1]})` gives {in_figures(result)}, which is not right"
    return (
        "`dot_product` is not right at d_model=4 and distances of 100 and more, where a small error in the frequencies "
        "shows"
    )


COUNTS = Exercise(
    name="positional_encoding.counts",
    title="Wavelengths and counts",
    challenge=_counts_challenge,
    reference={
        "shape_of_table": (196, 512),
        "fixed_parameters": 0,
        "learned_parameters": 196 * 512,
        "wavelength": wavelength,
        "dot_product": dot_product,
        "slow_pairs": slow_pairs,
    },
    claims=(
        Claim(
            "prediction",
            1,
            "`shape_of_table`, `fixed_parameters` and `learned_parameters` are right for the cat",
            named("shape_of_table", "fixed_parameters", "learned_parameters"),
            see=COUNTING,
        ),
        Claim(
            "wavelength",
            1,
            "`wavelength` gives the positions that a pair takes for one turn",
            _of_calls(*(f"{kind} {number}" for number in range(3) for kind in ("wavelength", "longest"))),
            tolerance=OF_COUNTS,
            reason=_call_in_words,
            see=WAVELENGTHS,
        ),
        Claim(
            "dot_product",
            2,
            "`dot_product` needs nothing but the distance of the two rows",
            lambda a: (
                _of_calls(*(f"{kind} {number}" for number in range(3) for kind in ("dot", "square")))(a),
                _narrow(a),
            ),
            tolerance=OF_COUNTS,
            reason=lambda got: _call_in_words(got[0]),
            see=DISTANCE,
        ),
        Claim(
            "slow_pairs",
            1,
            "`slow_pairs` counts the pairs that have not turned once",
            _of_calls("slow 0", "slow 1", "slow 2", "all slow", "all fast"),
            reason=_call_in_words,
            see=WAVELENGTHS,
        ),
    ),
    misconceptions=(
        Misconception(
            "block_length",
            "you took the pixels of a patch for the positions: each patch has one position",
            COUNTING,
            dict(shape_of_table=(256, 512), learned_parameters=256 * 512),
        ),
        Misconception(
            "table_counted",
            "you counted the sinusoidal table among what is learned: it is computed",
            COUNTING,
            dict(fixed_parameters=196 * 512),
        ),
        Misconception(
            "one_row_learned",
            "you counted one learned vector: each position has its own",
            COUNTING,
            dict(learned_parameters=512),
        ),
        Misconception(
            "one_number_each",
            "you counted one learned number for each position: it is a vector of d_model",
            COUNTING,
            dict(learned_parameters=196),
        ),
        Misconception(
            "without_two_pi",
            "your waves lack the factor 2π: a turn is 2π radians",
            WAVELENGTHS,
            dict(
                wavelength=lambda pair, d_model: 10000 ** (2 * pair / d_model),
                slow_pairs=lambda n, d_model: sum(10000 ** (2 * i / d_model) > n for i in range(d_model // 2)),
            ),
        ),
        Misconception(
            "column_for_pair",
            "you took the number of the pair for the number of a column: pair i owns columns 2i and 2i + 1",
            WAVELENGTHS,
            dict(
                wavelength=lambda pair, d_model: 2 * math.pi * 10000 ** (pair / d_model),
                slow_pairs=lambda n, d_model: sum(wavelength(i / 2, d_model) > n for i in range(d_model // 2)),
            ),
        ),
        Misconception(
            "columns_counted",
            "you counted columns: two of them make a pair",
            WAVELENGTHS,
            dict(slow_pairs=lambda n, d_model: 2 * slow_pairs(n, d_model)),
        ),
        Misconception(
            "fast_counted",
            "you counted the pairs that have turned at least once: the others were asked for",
            WAVELENGTHS,
            dict(slow_pairs=lambda n, d_model: d_model // 2 - slow_pairs(n, d_model)),
        ),
        Misconception(
            "every_column_1",
            "a row's product with itself comes out as d_model: a pair has sin² + cos² = 1, so two columns give 1",
            DISTANCE,
            dict(dot_product=lambda distance, d_model: 2 * dot_product(distance, d_model)),
        ),
        Misconception(
            "sines",
            "you added up sines: sin a sin b + cos a cos b is a cosine",
            DISTANCE,
            dict(
                dot_product=lambda distance, d_model: sum(
                    math.sin(distance / 10000 ** (2 * i / d_model)) for i in range(d_model // 2)
                )
            ),
        ),
        Misconception(
            "divided_by_width",
            "your product is a mean over the pairs: it is their sum",
            DISTANCE,
            dict(dot_product=lambda distance, d_model: dot_product(distance, d_model) / (d_model // 2)),
        ),
    ),
)

EXERCISES = (SINUSOIDAL_TABLE, SHIFT_MATRIX, SINUSOIDAL_MODULE, LEARNED_ENCODING, COUNTS)
