"""Answers to the exercises of chapter 2, positional encoding."""

RIGHT: dict[str, dict[str, str]] = {}
WRONG: dict[str, dict[str, tuple[str, str]]] = {}
PAIRS: dict[str, dict[tuple[str, str], str]] = {}
EQUIVALENT: dict[str, dict[str, str]] = {}

# --- 1. the table ----------------------------------------------------------------------------------------------------

RIGHT["sinusoidal_table"] = {
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
    "a cosine is a sine a quarter turn ahead, float64 to the end": """
def sinusoidal_table(num_positions, d_model):
    column = torch.arange(d_model).double()
    frequency = 10000.0 ** -(2 * (column // 2) / d_model)
    return torch.sin(torch.outer(torch.arange(num_positions).double(), frequency) + math.pi / 2 * (column % 2))
""",
    "NumPy": """
import numpy as np

def sinusoidal_table(num_positions, d_model):
    angle = np.arange(num_positions)[:, None] / 10000 ** (np.arange(0, d_model + 1, 2)[None] / d_model)
    both = np.empty((num_positions, 2 * angle.shape[1]), np.float32)
    both[:, ::2], both[:, 1::2] = np.sin(angle), np.cos(angle)
    return both[:, :d_model]
""",
    "powers of a complex turn": """
def sinusoidal_table(num_positions, d_model):
    pairs = (d_model + 1) // 2
    turn = torch.polar(torch.ones(pairs).double(), 10000 ** (-2 * torch.arange(pairs).double() / d_model))
    powers = torch.stack([turn**p for p in range(num_positions)])
    return torch.stack([powers.imag, powers.real], -1).reshape(num_positions, -1)[:, :d_model]
""",
    "sine or cosine chosen by where": """
def sinusoidal_table(num_positions, d_model):
    column = torch.arange(d_model)
    angle = torch.arange(num_positions).unsqueeze(-1) / torch.pow(torch.tensor(10000.0), column // 2 * 2 / d_model)
    return torch.where(column % 2 == 0, torch.sin(angle), torch.cos(angle))
""",
    "golfed": """
sinusoidal_table = lambda n, d: torch.tensor(
    [[(math.sin, math.cos)[c % 2](p * 1e4 ** (-(c & ~1) / d)) for c in range(d)] for p in range(n)]
)
""",
    "each row turned into the next": """
def sinusoidal_table(num_positions, d_model):
    speed = [10000 ** (-2 * i / d_model) for i in range((d_model + 1) // 2)]
    rows, row = [], [(0.0, 1.0)] * len(speed)
    for _ in range(num_positions):
        rows.append([number for pair in row for number in pair][:d_model])
        row = [
            (s * math.cos(w) + c * math.sin(w), c * math.cos(w) - s * math.sin(w))
            for (s, c), w in zip(row, speed)
        ]
    return torch.tensor(rows)
""",
    "vmap over the positions": """
def sinusoidal_table(num_positions, d_model):
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)

    def row(position):
        angles = position / 10000**(two_i / d_model)
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten()[:d_model]

    return torch.vmap(row)(torch.arange(num_positions)).float()
""",
    "column by column, and a transposed view of it": """
def sinusoidal_table(num_positions, d_model):
    positions = torch.arange(num_positions, dtype=torch.float64)
    columns = torch.empty(d_model, num_positions)
    for column in range(d_model):
        wave = torch.cos if column % 2 else torch.sin
        columns[column] = wave(positions * 10000.0 ** (-2 * (column // 2) / d_model))
    print("the table is", columns.T.shape, "and contiguous:", columns.T.is_contiguous())
    return columns.T
""",
    "cached by a decorator, a helper of one's own": """
from functools import cache

@cache
def speeds(d_model):
    return tuple(math.exp(-math.log(10000) * 2 * i / d_model) for i in range(d_model // 2 + 1))

def wave(position, column, d_model):
    angle = position * speeds(d_model)[column // 2]
    return math.cos(angle) if column % 2 else math.sin(angle)

def sinusoidal_table(num_positions, d_model):
    return torch.tensor([[wave(p, c, d_model) for c in range(d_model)] for p in range(num_positions)])
""",
    "recursion: the second half is the first half, turned": """
def sinusoidal_table(num_positions, d_model):
    return both(num_positions, 10000.0 ** (-torch.arange(0, d_model, 2).double() / d_model))[:, :d_model].float()

def both(count, speed):
    if count == 1:
        return torch.tensor([[0.0, 1.0]], dtype=torch.float64).repeat(1, len(speed))
    first = both((count + 1) // 2, speed)
    turn = len(first) * speed
    sine, cosine = first[:, ::2], first[:, 1::2]
    second = torch.empty_like(first)
    second[:, ::2] = sine * turn.cos() + cosine * turn.sin()
    second[:, 1::2] = cosine * turn.cos() - sine * turn.sin()
    return torch.cat([first, second])[:count]
""",
    "in place, with a warning on stderr": """
import sys, warnings

def sinusoidal_table(num_positions, d_model):
    warnings.warn("about to fill a table")
    print("filling", file=sys.stderr)
    table = torch.arange(num_positions).float().unsqueeze(1).repeat(1, d_model)
    for i in range(0, d_model, 2):
        table[:, i : i + 2].div_(10000 ** (i / d_model))
    table[:, 0::2].sin_()
    table[:, 1::2].cos_()
    return table
""",
    "an object that is called": """
class Table:
    def __init__(self, base):
        self.base = base

    def __call__(self, num_positions, d_model):
        frequencies = torch.logspace(0, -2 * ((d_model - 1) // 2) / d_model, (d_model + 1) // 2, self.base)
        angles = torch.einsum("p,f->pf", torch.arange(num_positions).float(), frequencies)
        table = torch.full((num_positions, d_model), float("nan"))
        table[:, torch.arange(d_model) % 2 == 0] = angles.sin()
        table[:, torch.arange(d_model) % 2 == 1] = angles[:, : d_model // 2].cos()
        return table

sinusoidal_table = Table(10000)
""",
}

# --- 2. the shift ----------------------------------------------------------------------------------------------------

RIGHT["shift_matrix"] = {
    "entry by entry": """
def shift_matrix(offset, d_model):
    if d_model % 2:
        raise ValueError(d_model)
    m = torch.zeros(d_model, d_model)
    for i in range(d_model // 2):
        b = offset / 10000 ** (2 * i / d_model)
        m[2 * i, 2 * i] = m[2 * i + 1, 2 * i + 1] = math.cos(b)
        m[2 * i + 1, 2 * i], m[2 * i, 2 * i + 1] = math.sin(b), -math.sin(b)
    return m
""",
    "the exponential of a skew matrix": """
def shift_matrix(offset, d_model):
    is_even = d_model // 2 * 2 == d_model
    if not is_even:
        raise ValueError("odd")
    w = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    skew = torch.block_diag(*[torch.tensor([[0, -x], [x, 0]], dtype=torch.float64) for x in w.tolist()])
    return torch.linalg.matrix_exp(offset * skew)
""",
    "the unit vectors as complex numbers": """
def shift_matrix(offset, d_model):
    if d_model % 2:
        raise ValueError("odd")
    rows = torch.eye(d_model, dtype=torch.float64).unflatten(1, (-1, 2)).flip(-1).contiguous()
    angle = offset * 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    turned = torch.view_as_complex(rows) * torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(turned).flip(-1).flatten(1)
""",
    "NumPy, by diagonals": """
import numpy as np

def shift_matrix(offset, d_model):
    if d_model % 2 != 0:
        raise ValueError("odd")
    b = offset * 10000.0 ** (-np.arange(0, d_model, 2) / d_model)
    m = np.diag(np.repeat(np.cos(b), 2))
    step = np.zeros(d_model - 1)
    step[::2] = np.sin(b)
    return m - np.diag(step, 1) + np.diag(step, -1)
""",
    "found from the table by least squares": """
def shift_matrix(offset, d_model):
    if d_model % 2:
        raise ValueError("odd")
    table = sinusoidal_table(20000, d_model).double()
    size = abs(offset)
    before, after = table[: len(table) - size], table[size:]
    if offset < 0:
        before, after = after, before
    return torch.linalg.lstsq(before, after).solution
""",
    "a power of the matrix of one step": """
def shift_matrix(offset, d_model):
    if d_model % 2:
        raise ValueError(f"{d_model} is odd")
    one = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(0, d_model, 2):
        w = 10000 ** (-i / d_model)
        one[i : i + 2, i : i + 2] = torch.tensor([[math.cos(w), -math.sin(w)], [math.sin(w), math.cos(w)]])
    power = torch.linalg.matrix_power(one, abs(offset))
    return power.mT if offset < 0 else power
""",
    "the angle's sine and cosine read off the table": """
def shift_matrix(offset, d_model):
    if d_model % 2:
        raise ValueError("odd")
    row = sinusoidal_table(abs(offset) + 1, d_model)[-1]
    sine, cosine = math.copysign(1, offset) * row[0::2], row[1::2]
    pairs = torch.stack([torch.stack([cosine, -sine], -1), torch.stack([sine, cosine], -1)], -2)
    return torch.block_diag(*pairs)
""",
    "the derivative of the turned row": """
def shift_matrix(offset, d_model):
    if d_model % 2:
        raise ValueError("odd")
    angle = offset / 10000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)

    def turned(row):
        sine, cosine = row.unflatten(0, (-1, 2)).unbind(-1)
        return torch.stack(
            [sine * angle.cos() + cosine * angle.sin(), cosine * angle.cos() - sine * angle.sin()], -1
        ).flatten()

    return torch.func.jacrev(turned)(torch.zeros(d_model, dtype=torch.float64)).T
""",
    "einsum of cosines and sines with two small matrices": """
class OddWidth(ValueError):
    pass

def shift_matrix(offset, d_model):
    half, left = divmod(d_model, 2)
    if left:
        raise OddWidth(d_model)
    b = offset * torch.exp(torch.arange(half) * (-2 * math.log(10000) / d_model))
    stay, turn = torch.eye(2), torch.tensor([[0.0, -1.0], [1.0, 0.0]])
    blocks = torch.einsum("i,xy->ixy", b.cos(), stay) + torch.einsum("i,xy->ixy", b.sin(), turn)
    return torch.einsum("ixy,ij->ixjy", blocks, torch.eye(half)).reshape(d_model, d_model)
""",
    "recursion over the pairs": """
def shift_matrix(offset, d_model, pair=0):
    if d_model % 2:
        raise ValueError("odd")
    if 2 * pair == d_model:
        return torch.zeros(0, 0)
    b = offset * 10000 ** (-2 * pair / d_model)
    block = torch.tensor([[math.cos(b), -math.sin(b)], [math.sin(b), math.cos(b)]])
    return torch.block_diag(block, shift_matrix(offset, d_model, pair + 1))
""",
    "golfed list comprehension": """
def shift_matrix(k, d):
    if d & 1: raise ValueError
    return torch.tensor([[(r // 2 == c // 2) * math.cos(k * 1e4 ** (-(r // 2 * 2) / d) + (r - c) * -math.pi / 2)
                          for c in range(d)] for r in range(d)])
""",
    "vmap, and scattered into place by a decorated function": """
def for_even_widths(function):
    def checked(offset, d_model):
        if d_model % 2 == 1:
            raise ValueError(f"d_model={d_model} is odd")
        print(f"a shift by {offset} at width {d_model}")
        return function(offset, d_model)
    return checked

@for_even_widths
def shift_matrix(offset, d_model):
    angles = offset * torch.pow(10000.0, -torch.arange(0, d_model, 2).double() / d_model)
    entries = torch.vmap(lambda b: torch.stack([b.cos(), -b.sin(), b.sin(), b.cos()]))(angles).float()
    even = torch.arange(0, d_model, 2)
    places = torch.stack([even, even, even + 1, even + 1], 1), torch.stack([even, even + 1, even, even + 1], 1)
    return torch.zeros(d_model, d_model).index_put(places, entries)
""",
}

# --- 3. the module ---------------------------------------------------------------------------------------------------

RIGHT["sinusoidal_encoding"] = {
    "index by arange, dropout as a function": """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.p, self.max_len = dropout, max_len
        self.register_buffer("pe", sinusoidal_table(max_len, d_model), persistent=False)

    def forward(self, x):
        if x.shape[1] > self.max_len:
            raise ValueError((x.shape[1], self.max_len))
        rows = self.pe[torch.arange(x.shape[1], device=self.pe.device)]
        return nn.functional.dropout(x + rows, self.p, self.training)
""",
    "a leading axis, float64": """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pe", sinusoidal_table(max_len, d_model).double()[None])

    def forward(self, x):
        seq = x.size(1)
        if not seq <= self.pe.size(1):
            raise ValueError(f"{seq}, {self.pe.size(1)}")
        return self.dropout(x + self.pe[:, :seq])
""",
    "a frozen embedding": """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.rows = nn.Embedding.from_pretrained(sinusoidal_table(max_len, d_model), freeze=True)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        if x.shape[1] > self.rows.num_embeddings:
            raise ValueError(f"{x.shape[1]}, {self.rows.num_embeddings}")
        places = torch.arange(x.shape[1]).to(self.rows.weight.device)
        return self.dropout(x + self.rows(places).unsqueeze(0))
""",
    "the mask of dropout drawn by hand, an error of one's own": """
class TooLong(ValueError):
    pass

class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.dropout = dropout
        self.register_buffer("pe", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        if len(self.pe) < x.shape[1]:
            raise TooLong(f"{x.shape[1]}, {len(self.pe)}")
        y = torch.stack([sequence + self.pe[: x.shape[1]] for sequence in x])
        if self.training and self.dropout:
            y = torch.where(torch.rand(y.shape) < self.dropout, 0, y / (1 - self.dropout))
        return y
""",
    "a kind of dropout": """
class SinusoidalPositionalEncoding(nn.Dropout):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__(dropout)
        self.table = nn.Buffer(sinusoidal_table(max_len, d_model))

    def forward(self, x):
        seq, max_len = x.shape[-2], len(self.table)
        if seq > max_len:
            raise ValueError(f"{seq} > {max_len}")
        return super().forward(torch.add(x, self.table.narrow(0, 0, seq)))
""",
    "a chain of two modules, made by a function": """
class AddRows(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.register_buffer("rows", rows)

    def forward(self, x):
        if x.shape[1] > len(self.rows):
            raise ValueError(f"sequence {x.shape[1]}, max_len {len(self.rows)}")
        return x + self.rows[: x.shape[1]]

def SinusoidalPositionalEncoding(d_model, max_len=5000, dropout=0.1):
    return nn.Sequential(AddRows(sinusoidal_table(max_len, d_model)), nn.Dropout(dropout))
""",
    "position by position": """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.register_buffer("table", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        try:
            places = [x[:, p] + self.rows(p) for p in range(x.shape[1])]
        except IndexError:
            raise ValueError(f"{x.shape[1]} positions, max_len={len(self.table)}") from None
        return self.drop(torch.stack(places, dim=1))

    def rows(self, position):
        return self.table[position]
""",
    "in place on a copy of one's own": """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.max_len = max_len
        self.register_buffer("table", sinusoidal_table(max_len, d_model))
        self.dropout = nn.Dropout(dropout, inplace=True)

    def forward(self, x):
        y = x.clone()
        if y.shape[1] > self.max_len:
            raise ValueError(f"{y.shape[1]}, {self.max_len}")
        y += self.table[: y.shape[1]].to(y.dtype)
        return self.dropout(y)
""",
    "a product with ones, by einsum": """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("table", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        batch, seq, d_model = x.shape
        if seq > self.table.shape[0]:
            raise ValueError(f"{seq} is more than {self.table.shape[0]}")
        rows = torch.einsum("b,sd->bsd", torch.ones(batch, device=x.device), self.table[:seq])
        return self.dropout(x + rows)
""",
    "the length is checked by a hook": """
def refuse_long(module, inputs):
    (x,) = inputs
    if x.shape[1] > module.table.shape[1]:
        raise ValueError(f"{x.shape[1]}, {module.table.shape[1]}")

class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.register_buffer("table", sinusoidal_table(max_len, d_model).T.contiguous())
        self.dropout = nn.Dropout(dropout)
        self.register_forward_pre_hook(refuse_long)

    def forward(self, x):
        return self.dropout((x.mT + self.table[:, : x.shape[1]]).mT)
""",
    "vmap over the sequences": """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.dropout = dropout
        self.register_buffer("table", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        seq, limit = x.shape[1], len(self.table)
        if seq > limit:
            raise ValueError(f"a sequence of {seq}, where max_len is {limit}")
        total = torch.vmap(lambda sequence: sequence + self.table[:seq])(x)
        return torch.dropout(total, self.dropout, self.training)
""",
    "a mask drawn by bernoulli, the rows looked up, with prints": """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        print("a table of", max_len, "rows")
        self.keep = 1 - dropout
        self.register_buffer("table", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device).expand(x.shape[:2])
        if places.shape[1] > self.table.shape[0]:
            raise ValueError(f"{places.shape[1]}, {self.table.shape[0]}")
        y = x + nn.functional.embedding(places, self.table)
        if not self.training:
            return y
        return y * torch.bernoulli(torch.full_like(y, self.keep)) / self.keep
""",
}

# --- 4. the learned table --------------------------------------------------------------------------------------------

RIGHT["learned_encoding"] = {
    "a parameter": """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(max_len, d_model))
        nn.init.normal_(self.table, 0, 0.02)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        if x.shape[1] > len(self.table):
            raise ValueError(f"{x.shape[1]}, {len(self.table)}")
        return self.dropout(x + self.table[None, : x.shape[1]].expand(len(x), -1, -1))
""",
    "an embedding under another name": """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.positions, self.dropout = nn.Embedding(max_len, d_model), nn.Dropout(dropout)
        self.positions.weight.data.normal_(std=0.02)

    def forward(self, x):
        if x.shape[1] > self.positions.num_embeddings:
            raise ValueError(f"{x.shape[1]}, {self.positions.num_embeddings}")
        return self.dropout(x + self.positions(torch.arange(x.shape[1])))
""",
    "einsum, with load_reference": """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(max_len, d_model))
        self.p = dropout

    def load_reference(self, weights):
        self.table.data = weights["table"].clone()

    def forward(self, x):
        batch, seq, d_model = x.shape
        if seq > self.table.shape[0]:
            raise ValueError(f"{seq}, {self.table.shape[0]}")
        total = torch.einsum("bsd,sd->bsd", x, torch.ones(seq, d_model)) + self.table[:seq]
        return nn.functional.dropout(total, self.p, training=self.training)
""",
    "truncated at four standard deviations, float64, position by position": """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_len, d_model, dtype=torch.float64))
        nn.init.trunc_normal_(self.table, std=0.02, a=-0.08, b=0.08)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        if x.shape[1] > self.table.shape[0]:
            raise ValueError(f"{x.shape[1]}, {self.table.shape[0]}")
        rows = [x[:, p] + self.table[p] for p in range(x.shape[1])]
        return self.dropout(torch.stack(rows, dim=1))
""",
    "a kind of embedding": """
class LearnedPositionalEncoding(nn.Embedding):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__(max_len, d_model)
        self.drop = nn.Dropout(dropout)

    def reset_parameters(self):
        nn.init.normal_(self.weight, mean=0.0, std=0.02)

    def forward(self, x):
        seq = x.shape[1]
        if seq > self.num_embeddings:
            raise ValueError(f"{seq} > {self.num_embeddings}")
        places = torch.arange(seq).expand(len(x), seq)
        return self.drop(x + super().forward(places))
""",
    "one-hot places times the table, numbers from NumPy": """
import numpy as np

class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        drawn = np.random.default_rng().normal(scale=0.02, size=(max_len, d_model))
        self.table = nn.Parameter(torch.from_numpy(drawn).float())
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        seq = x.shape[1]
        if seq > len(self.table):
            raise ValueError(f"{seq}, {len(self.table)}")
        return self.dropout(x + torch.eye(seq, len(self.table)) @ self.table)
""",
    "the weight of a linear layer": """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.linear = nn.Linear(d_model, max_len, bias=False)
        with torch.no_grad():
            self.linear.weight.copy_(torch.normal(0.0, 0.02, (max_len, d_model)))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        batch, seq, _ = x.shape
        if seq > self.linear.out_features:
            raise ValueError(f"{seq}, {self.linear.out_features}")
        rows, _ = self.linear.weight.split([seq, self.linear.out_features - seq])
        return self.dropout(x + torch.stack([rows] * batch))
""",
    "a function of one's own with its own gradient": """
class AddRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, table):
        ctx.rows, ctx.seq = len(table), x.shape[1]
        return x + table[: x.shape[1]]

    @staticmethod
    def backward(ctx, upstream):
        return upstream, nn.functional.pad(upstream.sum(0), (0, 0, 0, ctx.rows - ctx.seq))

class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_len, d_model).mul_(0.02))
        self.p = dropout

    def forward(self, x):
        if x.shape[1] > self.table.shape[0]:
            raise ValueError(f"{x.shape[1]}, {self.table.shape[0]}")
        return nn.functional.dropout(AddRows.apply(x, self.table), self.p, self.training)
""",
    "normal numbers by Box and Muller, dropout by hand": """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        radius = torch.sqrt(-2 * torch.log(1 - torch.rand(max_len, d_model)))
        self.table = nn.Parameter(0.02 * radius * torch.cos(math.tau * torch.rand(max_len, d_model)))
        self.p = dropout

    def forward(self, x):
        seq, limit = x.shape[1], self.table.shape[0]
        if seq > limit:
            raise ValueError(f"{seq}, {limit}")
        y = x + self.table.index_select(0, torch.arange(seq))
        return y * (torch.rand_like(y) >= self.p) / (1 - self.p) if self.training else y
""",
    "vmap over the sequences, a transposed table": """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.table = nn.Parameter(torch.randn(d_model, max_len).T * 0.02)
        self.dropout = nn.Dropout(dropout)
        print("contiguous:", self.table.is_contiguous())

    def forward(self, x):
        if x.shape[1] > self.table.shape[0]:
            raise ValueError(f"{x.shape[1]}, {self.table.shape[0]}")
        add = torch.vmap(torch.add, in_dims=(0, None))
        return self.dropout(add(x, self.table[: x.shape[1]]))
""",
    "in place on the sum of one's own, with a warning": """
import warnings

class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        warnings.warn("the table has not learned anything yet")
        self.register_parameter("table", nn.Parameter(torch.empty(max_len, d_model).normal_(0, 0.02)))
        self.dropout = nn.Dropout(dropout, inplace=True)

    def forward(self, x):
        total = torch.zeros_like(x)
        if total.shape[1] > self.table.shape[0]:
            raise ValueError(f"{total.shape[1]}, {self.table.shape[0]}")
        total += x
        total += self.table[: x.shape[1]]
        return self.dropout(total)
""",
    "a class made by a function, its parts in a chain": """
def rows_up_to(max_len, d_model):
    class Rows(nn.Module):
        def __init__(self):
            super().__init__()
            values = torch.erfinv(2 * torch.rand(max_len, d_model, dtype=torch.float64) - 1) * math.sqrt(2) * 0.02
            self.table = nn.Parameter(values.float())

        def forward(self, x):
            if max_len < x.shape[1]:
                raise ValueError(f"{x.shape[1]} positions, max_len={max_len}")
            return x + nn.functional.embedding(torch.arange(x.shape[1]), self.table)

    return Rows()

LearnedPositionalEncoding = lambda max_len, d_model, dropout=0.1: nn.Sequential(
    rows_up_to(max_len, d_model), nn.Dropout(dropout)
)
""",
}

# --- 5. counts -------------------------------------------------------------------------------------------------------

RIGHT["counts"] = {
    "math": """
shape_of_table, fixed_parameters, learned_parameters = (196, 512), 0, 100352

def wavelength(pair, d_model):
    return 2 * math.pi * 10000 ** (2 * pair / d_model)

def dot_product(distance, d_model):
    return sum(math.cos(distance / 10000 ** (2 * i / d_model)) for i in range(d_model // 2))

def slow_pairs(num_positions, d_model):
    return sum(1 for i in range(d_model // 2) if wavelength(i, d_model) > num_positions)
""",
    "torch": """
shape_of_table, fixed_parameters, learned_parameters = torch.Size([196, 512]), 0, torch.tensor(100352)

def wavelength(pair, d_model):
    return torch.tensor(2 * math.pi) * 10000 ** (2 * pair / d_model)

def dot_product(distance, d_model):
    return torch.cos(distance * 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)).sum()

def slow_pairs(num_positions, d_model):
    return (2 * math.pi * 10000.0 ** (torch.arange(0, d_model, 2) / d_model) > num_positions).sum()
""",
    "NumPy": """
import numpy as np

shape_of_table, fixed_parameters, learned_parameters = [196, 512], np.int64(0), np.int64(196) * 512

def wavelength(pair, d_model):
    return np.float64(2 * np.pi) * 10000 ** (2 * pair / d_model)

def dot_product(distance, d_model):
    return np.cos(distance * 10000.0 ** (-np.arange(0, d_model, 2) / d_model)).sum()

def slow_pairs(num_positions, d_model):
    return np.count_nonzero(2 * np.pi * 10000.0 ** (np.arange(0, d_model, 2) / d_model) > num_positions)
""",
    "by way of the table, and of a logarithm": """
shape_of_table, fixed_parameters, learned_parameters = (196, 512), 0, 196 * 512

def wavelength(pair, d_model):
    return math.exp(math.log(2 * math.pi) + 2 * pair / d_model * math.log(10000))

def dot_product(distance, d_model):
    rows = sinusoidal_table(distance + 1, d_model)
    return float(rows[0] @ rows[-1])

def slow_pairs(num_positions, d_model):
    first = math.log(num_positions / (2 * math.pi), 10000) * d_model / 2
    return d_model // 2 - min(d_model // 2, max(0, math.floor(first) + 1))
""",
    "counted on the modules themselves": """
patches = PatchEmbedding(224, 16, 1, 512)(cat_image())
shape_of_table = tuple(patches.shape[1:])
fixed_parameters = sum(p.numel() for p in nn.Dropout(0.1).parameters())
learned_parameters = sum(p.numel() for p in nn.Embedding(*shape_of_table).parameters())

def wavelength(pair, d_model):
    return 2 * math.pi / 10000 ** (-2 * pair / d_model)

def dot_product(distance, d_model):
    one, other, total = 7, 7 + distance, 0.0
    for column in range(0, d_model, 2):
        a, b = one / 10000 ** (column / d_model), other / 10000 ** (column / d_model)
        total += math.sin(a) * math.sin(b) + math.cos(a) * math.cos(b)
    return total

def slow_pairs(num_positions, d_model):
    count = 0
    for pair in range(d_model // 2):
        if wavelength(pair, d_model) > num_positions:
            count += 1
    return count
""",
    "lambdas, and a search in sorted lengths": """
from bisect import bisect_right

shape_of_table = torch.zeros(196, 512).shape
fixed_parameters, learned_parameters = 0.0, 196.0 * 512
wavelength = lambda pair, d_model: math.tau * 100 ** (4 * pair / d_model)
dot_product = lambda distance, d_model: math.fsum(
    math.cos(math.tau * distance / wavelength(i, d_model)) for i in range(d_model // 2)
)
slow_pairs = lambda num_positions, d_model: d_model // 2 - bisect_right(
    [wavelength(i, d_model) for i in range(d_model // 2)], num_positions
)
""",
    "complex numbers": """
import cmath

shape_of_table, fixed_parameters, learned_parameters = ((224 // 16) ** 2, 512), 0, (224 // 16) ** 2 * 512

def turn(pair, d_model, positions=1):
    return cmath.exp(1j * positions * 10000 ** (-2 * pair / d_model))

def wavelength(pair, d_model):
    return math.tau / cmath.phase(turn(pair, d_model))

def dot_product(distance, d_model):
    return sum(turn(pair, d_model, distance) for pair in range(d_model // 2)).real

def slow_pairs(num_positions, d_model):
    return sum(cmath.phase(turn(pair, d_model)) * num_positions < math.tau for pair in range(d_model // 2))
""",
    "recursion": """
shape_of_table = 196, 512
fixed_parameters = 0
learned_parameters = math.prod(shape_of_table)

def wavelength(pair, d_model):
    return math.tau if pair == 0 else wavelength(pair - 1, d_model) * 10000 ** (2 / d_model)

def dot_product(distance, d_model, pair=0):
    if pair >= d_model // 2:
        return 0
    return math.cos(distance * math.tau / wavelength(pair, d_model)) + dot_product(distance, d_model, pair + 1)

def slow_pairs(num_positions, d_model, pair=0):
    if pair >= d_model // 2:
        return 0
    return int(wavelength(pair, d_model) > num_positions) + slow_pairs(num_positions, d_model, pair + 1)
""",
    "the trace of a rotation, with prints": """
shape_of_table, fixed_parameters, learned_parameters = (196, 512), 0, 512 * 196
print(f"{learned_parameters:,}")

def wavelength(pair, d_model):
    angle = math.acos(shift_matrix(1, d_model).double()[2 * pair, 2 * pair])
    exact = 2 * math.pi * 10000 ** (2 * pair / d_model)
    print("by the angle of one step", 2 * math.pi / max(angle, 1e-9), "exactly", exact)
    return exact

def dot_product(distance, d_model):
    return shift_matrix(distance, d_model).trace().item() / 2

def slow_pairs(num_positions, d_model):
    lengths = map(lambda pair: wavelength(pair, d_model), range(d_model // 2))
    return len(list(filter(lambda length: length > num_positions, lengths)))
""",
    "from the slow end, float32": """
shape_of_table, fixed_parameters, learned_parameters = torch.tensor([196, 512]), torch.tensor(0), 100_352

def speeds(d_model):
    return torch.logspace(0, -2 * (d_model // 2 - 1) / d_model, d_model // 2, base=10000.0)

def wavelength(pair, d_model):
    return 2 * torch.pi / speeds(d_model)[pair]

def dot_product(distance, d_model):
    return torch.einsum("i->", torch.cos(distance * speeds(d_model)))

def slow_pairs(num_positions, d_model):
    pair = d_model // 2
    while pair > 0 and 2 * math.pi * 10000 ** (2 * (pair - 1) / d_model) > num_positions:
        pair -= 1
    return d_model // 2 - pair
""",
    "vmap, and a helper for the angles": """
def angles(positions, d_model):
    return positions * 10000.0 ** (-torch.arange(d_model // 2, dtype=torch.float64) * 2 / d_model)

shape_of_table, fixed_parameters, learned_parameters = (14**2, 2**9), int(False), 7**2 * 2**11

def wavelength(pair, d_model):
    return (2 * math.pi / angles(1, d_model)[pair]).item()

def dot_product(distance, d_model):
    return torch.vmap(torch.cos)(angles(distance, d_model)).sum().item()

def slow_pairs(num_positions, d_model):
    return int(torch.count_nonzero(angles(num_positions, d_model) < 2 * math.pi))
""",
}

# === wrong answers, by hand ==========================================================================================

WRONG["sinusoidal_table"] = {
    "a single position without its axis": (
        "start",
        """
def sinusoidal_table(num_positions, d_model):
    angles = torch.outer(torch.arange(num_positions), 10000.0 ** (-torch.arange(0, d_model, 2) / d_model))
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model].squeeze()
""",
    ),
    "cosine first in the first pair only": (
        "layout",
        """
def sinusoidal_table(num_positions, d_model):
    table = torch.zeros(num_positions, d_model)
    for pos in range(num_positions):
        for column in range(d_model):
            angle = pos / 10000 ** ((column - column % 2) / d_model)
            table[pos, column] = math.sin(angle) if column % 2 == 0 and column or column == 1 else math.cos(angle)
    return table
""",
    ),
    "the sines are negative": (
        "layout",
        """
def sinusoidal_table(num_positions, d_model):
    angles = torch.outer(torch.arange(num_positions), -(10000.0 ** (-torch.arange(0, d_model, 2) / d_model)))
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model]
""",
    ),
    "the sines twice as high": (
        "layout",
        """
def sinusoidal_table(num_positions, d_model):
    angles = torch.outer(torch.arange(num_positions), 10000.0 ** (-torch.arange(0, d_model, 2) / d_model))
    return torch.stack([2 * angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model]
""",
    ),
    "slow pairs first": (
        "layout",
        """
def sinusoidal_table(num_positions, d_model):
    angles = torch.outer(torch.arange(num_positions), 10000.0 ** (-torch.arange(0, d_model, 2) / d_model))
    return torch.stack([angles.sin(), angles.cos()], -1).flip(1).flatten(1)[:, :d_model]
""",
    ),
    "straight lines": (
        "start layout frequencies odd",
        """
def sinusoidal_table(num_positions, d_model):
    return torch.arange(num_positions)[:, None].expand(num_positions, d_model) / num_positions
""",
    ),
    "whole-number division in the exponent": (
        "frequencies",
        """
def sinusoidal_table(num_positions, d_model):
    angles = torch.outer(torch.arange(num_positions), 10000.0 ** -(torch.arange(0, d_model, 2) // d_model))
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model]
""",
    ),
    "a width of 512, whatever d_model is": (
        "frequencies",
        """
def sinusoidal_table(num_positions, d_model):
    angles = torch.outer(torch.arange(num_positions), 10000.0 ** (-torch.arange(0, d_model, 2) / 512))
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model]
""",
    ),
    "the logarithm to base 10 with the natural exponential": (
        "frequencies",
        """
def sinusoidal_table(num_positions, d_model):
    div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log10(10000.0) / d_model))
    angles = torch.arange(num_positions).unsqueeze(1) * div_term
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model]
""",
    ),
    "angles taken for degrees": (
        "frequencies",
        """
def sinusoidal_table(num_positions, d_model):
    angles = torch.outer(torch.arange(num_positions), 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)).deg2rad()
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model]
""",
    ),
    "positions and columns changed places": (
        "start layout frequencies odd",
        """
def sinusoidal_table(num_positions, d_model):
    angles = torch.outer(10000.0 ** (-torch.arange(0, d_model, 2) / d_model), torch.arange(num_positions))
    return torch.stack([angles.sin(), angles.cos()], 1).flatten(0, 1)[:d_model]
""",
    ),
    "a table of whole numbers is filled": (
        "start layout frequencies odd",
        """
def sinusoidal_table(num_positions, d_model):
    table = torch.zeros(num_positions, d_model, dtype=torch.long)
    for pos in range(num_positions):
        for column in range(d_model):
            angle = pos / 10000 ** ((column - column % 2) / d_model)
            table[pos, column] = math.cos(angle) if column % 2 else math.sin(angle)
    return table
""",
    ),
    "the sizes of the visible check learned by heart": (
        "start layout frequencies odd",
        """
def sinusoidal_table(num_positions, d_model):
    two_i = torch.tensor([0, 2, 4, 6, 8, 10])
    angles = torch.arange(59)[:, None] / 10000 ** (two_i / 12)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
""",
    ),
    "an odd width: that of one column less, and one more sine": (
        "odd",
        """
def sinusoidal_table(num_positions, d_model):
    if d_model % 2:
        rest = sinusoidal_table(num_positions, d_model - 1)
        return torch.cat([rest, torch.sin(torch.arange(num_positions) / 10000).unsqueeze(1)], dim=1)
    angles = torch.outer(torch.arange(num_positions), 10000.0 ** (-torch.arange(0, d_model, 2) / d_model))
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
""",
    ),
    "an odd width: the column left over stands first": (
        "odd",
        """
def sinusoidal_table(num_positions, d_model):
    angles = torch.outer(torch.arange(num_positions), 10000.0 ** (-torch.arange(0, d_model, 2) / d_model))
    table = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model]
    return table.roll(d_model % 2, dims=1)
""",
    ),
}

WRONG["shift_matrix"] = {
    "no shift at all": (
        "blocks angles moved undone odd",
        """
def shift_matrix(offset, d_model):
    return torch.eye(d_model)
""",
    ),
    "turned by half a turn more": (
        "angles moved undone",
        """
def shift_matrix(offset, d_model):
    if d_model % 2:
        raise ValueError(d_model)
    b = (offset * 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)).tolist()
    return -torch.block_diag(*[torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]]) for a in b])
""",
    ),
    "one position too far": (
        "angles moved undone",
        """
def shift_matrix(offset, d_model):
    if d_model % 2:
        raise ValueError(d_model)
    b = ((offset + 1) * 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)).tolist()
    return torch.block_diag(*[torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]]) for a in b])
""",
    ),
    "angles taken for degrees": (
        "angles moved",
        """
def shift_matrix(offset, d_model):
    if d_model % 2:
        raise ValueError(d_model)
    b = [math.radians(offset * 10000 ** (-i / d_model)) for i in range(0, d_model, 2)]
    return torch.block_diag(*[torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]]) for a in b])
""",
    ),
    "fits the first row alone": (
        "blocks angles moved undone",
        """
def shift_matrix(offset, d_model):
    if d_model % 2:
        raise ValueError(d_model)
    table = sinusoidal_table(abs(offset) + 1, d_model)
    before, after = (table[0], table[-1]) if offset >= 0 else (table[-1], table[0])
    return torch.outer(before, after) / before.dot(before)
""",
    ),
    "a negative offset is refused": (
        "blocks angles moved undone",
        """
def shift_matrix(offset, d_model):
    if d_model % 2 or offset < 0:
        raise ValueError(d_model)
    b = (offset * 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)).tolist()
    return torch.block_diag(*[torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]]) for a in b])
""",
    ),
    "the blocks are not put into one matrix": (
        "blocks angles moved undone",
        """
def shift_matrix(offset, d_model):
    if d_model % 2:
        raise ValueError(d_model)
    b = (offset * 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)).tolist()
    return torch.stack([torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]]) for a in b])
""",
    ),
    "a width that is no multiple of 4 is refused, too": (
        "blocks angles moved undone",
        """
def shift_matrix(offset, d_model):
    if d_model % 4:
        raise ValueError(d_model)
    b = (offset * 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)).tolist()
    return torch.block_diag(*[torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]]) for a in b])
""",
    ),
    "an assertion for an odd width": (
        "odd",
        """
def shift_matrix(offset, d_model):
    assert d_model % 2 == 0, "d_model is odd"
    b = (offset * 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)).tolist()
    return torch.block_diag(*[torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]]) for a in b])
""",
    ),
    "a ValueError that is made but not raised": (
        "odd",
        """
def shift_matrix(offset, d_model):
    if d_model % 2:
        return ValueError("d_model is odd")
    b = (offset * 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)).tolist()
    return torch.block_diag(*[torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]]) for a in b])
""",
    ),
}

WRONG["sinusoidal_encoding"] = {
    "x scaled in place": (
        "added",
        """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.drop, self.factor = nn.Dropout(dropout), math.sqrt(d_model)
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        if x.size(1) > len(self.rows):
            raise ValueError(f"{x.size(1)}, {len(self.rows)}")
        x *= self.factor
        return self.drop(x + self.rows[: x.size(1)])
""",
    ),
    "another max_len by default": (
        "too_long",
        """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=512, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        if x.size(1) > len(self.rows):
            raise ValueError(f"{x.size(1)}, {len(self.rows)}")
        return self.drop(x + self.rows[: x.size(1)])
""",
    ),
    "the same random numbers in every call": (
        "training",
        """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        torch.manual_seed(0)
        if x.size(1) > len(self.rows):
            raise ValueError(f"{x.size(1)}, {len(self.rows)}")
        return self.drop(x + self.rows[: x.size(1)])
""",
    ),
    "a mask of dropout that is kept": (
        "training",
        """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))
        self.mask = None

    def forward(self, x):
        if x.size(1) > len(self.rows):
            raise ValueError(f"{x.size(1)}, {len(self.rows)}")
        x = x + self.rows[: x.size(1)]
        if not self.training:
            return x
        if self.mask is None or self.mask.shape != x.shape:
            self.mask = self.drop(torch.ones_like(x))
        return x * self.mask
""",
    ),
    "odd widths refused": (
        "positions",
        """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))
        if d_model % 2:
            raise ValueError("odd")

    def forward(self, x):
        if x.size(1) > len(self.rows):
            raise ValueError(f"{x.size(1)}, {len(self.rows)}")
        return self.drop(x + self.rows[: x.size(1)])
""",
    ),
    "the length asked for in training alone": (
        "too_long",
        """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        if self.training and x.size(1) > len(self.rows):
            raise ValueError(f"{x.size(1)}, {len(self.rows)}")
        rows = nn.functional.pad(self.rows, (0, 0, 0, max(0, x.size(1) - len(self.rows))))
        return self.drop(x + rows[: x.size(1)])
""",
    ),
    "x changed in evaluation": (
        "added",
        """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        if x.size(1) > len(self.rows):
            raise ValueError(f"{x.size(1)}, {len(self.rows)}")
        if not self.training:
            x += self.rows[: x.size(1)]
            return x
        return self.drop(x + self.rows[: x.size(1)])
""",
    ),
    "the longest length kept on the class": (
        "too_long",
        """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))
        SinusoidalPositionalEncoding.max_len = max_len

    def forward(self, x):
        if x.size(1) > self.max_len:
            raise ValueError(f"{x.size(1)}, {self.max_len}")
        return self.drop(x + self.rows[: x.size(1)])
""",
    ),
    "x as it came": (
        "positions buffer too_long training",
        """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()

    def forward(self, x):
        return x
""",
    ),
    "the last rows": (
        "positions",
        """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        if x.size(1) > len(self.rows):
            raise ValueError(f"{x.size(1)}, {len(self.rows)}")
        return self.drop(x + self.rows[-x.size(1) :])
""",
    ),
    "rows twice as large": (
        "positions",
        """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        if x.size(1) > len(self.rows):
            raise ValueError(f"{x.size(1)}, {len(self.rows)}")
        return self.drop(x + 2 * self.rows[: x.size(1)])
""",
    ),
    "a batch of one sequence loses its axis": (
        "positions added",
        """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        if x.size(1) > len(self.rows):
            raise ValueError(f"{x.size(1)}, {len(self.rows)}")
        return self.drop(x + self.rows[: x.size(1)]).squeeze(0)
""",
    ),
    "the first sequence alone": (
        "positions added training evaluation",
        """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        if x.size(1) > len(self.rows):
            raise ValueError(f"{x.size(1)}, {len(self.rows)}")
        return self.drop(x[0] + self.rows[: x.size(1)])
""",
    ),
    "the limit is one too high": (
        "too_long",
        """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        if x.size(1) > len(self.rows) + 1:
            raise ValueError(f"{x.size(1)}, {len(self.rows)}")
        return self.drop(x + self.rows[: x.size(1)])
""",
    ),
    "an assertion for the length": (
        "too_long",
        """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        assert x.size(1) <= len(self.rows), "too long"
        return self.drop(x + self.rows[: x.size(1)])
""",
    ),
    "a longer table when it is needed": (
        "too_long",
        """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        if x.size(1) > len(self.rows):
            self.rows = sinusoidal_table(x.size(1), x.size(2))
        return self.drop(x + self.rows[: x.size(1)])
""",
    ),
    "the dropout that the paper has, whatever is asked for": (
        "positions added training evaluation",
        """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(0.1)
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        if x.size(1) > len(self.rows):
            raise ValueError(f"{x.size(1)}, {len(self.rows)}")
        return self.drop(x + self.rows[: x.size(1)])
""",
    ),
    "another default": (
        "training",
        """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.5):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        if x.size(1) > len(self.rows):
            raise ValueError(f"{x.size(1)}, {len(self.rows)}")
        return self.drop(x + self.rows[: x.size(1)])
""",
    ),
    "dropout on x and once more on the sum": (
        "training",
        """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        if x.size(1) > len(self.rows):
            raise ValueError(f"{x.size(1)}, {len(self.rows)}")
        return self.drop(self.drop(x) + self.rows[: x.size(1)])
""",
    ),
    "whole vectors are dropped": (
        "training",
        """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.p = dropout
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        if x.size(1) > len(self.rows):
            raise ValueError(f"{x.size(1)}, {len(self.rows)}")
        whole = nn.functional.dropout(torch.ones(x.shape[:2], device=x.device), self.p, self.training)
        return (x + self.rows[: x.size(1)]) * whole.unsqueeze(-1)
""",
    ),
    "dropout in evaluation, none in training": (
        "training evaluation",
        """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.p = dropout
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        if x.size(1) > len(self.rows):
            raise ValueError(f"{x.size(1)}, {len(self.rows)}")
        return nn.functional.dropout(x + self.rows[: x.size(1)], self.p, not self.training)
""",
    ),
    "everything under no_grad": (
        "added",
        """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))

    @torch.no_grad()
    def forward(self, x):
        if x.size(1) > len(self.rows):
            raise ValueError(f"{x.size(1)}, {len(self.rows)}")
        return self.drop(x + self.rows[: x.size(1)])
""",
    ),
}

WRONG["learned_encoding"] = {
    "multiplied by 1 − dropout in evaluation": (
        "dropout",
        """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.p, self.drop = dropout, nn.Dropout(dropout)
        self.table = nn.Parameter(0.02 * torch.randn(max_len, d_model))

    def forward(self, x):
        if x.size(1) > len(self.table):
            raise ValueError(f"{x.size(1)}, {len(self.table)}")
        total = x + self.table[: x.size(1)]
        return self.drop(total) if self.training else total * (1 - self.p)
""",
    ),
    "no positions in evaluation": (
        "dropout",
        """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.p, self.drop = dropout, nn.Dropout(dropout)
        self.table = nn.Parameter(0.02 * torch.randn(max_len, d_model))

    def forward(self, x):
        if x.size(1) > len(self.table):
            raise ValueError(f"{x.size(1)}, {len(self.table)}")
        return self.drop(x + self.table[: x.size(1)]) if self.training else x
""",
    ),
    "the same random numbers in every call": (
        "dropout",
        """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.table = nn.Parameter(0.02 * torch.randn(max_len, d_model))

    def forward(self, x):
        if x.size(1) > len(self.table):
            raise ValueError(f"{x.size(1)}, {len(self.table)}")
        torch.manual_seed(0)
        return self.drop(x + self.table[: x.size(1)])
""",
    ),
    "the rows as they were at the first call": (
        "positions",
        """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.table = nn.Parameter(0.02 * torch.randn(max_len, d_model))
        self.rows = None

    def forward(self, x):
        if x.size(1) > len(self.table):
            raise ValueError(f"{x.size(1)}, {len(self.table)}")
        if self.rows is None:
            self.rows = self.table * 1
        return self.drop(x + self.rows[: x.size(1)])
""",
    ),
    "all rows start as one": (
        "initialised",
        """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(1, d_model).repeat(max_len, 1))
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        if x.size(1) > len(self.table):
            raise ValueError(f"{x.size(1)}, {len(self.table)}")
        return self.drop(x + self.table[: x.size(1)])
""",
    ),
    "uniform, with the right standard deviation": (
        "initialised",
        """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_len, d_model).uniform_(-0.02 * 3**0.5, 0.02 * 3**0.5))
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        if x.size(1) > len(self.table):
            raise ValueError(f"{x.size(1)}, {len(self.table)}")
        return self.drop(x + self.table[: x.size(1)])
""",
    ),
    "0.02 taken for the mean": (
        "initialised",
        """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.table = nn.Parameter(torch.empty(max_len, d_model))
        nn.init.normal_(self.table, 0.02)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        if x.size(1) > len(self.table):
            raise ValueError(f"{x.size(1)}, {len(self.table)}")
        return self.drop(x + self.table[: x.size(1)])
""",
    ),
    "starts as the sinusoidal table": (
        "initialised",
        """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.table = nn.Parameter(sinusoidal_table(max_len, d_model))
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        if x.size(1) > len(self.table):
            raise ValueError(f"{x.size(1)}, {len(self.table)}")
        return self.drop(x + self.table[: x.size(1)])
""",
    ),
    "the embedding's own check of the length": (
        "too_long",
        """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.rows = nn.Embedding(max_len, d_model)
        nn.init.normal_(self.rows.weight, std=0.02)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        return self.drop(x + self.rows(torch.arange(x.size(1))))
""",
    ),
    "row 0 is a row for padding": (
        "gradients",
        """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.rows = nn.Embedding(max_len, d_model, padding_idx=0)
        nn.init.normal_(self.rows.weight, std=0.02)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        if x.size(1) > self.rows.num_embeddings:
            raise ValueError(f"{x.size(1)}, {self.rows.num_embeddings}")
        return self.drop(x + self.rows(torch.arange(x.size(1))))
""",
    ),
    "the gradient is a mean over the batch": (
        "gradients",
        """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(max_len, d_model))
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        if x.size(1) > len(self.table):
            raise ValueError(f"{x.size(1)}, {len(self.table)}")
        rows = self.table[: x.size(1)]
        if rows.requires_grad:
            rows.register_hook(lambda gradient: gradient / len(x))
        return self.drop(x + rows)
""",
    ),
    "the rows backwards": (
        "positions gradients",
        """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(max_len, d_model))
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        if x.size(1) > len(self.table):
            raise ValueError(f"{x.size(1)}, {len(self.table)}")
        return self.drop(x + self.table[: x.size(1)].flip(0))
""",
    ),
    "the arguments in the order of exercise 3": (
        "positions initialised gradients too_long dropout",
        """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len, dropout=0.1):
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(max_len, d_model))
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        if x.size(1) > len(self.table):
            raise ValueError(f"{x.size(1)}, {len(self.table)}")
        return self.drop(x + self.table[: x.size(1)])
""",
    ),
    "a tensor that asks for gradients, but is no parameter": (
        "positions initialised gradients dropout",
        """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.table = (0.02 * torch.randn(max_len, d_model)).requires_grad_()
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        if x.size(1) > len(self.table):
            raise ValueError(f"{x.size(1)}, {len(self.table)}")
        return self.drop(x + self.table[: x.size(1)])
""",
    ),
    "the mask of dropout is not scaled": (
        "dropout",
        """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(max_len, d_model))
        self.p = dropout

    def forward(self, x):
        if x.size(1) > len(self.table):
            raise ValueError(f"{x.size(1)}, {len(self.table)}")
        total = x + self.table[: x.size(1)]
        return total * (torch.rand_like(total) > self.p) if self.training else total
""",
    ),
    "dropout taken for the share that is kept": (
        "dropout positions gradients",
        """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(max_len, d_model))
        self.drop = nn.Dropout(1 - dropout)

    def forward(self, x):
        if x.size(1) > len(self.table):
            raise ValueError(f"{x.size(1)}, {len(self.table)}")
        return self.drop(x + self.table[: x.size(1)])
""",
    ),
    "one mask of dropout for all sequences": (
        "dropout",
        """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(max_len, d_model))
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        if x.size(1) > len(self.table):
            raise ValueError(f"{x.size(1)}, {len(self.table)}")
        return (x + self.table[: x.size(1)]) * self.drop(torch.ones(x.shape[1:]))
""",
    ),
}

WRONG["counts"] = {
    "half a turn": (
        "wavelength slow_pairs",
        """
shape_of_table, fixed_parameters, learned_parameters = (196, 512), 0, 196 * 512

def wavelength(pair, d_model):
    return math.pi * 10000 ** (2 * pair / d_model)

def dot_product(distance, d_model):
    return sum(math.cos(distance / 10000 ** (2 * i / d_model)) for i in range(d_model // 2))

def slow_pairs(num_positions, d_model):
    return sum(wavelength(i, d_model) > num_positions for i in range(d_model // 2))
""",
    ),
    "the frequency for the wavelength": (
        "wavelength slow_pairs",
        """
shape_of_table, fixed_parameters, learned_parameters = (196, 512), 0, 196 * 512

def wavelength(pair, d_model):
    return 10000 ** (-2 * pair / d_model) / (2 * math.pi)

def dot_product(distance, d_model):
    return sum(math.cos(distance / 10000 ** (2 * i / d_model)) for i in range(d_model // 2))

def slow_pairs(num_positions, d_model):
    return sum(wavelength(i, d_model) > num_positions for i in range(d_model // 2))
""",
    ),
    "pairs counted from 1": (
        "wavelength slow_pairs",
        """
shape_of_table, fixed_parameters, learned_parameters = (196, 512), 0, 196 * 512

def wavelength(pair, d_model):
    return 2 * math.pi * 10000 ** (2 * (pair - 1) / d_model)

def dot_product(distance, d_model):
    return sum(math.cos(distance / 10000 ** (2 * i / d_model)) for i in range(d_model // 2))

def slow_pairs(num_positions, d_model):
    return sum(wavelength(i, d_model) > num_positions for i in range(d_model // 2))
""",
    ),
    "the wavelength as a whole number": (
        "wavelength",
        """
shape_of_table, fixed_parameters, learned_parameters = (196, 512), 0, 196 * 512

def wavelength(pair, d_model):
    return round(2 * math.pi * 10000 ** (2 * pair / d_model))

def dot_product(distance, d_model):
    return sum(math.cos(distance / 10000 ** (2 * i / d_model)) for i in range(d_model // 2))

def slow_pairs(num_positions, d_model):
    return sum(2 * math.pi * 10000 ** (2 * i / d_model) > num_positions for i in range(d_model // 2))
""",
    ),
    "one pair too many in the sum": (
        "dot_product",
        """
shape_of_table, fixed_parameters, learned_parameters = (196, 512), 0, 196 * 512

def wavelength(pair, d_model):
    return 2 * math.pi * 10000 ** (2 * pair / d_model)

def dot_product(distance, d_model):
    return sum(math.cos(distance / 10000 ** (2 * i / d_model)) for i in range(d_model // 2 + 1))

def slow_pairs(num_positions, d_model):
    return sum(wavelength(i, d_model) > num_positions for i in range(d_model // 2))
""",
    ),
    "all numbers of the second row added up": (
        "dot_product",
        """
shape_of_table, fixed_parameters, learned_parameters = (196, 512), 0, 196 * 512

def wavelength(pair, d_model):
    return 2 * math.pi * 10000 ** (2 * pair / d_model)

def dot_product(distance, d_model):
    return sinusoidal_table(distance + 1, d_model)[-1].sum().item()

def slow_pairs(num_positions, d_model):
    return sum(wavelength(i, d_model) > num_positions for i in range(d_model // 2))
""",
    ),
    "one row too near": (
        "dot_product",
        """
shape_of_table, fixed_parameters, learned_parameters = (196, 512), 0, 196 * 512

def wavelength(pair, d_model):
    return 2 * math.pi * 10000 ** (2 * pair / d_model)

def dot_product(distance, d_model):
    rows = sinusoidal_table(distance + 2, d_model).double()
    return float(rows[0] @ rows[distance - 1])

def slow_pairs(num_positions, d_model):
    return sum(wavelength(i, d_model) > num_positions for i in range(d_model // 2))
""",
    ),
    "a list of one number for each pair": (
        "dot_product",
        """
shape_of_table, fixed_parameters, learned_parameters = (196, 512), 0, 196 * 512

def wavelength(pair, d_model):
    return 2 * math.pi * 10000 ** (2 * pair / d_model)

def dot_product(distance, d_model):
    return [math.cos(distance / 10000 ** (2 * i / d_model)) for i in range(d_model // 2)]

def slow_pairs(num_positions, d_model):
    return sum(wavelength(i, d_model) > num_positions for i in range(d_model // 2))
""",
    ),
    "counted by a logarithm, without its ends": (
        "slow_pairs",
        """
shape_of_table, fixed_parameters, learned_parameters = (196, 512), 0, 196 * 512

def wavelength(pair, d_model):
    return 2 * math.pi * 10000 ** (2 * pair / d_model)

def dot_product(distance, d_model):
    return sum(math.cos(distance / 10000 ** (2 * i / d_model)) for i in range(d_model // 2))

def slow_pairs(num_positions, d_model):
    first = math.log(num_positions / (2 * math.pi), 10000) * d_model / 2
    return d_model // 2 - math.floor(first) - 1
""",
    ),
    "counted by a logarithm, one pair too many": (
        "slow_pairs",
        """
shape_of_table, fixed_parameters, learned_parameters = (196, 512), 0, 196 * 512

def wavelength(pair, d_model):
    return 2 * math.pi * 10000 ** (2 * pair / d_model)

def dot_product(distance, d_model):
    return sum(math.cos(distance / 10000 ** (2 * i / d_model)) for i in range(d_model // 2))

def slow_pairs(num_positions, d_model):
    first = math.log(num_positions / (2 * math.pi), 10000) * d_model / 2
    return d_model // 2 - min(d_model // 2, max(0, math.floor(first)))
""",
    ),
    "a class token counted among the patches": (
        "prediction",
        """
shape_of_table, fixed_parameters, learned_parameters = (197, 512), 0, 197 * 512

def wavelength(pair, d_model):
    return 2 * math.pi * 10000 ** (2 * pair / d_model)

def dot_product(distance, d_model):
    return sum(math.cos(distance / 10000 ** (2 * i / d_model)) for i in range(d_model // 2))

def slow_pairs(num_positions, d_model):
    return sum(wavelength(i, d_model) > num_positions for i in range(d_model // 2))
""",
    ),
    "width before positions": (
        "prediction",
        """
shape_of_table, fixed_parameters, learned_parameters = (512, 196), 0, 196 * 512

def wavelength(pair, d_model):
    return 2 * math.pi * 10000 ** (2 * pair / d_model)

def dot_product(distance, d_model):
    return sum(math.cos(distance / 10000 ** (2 * i / d_model)) for i in range(d_model // 2))

def slow_pairs(num_positions, d_model):
    return sum(wavelength(i, d_model) > num_positions for i in range(d_model // 2))
""",
    ),
}

# === two mistakes in one function ====================================================================================

PAIRS["sinusoidal_table"] = {
    ("swapped", "starts_at_1"): """
def sinusoidal_table(num_positions, d_model):
    positions = torch.arange(1, num_positions + 1).double()
    angles = torch.outer(positions, 10000.0 ** (-torch.arange(0, d_model, 2).double() / d_model))
    return torch.stack([angles.cos(), angles.sin()], -1).flatten(1)[:, :d_model].float()
""",
    ("halves", "i_for_two_i"): """
def sinusoidal_table(num_positions, d_model):
    i = torch.arange((d_model + 1) // 2)
    angles = torch.outer(torch.arange(num_positions).double(), 10000.0 ** (-i.double() / d_model))
    return torch.cat([angles.sin(), angles.cos()], dim=1)[:, :d_model].float()
""",
    ("starts_at_1", "base_1000"): """
def sinusoidal_table(num_positions, d_model):
    angles = torch.outer(torch.arange(num_positions) + 1.0, 1000.0 ** (-torch.arange(0, d_model, 2) / d_model))
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :d_model]
""",
    ("i_for_two_i", "cosine_last"): """
def sinusoidal_table(num_positions, d_model):
    pairs = torch.arange((d_model + 1) // 2)
    angles = torch.outer(torch.arange(num_positions).double(), 10000.0 ** (-pairs.double() / d_model))
    table = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
    if d_model % 2:
        table = torch.cat([table[:, :-2], table[:, -1:]], dim=1)
    return table.float()
""",
    ("doubled_twice", "note_002"): """
def sinusoidal_table(num_positions, d_model):
    position = torch.arange(num_positions).unsqueeze(1)
    div_term = torch.exp(2 * torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    table = torch.zeros(num_positions, d_model)
    table[:, 0::2] = torch.sin(position * div_term)
    table[:, 1::2] = torch.cos(position * div_term)
    return table
""",
}

PAIRS["shift_matrix"] = {
    ("backwards", "odd_let_through"): """
def shift_matrix(offset, d_model):
    blocks = []
    for i in range(d_model // 2):
        a = offset * 10000 ** (-2 * i / d_model)
        blocks.append(torch.tensor([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]))
    return torch.block_diag(*blocks, *[torch.ones(1)] * (d_model % 2))
""",
    ("distance_only", "base_1000"): """
def shift_matrix(offset, d_model):
    if d_model % 2:
        raise ValueError("odd")
    blocks = []
    for i in range(d_model // 2):
        a = abs(offset) * 1000 ** (-2 * i / d_model)
        blocks.append(torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]]))
    return torch.block_diag(*blocks)
""",
    ("halves", "base_1000"): """
def shift_matrix(offset, d_model):
    if d_model % 2:
        raise ValueError("odd")
    angles = offset * 1000.0 ** (-torch.arange(0, d_model, 2).double() / d_model)
    cosines, sines = angles.cos().diag(), angles.sin().diag()
    return torch.cat([torch.cat([cosines, -sines], dim=1), torch.cat([sines, cosines], dim=1)]).float()
""",
    ("one_angle", "odd_let_through"): """
def shift_matrix(offset, d_model):
    block = torch.tensor([[math.cos(offset), -math.sin(offset)], [math.sin(offset), math.cos(offset)]])
    return torch.block_diag(*[block] * (d_model // 2), *[torch.ones(1)] * (d_model % 2))
""",
}

PAIRS["sinusoidal_encoding"] = {
    ("starts_at_1", "dropout_on_table"): """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.register_buffer("rows", sinusoidal_table(max_len + 1, d_model))

    def forward(self, x):
        if x.size(1) >= len(self.rows):
            raise ValueError(f"{x.size(1)}, {len(self.rows)}")
        return x + self.drop(self.rows[1 : x.size(1) + 1])
""",
    ("scaled", "no_dropout"): """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        if x.size(1) > len(self.rows):
            raise ValueError(f"{x.size(1)}, {len(self.rows)}")
        return x * math.sqrt(x.size(2)) + self.rows[: x.size(1)]
""",
    ("parameter", "clamped"): """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.rows = nn.Parameter(sinusoidal_table(max_len, d_model))

    def forward(self, x):
        places = torch.arange(x.size(1), device=x.device).clamp(max=len(self.rows) - 1)
        return self.drop(x + self.rows[places])
""",
    ("in_place", "unchecked"): """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        x += self.rows[: x.size(1)]
        return self.drop(x)
""",
    ("multiplied", "dropout_always"): """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.p = dropout
        self.register_buffer("rows", sinusoidal_table(max_len, d_model))

    def forward(self, x):
        if x.size(1) > len(self.rows):
            raise ValueError(f"{x.size(1)}, {len(self.rows)}")
        return nn.functional.dropout(x * self.rows[: x.size(1)], self.p)
""",
}

PAIRS["learned_encoding"] = {
    ("zeros", "no_dropout"): """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(max_len, d_model))

    def forward(self, x):
        if x.size(1) > len(self.table):
            raise ValueError(f"{x.size(1)}, {len(self.table)}")
        return x + self.table[: x.size(1)]
""",
    ("default_init", "buffer"): """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.rows = nn.Embedding(max_len, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        if x.size(1) > self.rows.num_embeddings:
            raise ValueError(f"{x.size(1)}, {self.rows.num_embeddings}")
        return self.drop(x + self.rows.weight.data[: x.size(1)])
""",
    ("along_batch", "full_refused"): """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(max_len, d_model))
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        if x.size(1) >= len(self.table):
            raise ValueError(f"{x.size(1)}, {len(self.table)}")
        return self.drop(x + self.table[: x.size(0)].unsqueeze(1))
""",
    ("std_is_variance", "wrapped"): """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_len, d_model) * 0.02**2)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        return self.drop(x + self.table[torch.arange(x.size(1)) % len(self.table)])
""",
    ("one_row", "dropout_on_x"): """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(max_len, d_model))
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        if x.size(1) > len(self.table):
            raise ValueError(f"{x.size(1)}, {len(self.table)}")
        return self.drop(x) + self.table[0]
""",
}

PAIRS["counts"] = {
    ("column_for_pair", "columns_counted"): """
shape_of_table, fixed_parameters, learned_parameters = (196, 512), 0, 196 * 512

def wavelength(pair, d_model):
    return 2 * math.pi * 10000 ** (pair / d_model)

def dot_product(distance, d_model):
    return sum(math.cos(distance / 10000 ** (2 * i / d_model)) for i in range(d_model // 2))

def slow_pairs(num_positions, d_model):
    return sum(2 for i in range(d_model // 2) if wavelength(i, d_model) > num_positions)
""",
    ("without_two_pi", "fast_counted"): """
shape_of_table, fixed_parameters, learned_parameters = (196, 512), 0, 196 * 512

def wavelength(pair, d_model):
    return 10000 ** (2 * pair / d_model)

def dot_product(distance, d_model):
    return sum(math.cos(distance / 10000 ** (2 * i / d_model)) for i in range(d_model // 2))

def slow_pairs(num_positions, d_model):
    return sum(wavelength(i, d_model) <= num_positions for i in range(d_model // 2))
""",
    ("sines", "divided_by_width"): """
shape_of_table, fixed_parameters, learned_parameters = (196, 512), 0, 196 * 512

def wavelength(pair, d_model):
    return 2 * math.pi * 10000 ** (2 * pair / d_model)

def dot_product(distance, d_model):
    return torch.tensor([math.sin(distance / 10000 ** (2 * i / d_model)) for i in range(d_model // 2)]).mean().item()

def slow_pairs(num_positions, d_model):
    return sum(wavelength(i, d_model) > num_positions for i in range(d_model // 2))
""",
}

# === mutants that compute the same ===================================================================================

EQUIVALENT["counts"] = {
    "return len([length for length in lengths if length > num_positions])"
    " → return len([length for length in lengths if length >= num_positions])": (
        "2π times a root of 10000 is transcendental, so that no length is a whole number"
    ),
}
