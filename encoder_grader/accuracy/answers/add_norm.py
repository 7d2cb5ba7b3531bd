"""Answers to the exercises of chapter 4, Add & Norm."""

# --- right -----------------------------------------------------------------------------------------------------------

LAYER_NORM = {
    "var_mean": """
def layer_norm(x, gamma, beta, eps=1e-5):
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return (x - mean) * (variance + eps) ** -0.5 * gamma + beta
""",
    "loops over rows and entries": """
def layer_norm(x, gamma, beta, eps=1e-5):
    rows = []
    for row in x.reshape(-1, x.shape[-1]):
        mean = sum(row) / len(row)
        variance = sum((entry - mean) ** 2 for entry in row) / len(row)
        root = torch.sqrt(variance + eps)
        rows.append(torch.stack([g * (entry - mean) / root + b for entry, g, b in zip(row, gamma, beta)]))
    return torch.stack(rows).reshape(x.shape)
""",
    "einsum": """
def layer_norm(x, gamma, beta, eps=1e-5):
    n = x.shape[-1]
    c = x - torch.einsum('...d->...', x)[..., None] / n
    z = c / torch.sqrt(torch.einsum('...d,...d->...', c, c)[..., None] / n + eps)
    return torch.einsum('...d,d->...d', z, gamma) + beta
""",
    "float64, the deviation squared": """
def layer_norm(x, gamma, beta, eps=1e-5):
    x = x.double()
    deviation = x.std(-1, correction=0, keepdim=True)
    return gamma * (x - x.mean(-1, True)) / torch.sqrt(deviation ** 2 + eps) + beta
""",
    "its own backward pass": """
class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gamma, beta, eps):
        c = x - x.mean(-1, keepdim=True)
        s = (c.square().mean(-1, keepdim=True) + eps).rsqrt()
        ctx.save_for_backward(c * s, s, gamma)
        return gamma * c * s + beta

    @staticmethod
    def backward(ctx, g):
        z, s, gamma = ctx.saved_tensors
        h = g * gamma
        dx = s * (h - h.mean(-1, keepdim=True) - z * (h * z).mean(-1, keepdim=True))
        rows = g.reshape(-1, g.shape[-1])
        return dx, (rows * z.reshape(rows.shape)).sum(0), rows.sum(0), None

def layer_norm(x, gamma, beta, eps=1e-5):
    return Norm.apply(x, gamma, beta, eps)
""",
    "one vector, mapped over all by vmap": """
def of_one(vector, gamma, beta, eps):
    centred = vector - vector.mean()
    return centred * torch.rsqrt(centred @ centred / centred.numel() + eps) * gamma + beta

def layer_norm(x, gamma, beta, eps=1e-5):
    rows = x.reshape(-1, x.shape[-1])
    return torch.vmap(of_one, in_dims=(0, None, None, None))(rows, gamma, beta, eps).view(x.shape)
""",
    "recursion over the leading axes": """
def layer_norm(x, gamma, beta, eps=1e-5):
    if x.dim() > 1:
        return torch.stack([layer_norm(part, gamma, beta, eps) for part in x])
    mu = x.sum() / x.numel()
    sigma_squared = torch.dot(x - mu, x - mu) / x.numel()
    return gamma * (x - mu) / (sigma_squared + eps) ** 0.5 + beta
""",
    "a matrix that centres": """
def layer_norm(x, gamma, beta, eps=1e-5):
    n = x.size(-1)
    ones = torch.ones(n, n, dtype=x.dtype) / n
    c = x @ (torch.eye(n, dtype=x.dtype) - ones)
    return torch.addcmul(beta, gamma, c / torch.sqrt(c.square() @ ones + eps))
""",
    "features first, views that are not contiguous": """
def layer_norm(x, gamma, beta, eps=1e-5):
    y = x.movedim(-1, 0)
    y = y - y.mean(0)
    y = y.div((y * y).mean(0).add(eps).sqrt())
    y = y.movedim(0, -1)
    return y * gamma + beta
""",
    "hypotenuse of length and root of eps": """
import math

def layer_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    length = torch.linalg.vector_norm(x - mean, dim=-1, keepdim=True) / math.sqrt(x.shape[-1])
    return gamma * ((x - mean) / torch.hypot(length, torch.full_like(length, eps).sqrt())) + beta
""",
    "in place on a copy, with prints and a warning": """
import warnings

def layer_norm(x, gamma, beta, eps=1e-5):
    warnings.warn("this is only an exercise")
    y = x.clone()
    y -= x.mean(-1, keepdim=True)
    print("centred", tuple(y.shape))
    variance = x.var(-1, correction=0, keepdim=True)
    y /= torch.sqrt(variance + eps)
    y *= gamma
    y += beta
    return y
""",
    "moments in float64": """
def layer_norm(x, gamma, beta, eps=1e-5):
    wide = x.to(torch.float64)
    first, second = (torch.mean(wide ** power, dim=-1, keepdim=True) for power in (1, 2))
    variance = second - first ** 2
    return (gamma * (wide - first) * torch.exp(-0.5 * torch.log(variance + eps)) + beta).to(x.dtype)
""",
    "float32, whatever comes": """
def layer_norm(x, gamma, beta, eps=1e-5):
    x, gamma, beta = (each.float() for each in (x, gamma, beta))
    length = (x.shape[-1] * eps + (x - x.mean(-1, keepdim=True)).norm(dim=-1, keepdim=True) ** 2) ** 0.5
    return torch.lerp(beta, beta + gamma, (x - x.mean(-1, keepdim=True)) * x.shape[-1] ** 0.5 / length)
""",
    "a decorator for scale and shift, golfed": """
affine = lambda norm: lambda x, gamma, beta, eps=1e-5: norm(x, eps) * gamma + beta

@affine
def layer_norm(x, eps): return (c := x - x.mean(-1, True)) / (c.pow(2).mean(-1, True) + eps).sqrt()
""",
    "mean and variance updated entry by entry": """
def layer_norm(x, gamma, beta, eps=1e-5):
    mean, squares = torch.zeros_like(x[..., 0]), torch.zeros_like(x[..., 0])
    for n in range(1, x.shape[-1] + 1):
        step = x[..., n - 1] - mean
        mean = mean + step / n
        squares = squares + step * (x[..., n - 1] - mean)
    deviation = torch.sqrt(squares / x.shape[-1] + eps)
    columns = [gamma[i] * (x[..., i] - mean) / deviation + beta[i] for i in range(x.shape[-1])]
    return torch.stack(columns, dim=-1)
""",
    "an object that is called": """
class Standardiser:
    axis = -1

    def mean(self, x):
        return x.mean(self.axis).unsqueeze(self.axis)

    def __call__(self, x, gamma, beta, eps=1e-5):
        mu = self.mean(x)
        return gamma * (x - mu) / torch.sqrt(self.mean((x - mu).square()) + eps) + beta

layer_norm = Standardiser()
""",
}

LAYER_NORM_MODULE = {
    "calls the function": """
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma, self.beta = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        if x.shape[-1] != self.gamma.numel():
            raise ValueError(f'the width is {x.shape[-1]}, not {self.gamma.numel()}')
        return layer_norm(x, self.gamma, self.beta, self.eps)
""",
    "through load_reference": """
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.d_model, self.eps = d_model, eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.register_parameter('beta', nn.Parameter(torch.zeros_like(self.gamma)))

    def load_reference(self, weights):
        with torch.no_grad():
            self.gamma.copy_(weights['gamma'])
            self.beta.copy_(weights['beta'])

    def forward(self, x):
        if x.size(-1) != self.d_model:
            raise ValueError(f'{x.size(-1)} is not {self.d_model}')
        c = x - x.mean(-1, keepdim=True)
        return self.gamma * c / torch.sqrt((c ** 2).mean(-1, keepdim=True) + self.eps) + self.beta
""",
    "filled by nn.init, an error of its own": """
class WidthError(ValueError):
    pass

class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.empty(d_model))
        self.beta = nn.Parameter(torch.empty(d_model))
        nn.init.constant_(self.gamma, 1.0)
        nn.init.constant_(self.beta, 0.0)
        self.eps = eps

    def forward(self, x):
        if x.shape[-1:] != self.gamma.shape:
            raise WidthError(x.shape[-1:], self.gamma.shape)
        v, m = torch.var_mean(x, dim=-1, unbiased=False, keepdim=True)
        return torch.addcmul(self.beta, self.gamma, (x - m) / (v + self.eps).sqrt())
""",
    "float64": """
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model, dtype=torch.float64))
        self.beta = nn.Parameter(0 * torch.ones(d_model, dtype=torch.float64))

    def forward(self, x):
        if x.shape[-1] != len(self.beta):
            raise ValueError(f'{len(self.beta)} wanted, {x.shape[-1]} given')
        x = x.double()
        return self.gamma * (x - x.mean(-1, True)) / (x.var(-1, False, True) + self.eps).sqrt() + self.beta
""",
    "two classes, one derived from the other": """
class Standardise(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.width, self.eps = width, eps

    def extra_repr(self):
        return f'{self.width}, eps={self.eps}'

    def forward(self, x):
        if x.shape[-1] != self.width:
            raise ValueError(f'{x.shape[-1]} instead of {self.width}')
        centred = x - x.mean(-1, keepdim=True)
        return centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + self.eps)

class LayerNorm(Standardise):
    def __init__(self, d_model, eps=1e-5):
        super().__init__(d_model, eps)
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        return super().forward(x) * self.gamma + self.beta
""",
    "the width asked for by a hook": """
def ask_for_width(module, inputs):
    (x,) = inputs
    if x.shape[-1] != module.gamma.shape[0]:
        raise ValueError(f'{x.shape[-1]} and {module.gamma.shape[0]}')

class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        for name, start in {'gamma': 1.0, 'beta': 0.0}.items():
            setattr(self, name, nn.Parameter(torch.full([d_model], start)))
        self.eps = eps
        self.register_forward_pre_hook(ask_for_width)

    def forward(self, x):
        return layer_norm(x, self.gamma, self.beta, eps=self.eps)
""",
    "a decorator for the width": """
import functools

def of_width(forward):
    @functools.wraps(forward)
    def checked(self, x):
        if x.shape[-1] == self.d_model:
            return forward(self, x)
        raise ValueError(f'expected {self.d_model} entries, got {x.shape[-1]}')
    return checked

class LayerNorm(nn.Module):
    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.d_model = d_model
        self.eps = eps
        self.gamma = nn.Parameter(torch.tensor([1.0] * d_model))
        self.beta = nn.Parameter(torch.tensor([0.0] * d_model))

    @of_width
    def forward(self, x):
        n = self.d_model
        mean = x.sum(-1, keepdim=True) / n
        variance = x.sub(mean).pow(2).sum(-1, keepdim=True) / n
        return self.beta + self.gamma * x.sub(mean).div(variance.add(self.eps).sqrt())
""",
    "vmap over the vectors": """
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def one(self, vector):
        spread, middle = torch.var_mean(vector, correction=0)
        return self.gamma * (vector - middle) * (spread + self.eps) ** -0.5 + self.beta

    def forward(self, x):
        *leading, width = x.shape
        if width != self.gamma.nelement():
            raise ValueError((width, self.gamma.nelement()))
        return torch.vmap(self.one)(x.reshape(-1, width)).reshape(*leading, width)
""",
    "a diagonal matrix scales, a buffer keeps eps": """
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.register_buffer('eps', torch.tensor(eps, dtype=torch.float64))
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        if x.shape[-1] != self.gamma.shape[-1]:
            raise ValueError('the width', x.shape[-1], 'is not', self.gamma.shape[-1])
        z = x - x.mean(-1, keepdim=True)
        z = z / torch.sqrt(z.square().mean(-1, keepdim=True) + self.eps)
        return z @ torch.diag(self.gamma) + self.beta
""",
    "loops, with prints and a warning": """
import sys

class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        print('made', d_model)

    def forward(self, x):
        if x.dim() > 1:
            return torch.stack([self.forward(each) for each in x])
        print('a loop is slow', file=sys.stderr)
        if len(x) != len(self.gamma):
            raise ValueError(f'{len(x)} entries instead of {len(self.gamma)}')
        mean = sum(x) / len(x)
        variance = sum((entry - mean) ** 2 for entry in x) / len(x)
        return torch.stack([g * (entry - mean) / (variance + self.eps).sqrt() + b
                            for entry, g, b in zip(x, self.gamma, self.beta)])
""",
    "NumPy for the start, in place on a copy": """
import numpy as np

class LayerNorm(nn.Module):
    gamma: nn.Parameter
    beta: nn.Parameter

    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps, self.shape = eps, (d_model,)
        self.reset_parameters()

    def reset_parameters(self):
        self.gamma = nn.Parameter(torch.from_numpy(np.ones(self.shape, dtype=np.float32)))
        self.beta = nn.Parameter(torch.from_numpy(np.zeros(self.shape, dtype=np.float32)))

    def forward(self, x):
        if tuple(x.shape[-1:]) != self.shape:
            raise ValueError(f'last axis {x.shape[-1]}, d_model {self.shape[0]}')
        y = x.clone()
        y.sub_(x.mean(-1, keepdim=True))
        y.mul_(x.var(-1, correction=0, keepdim=True).add(self.eps).rsqrt())
        return y.mul_(self.gamma).add_(self.beta)
""",
    "match, and the function called by the pieces of x": """
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d_model), requires_grad=True)
        self.beta = nn.Parameter(self.gamma.detach() - 1)

    def forward(self, x):
        match x.shape:
            case [width] | [_, width] | [_, _, width] if width != self.beta.size(0):
                raise ValueError(f'{width}, not {self.beta.size(0)}')
            case [_, _, _]:
                return torch.cat([layer_norm(part, self.gamma, self.beta, self.eps) for part in x.split(1)])
        return layer_norm(x, self.gamma, self.beta, self.eps)
""",
}

COUNTS = """
layer_norm_means, batch_norm_means, tokens_per_mean = 1600, 512, 12
"""

AFFECTED = """
def affected(kind, training, mask, sentence, place):
    out = torch.zeros_like(mask)
    if not mask[sentence, place]:
        return out
    if kind == 'batch' and training:
        return mask.clone()
    out[sentence, place] = True
    return out
"""

BATCH_NORM = """
def batch_norm(x, mask, eps=1e-5):
    out = torch.zeros_like(x)
    rows = x[mask]
    out[mask] = (rows - rows.mean(0)) / (rows.var(0, correction=0) + eps).sqrt()
    return out
"""

NORM_AXES = {
    "indexing": COUNTS + AFFECTED + BATCH_NORM,
    "weights, einsum, numbers of other types": """
import numpy as np

layer_norm_means = torch.tensor(1600)
batch_norm_means, tokens_per_mean = np.int64(512), 12.0

def batch_norm(x, mask, eps=1e-5):
    w = mask[..., None].to(x)
    n = w.sum()
    m = torch.einsum('bsd,bsi->d', x, w) / n
    v = torch.einsum('bsd,bsi->d', (x - m) ** 2, w) / n
    return w * (x - m) / torch.sqrt(v + eps)
"""
    + AFFECTED,
    "loops": """
import math

layer_norm_means = sum(1 for sentence in range(32) for word in range(50))
batch_norm_means = len(range(512))
tokens_per_mean = sum([7, 5])

def batch_norm(x, mask, eps=1e-5):
    out = torch.zeros(x.shape)
    places = [(b, s) for b in range(x.shape[0]) for s in range(x.shape[1]) if mask[b, s]]
    for f in range(x.shape[-1]):
        values = [x[b, s, f].item() for b, s in places]
        mean = sum(values) / len(values)
        variance = sum((v - mean) ** 2 for v in values) / len(values)
        for (b, s), v in zip(places, values):
            out[b, s, f] = (v - mean) / math.sqrt(variance + eps)
    return out

def affected(kind, training, mask, sentence, place):
    out = torch.zeros(mask.shape, dtype=torch.bool)
    for b in range(mask.shape[0]):
        for s in range(mask.shape[1]):
            together = (kind == 'batch' and training) or (b, s) == (sentence, place)
            out[b, s] = bool(together and mask[b, s] and mask[sentence, place])
    return out
""",
    "NumPy": """
import numpy as np

shape = (32, 50, 512)
layer_norm_means, batch_norm_means, tokens_per_mean = int(np.prod(shape[:2])), shape[2], 12

def batch_norm(x, mask, eps=1e-5):
    x, mask = x.numpy(), mask.numpy()
    out = np.zeros_like(x)
    rows = x[mask]
    out[mask] = (rows - rows.mean(0)) / np.sqrt(rows.var(0) + eps)
    return out

def affected(kind, training, mask, sentence, place):
    mask = mask.numpy()
    itself = np.zeros_like(mask)
    itself[sentence, place] = True
    return (mask if kind == 'batch' and training else itself & mask) & mask[sentence, place]
""",
    "masked_fill, float64": """
layer_norm_means, batch_norm_means, tokens_per_mean = 32 * 50, 512, 7 + 5

def batch_norm(x, mask, eps=1e-5):
    padding = ~mask.unsqueeze(2)
    x, count = x.double(), mask.sum().double()
    mean = x.masked_fill(padding, 0).sum((0, 1)) / count
    squares = (x - mean).pow(2).masked_fill(padding, 0)
    return ((x - mean) * torch.rsqrt(squares.sum((0, 1)) / count + eps)).masked_fill(padding, 0)

def affected(kind, training, mask, sentence, place):
    if kind == 'layer' or not training:
        alone = torch.full_like(mask, False)
        alone[sentence, place] = mask[sentence, place]
        return alone
    return mask.logical_and(mask[sentence, place])
""",
    "a flat batch and masked_scatter": COUNTS
    + """
def batch_norm(x, mask, eps=1e-5):
    where = mask[:, :, None].expand_as(x)
    rows = torch.masked_select(x, where).view(-1, x.shape[2])
    variance, mean = torch.var_mean(rows, dim=0, unbiased=False)
    return torch.zeros_like(x).masked_scatter(where, (rows - mean) / torch.sqrt(variance + eps))

def affected(kind, training, mask, sentence, place):
    rows, columns = torch.meshgrid(*(torch.arange(n) for n in mask.shape), indexing='ij')
    shared = (rows == sentence) & (columns == place)
    if (kind, training) == ('batch', True):
        shared = torch.ones_like(shared)
    return shared & mask & mask[sentence][place]
""",
    "one feature, mapped over all by vmap": COUNTS
    + """
def of_feature(column, weights, eps):
    mean = (weights * column).sum() / weights.sum()
    variance = (weights * (column - mean).square()).sum() / weights.sum()
    return weights * (column - mean) / torch.sqrt(variance + eps)

def batch_norm(x, mask, eps=1e-5):
    return torch.vmap(of_feature, in_dims=(2, None, None), out_dims=2)(x, mask.float(), eps)

def affected(kind, training, mask, sentence, place):
    index = mask.shape[1] * sentence + place
    flat = torch.nn.functional.one_hot(torch.tensor(index), mask.numel()).bool().view(mask.shape)
    reach = {'layer': flat, 'batch': torch.ones_like(mask) if training else flat}[kind]
    return reach & mask & mask.flatten()[index]
""",
    "layer_norm on the features, turned round": COUNTS
    + """
def batch_norm(x, mask, eps=1e-5):
    columns = x[mask].T  # (d_model, words)
    one, zero = torch.ones(columns.shape[1]), torch.zeros(columns.shape[1])
    out = x * 0
    out[mask] = layer_norm(columns, one, zero, eps).T
    return out

affected = lambda kind, training, mask, sentence, place: mask & mask[sentence, place] & torch.tensor(
    [[kind == 'batch' and training or (b, s) == (sentence, place) for s in range(mask.size(1))]
     for b in range(mask.size(0))])
""",
    "in place on copies, NaN instead of padding": """
layer_norm_means = 1600
batch_norm_means = 2 ** 9
tokens_per_mean = 12

def batch_norm(x, mask, eps=1e-5):
    y = x.clone()
    y[~mask] = float('nan')
    y -= y.nanmean((0, 1))
    y /= (y.square().nanmean((0, 1)) + eps).sqrt()
    return y.nan_to_num_(0.0)

def affected(kind, training, mask, sentence, place):
    answer = mask.clone()
    if not mask[sentence, place]:
        answer[:] = False
    elif not (kind == 'batch' and training):
        answer.zero_()
        answer[sentence, place] = 1
    return answer
""",
    "the moments of the words, with prints": """
import sys

layer_norm_means, batch_norm_means, tokens_per_mean = 1600, 512, 12

def masked_mean(x, mask):
    return (x * mask.unsqueeze(-1)).flatten(0, 1).sum(0) / mask.sum()

def batch_norm(x, mask, eps=1e-5):
    x = x.double()
    first, second = masked_mean(x, mask), masked_mean(x * x, mask)
    print('means', first.shape, file=sys.stderr)
    y = (x - first) / torch.sqrt(second - first ** 2 + eps)
    return torch.where(mask.unsqueeze(-1), y, torch.zeros_like(y)).float()

def affected(kind, training, mask, sentence, place):
    print('asked for', kind)
    if not bool(mask[sentence, place]):
        return mask & False
    if kind == 'batch' and training:
        return mask | False
    out = torch.zeros(mask.shape).bool()
    out[sentence, place] = True
    return out
""",
    "tried out: a word changed, and the outputs compared": COUNTS
    + BATCH_NORM
    + """
def standardised(x, mask):
    width = x.shape[-1]
    return layer_norm(x, torch.ones(width), torch.zeros(width)) * mask[..., None]

def affected(kind, training, mask, sentence, place):
    generator = torch.Generator().manual_seed(0)
    before = torch.randn(*mask.shape, 5, generator=generator)
    after = before.clone()
    after[sentence, place] = torch.randn(5, generator=generator)
    if kind == 'batch' and training:
        one, other = batch_norm(before, mask), batch_norm(after, mask)
    elif kind == 'batch':
        one, other = before * mask[..., None], after * mask[..., None]
    else:
        one, other = standardised(before, mask), standardised(after, mask)
    return (one != other).any(-1)
""",
    "a list of sentences, padded again": COUNTS
    + """
def batch_norm(x, mask, eps=1e-5):
    sentences = [row[here] for row, here in zip(x, mask)]
    words = torch.cat(sentences)
    deviation = torch.sqrt(((words - words.mean(0)) ** 2).mean(0) + eps)
    out = torch.zeros_like(x)
    for number, sentence in enumerate(sentences):
        out[number, mask[number]] = (sentence - words.mean(0)) / deviation
    return out

def affected(kind, training, mask, sentence, place):
    if mask[sentence, place]:
        if kind == 'batch' and training:
            changed = {(b, s) for b, s in mask.nonzero().tolist()}
        else:
            changed = {(sentence, place)}
    else:
        changed = set()
    out = torch.zeros_like(mask)
    for b, s in changed:
        out[b, s] = True
    return out
""",
}

ADD_NORM = {
    "your own LayerNorm": """
class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.1, norm_first=False):
        super().__init__()
        self.norm, self.dropout, self.norm_first = LayerNorm(d_model), nn.Dropout(dropout), norm_first

    def forward(self, x, sublayer):
        out = sublayer(self.norm(x)) if self.norm_first else sublayer(x)
        if out.shape != x.shape:
            raise ValueError(f'shape {tuple(out.shape)}, not {tuple(x.shape)}')
        x = x + self.dropout(out)
        return x if self.norm_first else self.norm(x)
""",
    "nn.LayerNorm and F.dropout": """
class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.1, norm_first=False):
        super().__init__()
        self.ln = nn.LayerNorm(d_model)
        self.p = dropout
        self.pre = norm_first

    def add(self, x, y):
        if y.shape != x.shape:
            raise ValueError(y.shape, x.shape)
        return nn.functional.dropout(y, self.p, self.training) + x

    def forward(self, x, sublayer):
        return self.add(x, sublayer(self.ln(x))) if self.pre else self.ln(self.add(x, sublayer(x)))
""",
    "dropout by hand, in place on the output": """
class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.1, norm_first=False):
        super().__init__()
        self.ln = LayerNorm(d_model)
        self.p = dropout
        self.pre = norm_first

    def forward(self, x, sublayer):
        y = sublayer(self.ln(x) if self.pre else x)
        if list(y.shape) != list(x.shape):
            raise ValueError(f'{list(y.shape)} after {list(x.shape)}')
        if self.training and self.p > 0:
            y = y * (torch.rand_like(y) >= self.p) / (1 - self.p)
        y += x
        return y if self.pre else self.ln(y)
""",
    "two branches, float64": """
class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.1, norm_first=False):
        super().__init__()
        self.norm = nn.LayerNorm(d_model, dtype=torch.float64)
        self.before = self.norm if norm_first else nn.Identity()
        self.after = nn.Identity() if norm_first else self.norm
        self.drop = nn.Dropout(dropout)

    def forward(self, x, sublayer):
        before = self.before(x.double()).float()
        y = sublayer(before)
        assert_same(y, x)
        return self.after((x + self.drop(y)).double())

def assert_same(y, x):
    if y.shape != x.shape:
        raise ValueError(f'{y.shape} and {x.shape} are not the same')
""",
    "derived from LayerNorm": """
class AddNorm(LayerNorm):
    def __init__(self, d_model, dropout=0.1, norm_first=False):
        super().__init__(d_model)
        self.rate, self.norm_first = dropout, norm_first

    def forward(self, x, sublayer):
        norm = super().forward
        update = sublayer(norm(x)) if self.norm_first else sublayer(x)
        if update.shape != x.shape:
            raise ValueError(f'{update.shape} is not {x.shape}')
        if self.training:
            kept = torch.bernoulli(torch.full_like(update, 1 - self.rate))
            update = update * kept / (1 - self.rate)
        return x + update if self.norm_first else norm(x + update)
""",
    "one function of x chosen at the start": """
class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.1, norm_first=False):
        super().__init__()
        self.norm = LayerNorm(d_model)
        self.drop = nn.Dropout(p=dropout)
        self.formula = self.pre_norm if norm_first else self.post_norm

    def post_norm(self, x, f):
        return self.norm(x + self.drop(f(x)))

    def pre_norm(self, x, f):
        return x + self.drop(f(self.norm(x)))

    def forward(self, x, sublayer):
        def checked(y):
            z = sublayer(y)
            if z.shape != x.shape:
                raise ValueError(f'from {list(x.shape)} to {list(z.shape)}')
            return z
        return self.formula(x, checked)
""",
    "sequences of modules": """
class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.1, norm_first=False):
        super().__init__()
        norm = nn.LayerNorm(d_model)
        self.entry = nn.Sequential(norm) if norm_first else nn.Sequential()
        self.exit = nn.Sequential() if norm_first else nn.Sequential(norm)
        self.update = nn.Sequential(nn.Dropout(dropout))

    def forward(self, x, sublayer):
        update = self.update(sublayer(self.entry(x)))
        if x.size() != update.size():
            raise ValueError(f'the sub-layer changed the shape: {x.size()}, {update.size()}')
        return self.exit(torch.add(x, update))
""",
    "a residual module inside, with prints": """
import warnings

class Residual(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.dropout = dropout

    def forward(self, x, fx):
        if fx.shape != x.shape:
            raise ValueError(f'{tuple(fx.shape)} beside {tuple(x.shape)}')
        return x + torch.dropout(fx, self.dropout, self.training)

class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.1, norm_first=False):
        super().__init__()
        self.parts = nn.ModuleDict({'residual': Residual(dropout), 'norm': LayerNorm(d_model)})
        self.norm_first = norm_first
        print('norm first' if norm_first else 'norm last')

    def forward(self, x, sublayer):
        warnings.warn('one sub-layer more')
        norm, residual = self.parts['norm'], self.parts['residual']
        if self.norm_first:
            return residual(x, sublayer(norm(x)))
        return norm(residual(x, sublayer(x)))
""",
    "the norm written out": """
class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.1, norm_first=False):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))
        self.dropout, self.norm_first = nn.Dropout(dropout), norm_first

    def norm(self, x):
        variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
        return self.weight * (x - mean) / torch.sqrt(variance + 1e-5) + self.bias

    def forward(self, x, sublayer):
        normalise = [lambda y: y, self.norm]
        update = sublayer(normalise[self.norm_first](x))
        if update.dim() != x.dim() or any(a != b for a, b in zip(update.shape, x.shape)):
            raise ValueError(f'{update.shape}, {x.shape}')
        return normalise[not self.norm_first](x + self.dropout(update))
""",
    "one vector after another": """
class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.1, norm_first=False):
        super().__init__()
        self.norm, self.drop, self.first = LayerNorm(d_model), nn.Dropout(dropout), norm_first

    def each(self, x):
        return torch.stack([torch.stack([self.norm(vector) for vector in sentence]) for sentence in x])

    def forward(self, x, sublayer):
        out = sublayer(self.each(x) if self.first else x)
        if out.shape != x.shape:
            raise ValueError('other shape: ' + ' '.join(map(str, (*out.shape, *x.shape))))
        total = torch.stack([x, self.drop(out)]).sum(0)
        return total if self.first else self.each(total)
""",
    "the mask of the dropout by torch.where, golfed": """
class AddNorm(nn.Module):
    def __init__(s, d_model, dropout=0.1, norm_first=False):
        super().__init__(); s.n, s.p, s.f = LayerNorm(d_model), dropout, norm_first
    def forward(s, x, sublayer):
        y = sublayer(s.n(x) if s.f else x)
        if y.shape != x.shape: raise ValueError(f'{y.shape=} {x.shape=}')
        if s.training: y = torch.where(torch.rand(y.shape) < s.p, 0.0, y / (1 - s.p))
        return (x + y) if s.f else s.n(x + y)
""",
    "two classes behind one": """
class PostNorm(nn.Module):
    def __init__(self, norm, drop):
        super().__init__()
        self.norm, self.drop = norm, drop

    def forward(self, x, sublayer):
        return self.norm(x + self.drop(same_shape(sublayer(x), x)))

class PreNorm(PostNorm):
    def forward(self, x, sublayer):
        return x + self.drop(same_shape(sublayer(self.norm(x)), x))

def same_shape(update, x):
    try:
        torch.stack([update, x])
    except RuntimeError as error:
        raise ValueError(f'the sub-layer made {tuple(update.shape)} of {tuple(x.shape)}') from error
    return update

class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.1, norm_first=False):
        super().__init__()
        self.chosen = (PreNorm if norm_first else PostNorm)(LayerNorm(d_model), nn.Dropout(dropout))

    def forward(self, *inputs):
        return self.chosen(*inputs)
""",
}

PATHS = """
import math

num_paths, paths_through_two = 2 ** 24, math.comb(24, 2)
"""

PREDICT = """
def predict(slope, num_layers):
    return abs(1 + slope) ** num_layers, abs(slope) ** num_layers
"""

GRADIENT_DEPTH = {
    "autograd.grad": PATHS
    + PREDICT
    + """
def first_gradients(layers, x, upstream):
    found = []
    for residual in (True, False):
        start = x.clone().requires_grad_()
        y = start
        for layer in layers:
            y = y + layer(y) if residual else layer(y)
        found.append(torch.autograd.grad(y, start, upstream)[0].norm().item())
    return tuple(found)
""",
    "tensors, x itself": """
num_paths, paths_through_two = torch.tensor(2 ** 24), 276

def predict(slope, num_layers):
    return torch.tensor((1 + slope) ** num_layers).abs().double(), torch.tensor(slope ** num_layers).abs().double()

def first_gradients(layers, x, upstream):
    x.requires_grad_()
    x.grad = None
    y = x
    for layer in layers:
        y = layer(y)
    y.backward(upstream)
    without = x.grad.pow(2).sum().sqrt()
    x.grad = None
    y = x
    for layer in layers:
        y = layer(y) + y
    y.backward(upstream)
    return [x.grad.pow(2).sum().sqrt(), without]
""",
    "NumPy numbers": """
import numpy as np

num_paths, paths_through_two = int(np.exp2(24)), sum(range(24))

def predict(slope, num_layers):
    return np.abs(1 + slope) ** num_layers, np.abs(slope) ** num_layers

def size(step, x, upstream, layers):
    x = x.detach().clone().requires_grad_()
    y = x
    for layer in layers:
        y = step(y, layer)
    (y * upstream).sum().backward()
    return np.linalg.norm(x.grad.numpy())

def first_gradients(layers, x, upstream):
    return size(lambda y, f: y + f(y), x, upstream, layers), size(lambda y, f: f(y), x, upstream, layers)
""",
    "torch.func.vjp of a reduce": """
from functools import reduce
from torch.func import vjp

num_paths = 1 << 24
paths_through_two = 24 * 23 // 2

def predict(slope, num_layers):
    return tuple((factor ** 2) ** (num_layers / 2) for factor in (1 + slope, slope))

def first_gradients(layers, x, upstream):
    steps = (lambda y, layer: y + layer(y)), (lambda y, layer: layer(y))
    pulls = [vjp(lambda start: reduce(step, layers, start), x)[1] for step in steps]
    return tuple(torch.linalg.vector_norm(pull(upstream)[0]).item() for pull in pulls)
""",
    "from the last layer to the first, layer by layer": PATHS
    + """
def predict(slope, num_layers):
    with_, without = 1.0, 1.0
    for _ in range(num_layers):
        with_, without = with_ * abs(1 + slope), without * abs(slope)
    return with_, without

def pulled_back(layers, x, upstream, residual):
    inputs = [x]
    for layer in layers:
        y = layer(inputs[-1])
        inputs.append((inputs[-1] + y if residual else y).detach())
    gradient = upstream
    for layer, start in zip(reversed(layers), reversed(inputs[:-1])):
        start = start.clone().requires_grad_()
        (through,) = torch.autograd.grad(layer(start), start, gradient)
        gradient = gradient + through if residual else through
    return gradient.norm().item()

def first_gradients(layers, x, upstream):
    return tuple(pulled_back(layers, x, upstream, residual) for residual in (True, False))
""",
    "modules in nn.Sequential": """
import math

class Residual(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return x + self.layer(x)

class Plain(Residual):
    def forward(self, x):
        return self.layer(x)

num_paths = sum(math.comb(24, k) for k in range(25))
paths_through_two = math.comb(24, 22)

def predict(slope, num_layers):
    return math.fabs(1 + slope) ** num_layers, math.fabs(slope) ** num_layers

def first_gradients(layers, x, upstream):
    norms = []
    for kind in (Residual, Plain):
        start = nn.Parameter(x.clone())
        nn.Sequential(*[kind(layer) for layer in layers])(start).backward(upstream)
        norms.append(float(start.grad.norm()))
    return norms
""",
    "recursion": """
num_paths = int(torch.tensor([2] * 24).prod())
paths_through_two = len([(i, j) for i in range(24) for j in range(i)])

def predict(slope, num_layers):
    if num_layers == 0:
        return 1.0, 1.0
    with_residuals, without = predict(slope, num_layers - 1)
    return abs(1 + slope) * with_residuals, abs(slope) * without

def stack(layers, x, share):
    if not layers:
        return x
    first, *others = layers
    return stack(others, share * x + first(x), share)

def first_gradients(layers, x, upstream):
    start = x.detach().clone().requires_grad_()
    norms = []
    for share in (1.0, 0.0):
        start.grad = None
        stack(layers, start, share).backward(upstream)
        norms.append(start.grad.square().sum().sqrt().item())
    return tuple(norms)
""",
    "hooks that note the gradient": PATHS
    + PREDICT
    + """
def first_gradients(layers, x, upstream):
    seen = []

    def run(residual):
        start = x.detach().clone().requires_grad_()
        start.register_hook(lambda gradient: seen.append(gradient.norm().item()))
        y = start
        for layer in layers:
            y = layer(y) + (y if residual else 0)
        torch.autograd.backward(y, upstream)

    run(True)
    run(False)
    return seen[0], seen[1]
""",
    "one gradient of both stacks": PATHS
    + """
def predict(slope, num_layers):
    sizes = torch.tensor([1 + slope, slope], dtype=torch.float64).abs().pow(num_layers)
    return sizes[0].item(), sizes[1].item()

def first_gradients(layers, x, upstream):
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    with_, without = a, b
    for i in range(len(layers)):
        with_ = with_ + layers[i](with_)
        without = layers[i](without)
    torch.sum((with_ + without) * upstream).backward()
    return a.grad.norm().item(), b.grad.norm().item()
""",
    "torch.func.grad, with prints": """
import sys
from itertools import combinations

num_paths = 4 ** 12
paths_through_two = len(list(combinations(range(24), 2)))

def predict(slope, num_layers):
    chain = torch.full((num_layers,), slope, dtype=torch.float64)
    return float((1 + chain).prod().abs()), float(chain.prod().abs())

def first_gradients(layers, x, upstream):
    def loss(start, residual):
        for number, layer in enumerate(layers):
            update = layer(start)
            start = start + update if residual else update
        print('through', number + 1, 'layers', file=sys.stderr)
        return (start * upstream).sum()
    gradients = [torch.func.grad(loss)(x, residual) for residual in (True, False)]
    return tuple(torch.sqrt(torch.sum(g * g)).item() for g in gradients)
""",
    "the Jacobian": PATHS
    + """
predict = lambda slope, num_layers: tuple(abs(factor) ** num_layers for factor in [1 + slope, slope])

def jacobian_norm(stack, x, upstream):
    jacobian = torch.autograd.functional.jacobian(stack, x)  # (*y.shape, *x.shape)
    return torch.tensordot(upstream, jacobian, dims=3).norm().item()

def first_gradients(layers, x, upstream):
    def with_residuals(y):
        for layer in layers:
            y = y + layer(y)
        return y

    def without_residuals(y):
        for layer in layers:
            y = layer(y)
        return y

    return jacobian_norm(with_residuals, x, upstream), jacobian_norm(without_residuals, x, upstream)
""",
    "a class that stacks, retain_grad": PATHS
    + """
from dataclasses import dataclass

@dataclass
class Stack:
    layers: list
    residual: bool

    def gradient(self, x, upstream):
        leaf = x.detach().requires_grad_()
        start = leaf * 1
        start.retain_grad()
        y = start
        for layer in self.layers:
            y = layer(y).add(y) if self.residual else layer(y)
        y.backward(gradient=upstream)
        return start.grad

    def size(self, *inputs):
        return torch.dist(gradient := self.gradient(*inputs), torch.zeros_like(gradient)).item()

def predict(slope, num_layers):
    def size(factor):
        return max(factor, -factor) ** num_layers
    return size(slope + 1), size(slope)

def first_gradients(layers, x, upstream):
    sizes = {residual: Stack(layers, residual).size(x, upstream) for residual in (True, False)}
    return sizes[True], sizes[False]
""",
}

# --- wrong -----------------------------------------------------------------------------------------------------------

LAYER_NORM_WRONG = {
    "the mean square less the mean's square": (
        "variance",
        """
def layer_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    variance = x.square().mean(-1, keepdim=True) - mean.square()
    return gamma * (x - mean) / torch.sqrt(variance + eps) + beta
""",
    ),
    "the scale's size without its sign": (
        "affine gradient_of_gamma",
        """
def layer_norm(x, gamma, beta, eps=1e-5):
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return gamma.detach().abs() * (x - mean) / torch.sqrt(variance + eps) + beta
""",
    ),
    "x handed back": (
        "centred variance eps affine gradient_of_gamma",
        """
def layer_norm(x, gamma, beta, eps=1e-5):
    return x
""",
    ),
    "the median for the mean": (
        "",
        """
def layer_norm(x, gamma, beta, eps=1e-5):
    middle = x.median(-1, keepdim=True).values
    variance = (x - middle).square().mean(-1, keepdim=True)
    return gamma * (x - middle) / torch.sqrt(variance + eps) + beta
""",
    ),
    "the mean distance for the deviation": (
        "",
        """
def layer_norm(x, gamma, beta, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    return gamma * centred / (centred.abs().mean(-1, keepdim=True) + eps) + beta
""",
    ),
    "between the lowest and the highest": (
        "",
        """
def layer_norm(x, gamma, beta, eps=1e-5):
    low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
    return gamma * (x - low) / (high - low + eps) + beta
""",
    ),
    "right for three axes only": (
        "centred variance affine",
        """
def layer_norm(x, gamma, beta, eps=1e-5):
    batch, seq, d_model = x.shape
    mean = x.mean(2).view(batch, seq, 1)
    variance = x.var(2, correction=0).view(batch, seq, 1)
    return gamma * (x - mean) / torch.sqrt(variance + eps) + beta
""",
    ),
    "not for a vector alone": (
        "centred",
        """
def layer_norm(x, gamma, beta, eps=1e-5):
    columns = x.transpose(-1, -2)
    columns = columns - columns.mean(-2, keepdim=True)
    columns = columns / torch.sqrt(columns.square().mean(-2, keepdim=True) + eps)
    return gamma * columns.transpose(-1, -2) + beta
""",
    ),
    "axes of length 1 squeezed away": (
        "centred",
        """
def layer_norm(x, gamma, beta, eps=1e-5):
    x = x.squeeze()
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return gamma * (x - mean) / torch.sqrt(variance + eps) + beta
""",
    ),
    "another default for eps": (
        "eps",
        """
def layer_norm(x, gamma, beta, eps=1e-6):
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return gamma * (x - mean) / torch.sqrt(variance + eps) + beta
""",
    ),
    "eps squared": (
        "eps",
        """
def layer_norm(x, gamma, beta, eps=1e-5):
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return gamma * (x - mean) / torch.sqrt(variance + eps ** 2) + beta
""",
    ),
    "eps as a lower bound": (
        "eps",
        """
def layer_norm(x, gamma, beta, eps=1e-5):
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return gamma * (x - mean) / variance.clamp(min=eps).sqrt() + beta
""",
    ),
    "standardised twice": (
        "eps",
        """
def standardise(x, eps):
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps)

def layer_norm(x, gamma, beta, eps=1e-5):
    return gamma * standardise(standardise(x, eps), eps) + beta
""",
    ),
    "the mean minus x": (
        "centred",
        """
def layer_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    return gamma * (mean - x) / torch.sqrt((mean - x).square().mean(-1, keepdim=True) + eps) + beta
""",
    ),
    "scaled and shifted before it is standardised": (
        "affine",
        """
def layer_norm(x, gamma, beta, eps=1e-5):
    x = gamma * x + beta
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps)
""",
    ),
    "one scale for all entries": (
        "affine",
        """
def layer_norm(x, gamma, beta, eps=1e-5):
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return gamma.mean() * (x - mean) / torch.sqrt(variance + eps) + beta.mean()
""",
    ),
    "the variance under no_grad": (
        "gradient_of_x",
        """
def layer_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    with torch.no_grad():
        variance = x.var(-1, correction=0, keepdim=True)
    return gamma * (x - mean) / torch.sqrt(variance + eps) + beta
""",
    ),
    "x detached": (
        "gradient_of_x",
        """
def layer_norm(x, gamma, beta, eps=1e-5):
    x = x.detach()
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return gamma * (x - mean) / torch.sqrt(variance + eps) + beta
""",
    ),
    "NumPy, where gradients are asked for": (
        "gradient_of_x gradient_of_gamma",
        """
import numpy as np

def layer_norm(x, gamma, beta, eps=1e-5):
    x, gamma, beta = (each.detach().numpy() for each in (x, gamma, beta))
    z = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + np.array(eps, x.dtype))
    return torch.from_numpy(gamma * z + beta)
""",
    ),
    "its own backward pass averages gamma's gradient": (
        "gradient_of_gamma",
        """
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z, gamma):
        ctx.save_for_backward(z, gamma)
        return gamma * z

    @staticmethod
    def backward(ctx, g):
        z, gamma = ctx.saved_tensors
        return g * gamma, (g * z).reshape(-1, len(gamma)).mean(0)

def layer_norm(x, gamma, beta, eps=1e-5):
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return Scale.apply((x - mean) / torch.sqrt(variance + eps), gamma) + beta
""",
    ),
    "in place on the input": (
        "gradient_of_x gradient_of_gamma",
        """
def layer_norm(x, gamma, beta, eps=1e-5):
    x -= x.mean(-1, keepdim=True)
    x /= torch.sqrt(x.square().mean(-1, keepdim=True) + eps)
    return gamma * x + beta
""",
    ),
    "a list of vectors": (
        "centred variance eps affine gradient_of_x gradient_of_gamma",
        """
def layer_norm(x, gamma, beta, eps=1e-5):
    out = []
    for vector in x.reshape(-1, x.shape[-1]):
        variance, mean = torch.var_mean(vector, correction=0)
        out.append(gamma * (vector - mean) / torch.sqrt(variance + eps) + beta)
    return out
""",
    ),
    "no return": (
        "centred variance eps affine gradient_of_x gradient_of_gamma",
        """
def layer_norm(x, gamma, beta, eps=1e-5):
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    y = gamma * (x - mean) / torch.sqrt(variance + eps) + beta
""",
    ),
}

MODULE = """
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma, self.beta = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        if x.shape[-1] != len(self.gamma):
            raise ValueError(f"{x.shape[-1]} is not {len(self.gamma)}")
"""

OWN_FUNCTION = """
        return layer_norm(x, self.gamma, self.beta, self.eps)
"""

LAYER_NORM_MODULE_WRONG = {
    "an error that names neither number": (
        "width_checked",
        MODULE.replace('f"{x.shape[-1]} is not {len(self.gamma)}"', '"another width"') + OWN_FUNCTION,
    ),
    "an error that names one number": (
        "width_checked",
        MODULE.replace(" is not {len(self.gamma)}", " is not d_model") + OWN_FUNCTION,
    ),
    "the width asked for with a batch only": (
        "width_checked",
        MODULE.replace("if x.shape", "if x.dim() == 3 and x.shape") + OWN_FUNCTION,
    ),
    "the width asked for in training only": (
        "width_checked",
        MODULE.replace("if x.shape", "if self.training and x.shape") + OWN_FUNCTION,
    ),
    "gamma left out in evaluation": (
        "alone",
        MODULE
        + """
        gamma = self.gamma if self.training else torch.ones_like(self.gamma)
        return layer_norm(x, gamma, self.beta, self.eps)
""",
    ),
    "another eps in evaluation": (
        "alone",
        MODULE + OWN_FUNCTION.replace("self.eps", "self.eps if self.training else 1e-12"),
    ),
    "gamma and beta kept from the first call": (
        "affine",
        MODULE.replace("self.eps = eps", "self.eps, self.kept = eps, None")
        + """
        if self.kept is None:
            self.kept = 1 * self.gamma, 1 * self.beta
        return layer_norm(x, *self.kept, self.eps)
""",
    ),
    "eps kept on the class": ("eps", MODULE.replace("self.eps = eps", "LayerNorm.eps = eps") + OWN_FUNCTION),
    "the width kept on the class": (
        "starts affine eps alone width_checked",
        MODULE.replace("self.eps = eps", "self.eps, LayerNorm.width = eps, d_model").replace(
            "len(self.gamma)", "LayerNorm.width"
        )
        + OWN_FUNCTION,
    ),
    "the size of gamma without its sign": (
        "affine",
        MODULE + OWN_FUNCTION.replace("self.gamma", "self.gamma.abs()"),
    ),
    "the variance divided by one less": (
        "affine",
        MODULE
        + """
        variance, mean = torch.var_mean(x, -1, keepdim=True)
        return self.gamma * (x - mean) / torch.sqrt(variance + self.eps) + self.beta
""",
    ),
    "centred, but not divided": (
        "affine eps",
        MODULE
        + """
        return self.gamma * (x - x.mean(-1, keepdim=True)) + self.beta
""",
    ),
    "eps outside the root": (
        "eps",
        MODULE
        + """
        variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
        return self.gamma * (x - mean) / (torch.sqrt(variance) + self.eps) + self.beta
""",
    ),
    "eps as a lower bound": (
        "eps",
        MODULE
        + """
        variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
        return self.gamma * (x - mean) / variance.clamp(min=self.eps).sqrt() + self.beta
""",
    ),
    "over positions and entries": (
        "affine alone",
        MODULE
        + """
        variance, mean = torch.var_mean(x, (-2, -1), correction=0, keepdim=True)
        return self.gamma * (x - mean) / torch.sqrt(variance + self.eps) + self.beta
""",
    ),
    "mean and variance under no_grad": (
        "affine",
        MODULE
        + """
        with torch.no_grad():
            variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
        return self.gamma * (x - mean) / torch.sqrt(variance + self.eps) + self.beta
""",
    ),
    "nothing done in evaluation": (
        "alone",
        MODULE
        + """
        return layer_norm(x, self.gamma, self.beta, self.eps) if self.training else x
""",
    ),
    "axes of length 1 squeezed away": (
        "alone",
        MODULE
        + """
        return layer_norm(x.squeeze(), self.gamma, self.beta, self.eps)
""",
    ),
    "eps kept under another name": (
        "eps",
        """
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.epsilon = eps
        self.gamma, self.beta = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        if x.shape[-1] != len(self.gamma):
            raise ValueError(f"{x.shape[-1]} is not {len(self.gamma)}")
        return layer_norm(x, self.gamma, self.beta, self.epsilon)
""",
    ),
    "the argument eps thrown away": (
        "eps",
        MODULE.replace("self.eps = eps", "self.eps = 1e-5")
        + """
        return layer_norm(x, self.gamma, self.beta, self.eps)
""",
    ),
    "gamma drawn at random": (
        "starts",
        MODULE.replace("torch.ones(d_model)", "torch.rand(d_model)")
        + """
        return layer_norm(x, self.gamma, self.beta, self.eps)
""",
    ),
    "gamma and beta as rows": (
        "starts affine eps alone width_checked",
        MODULE.replace("(d_model)", "(1, d_model)")
        + """
        return layer_norm(x, self.gamma, self.beta, self.eps)
""",
    ),
    "parameters that ask for no gradient": (
        "starts",
        MODULE.replace("(d_model))", "(d_model), requires_grad=False)")
        + """
        return layer_norm(x, self.gamma, self.beta, self.eps)
""",
    ),
    "gamma and beta made anew in each call": (
        "affine",
        MODULE
        + """
        self.gamma, self.beta = (nn.Parameter(torch.full_like(self.gamma, start)) for start in (1.0, 0.0))
        return layer_norm(x, self.gamma, self.beta, self.eps)
""",
    ),
    "only a wider x refused": (
        "width_checked",
        MODULE.replace("x.shape[-1] !=", "x.shape[-1] >")
        + """
        return layer_norm(x, self.gamma, self.beta, self.eps)
""",
    ),
    "an assert for the width": (
        "width_checked",
        MODULE.replace("if x.shape[-1] != len(self.gamma):", "if True:").replace(
            'raise ValueError(f"{x.shape[-1]} is not {len(self.gamma)}")', "assert x.shape[-1] == len(self.gamma)"
        )
        + """
        return layer_norm(x, self.gamma, self.beta, self.eps)
""",
    ),
    "a print for the width": (
        "width_checked",
        MODULE.replace("raise ValueError", "print")
        + """
            return x
        return layer_norm(x, self.gamma, self.beta, self.eps)
""",
    ),
    "another axis asked for its width": (
        "starts affine eps alone width_checked",
        MODULE.replace("x.shape[-1] !=", "x.shape[1] !=")
        + """
        return layer_norm(x, self.gamma, self.beta, self.eps)
""",
    ),
}

NORM_AXES_WRONG = {
    "every entry counted": (
        "counts",
        """
layer_norm_means, batch_norm_means, tokens_per_mean = 32 * 50 * 512, 512, 12
"""
        + AFFECTED
        + BATCH_NORM,
    ),
    "numbers as text": (
        "counts",
        """
layer_norm_means, batch_norm_means, tokens_per_mean = "1600", "512", "12"
"""
        + AFFECTED
        + BATCH_NORM,
    ),
    "the words of one sentence counted": (
        "counts",
        """
layer_norm_means, batch_norm_means, tokens_per_mean = 1600, 512, 7
"""
        + AFFECTED
        + BATCH_NORM,
    ),
    "another default for eps": (
        "standardised",
        COUNTS + AFFECTED + BATCH_NORM.replace("1e-5", "1e-8"),
    ),
    "centred, but not divided": (
        "standardised",
        COUNTS
        + AFFECTED
        + """
def batch_norm(x, mask, eps=1e-5):
    return (x - x[mask].mean(0)) * mask.unsqueeze(-1)
""",
    ),
    "one mean for all features": (
        "standardised",
        COUNTS
        + AFFECTED
        + """
def batch_norm(x, mask, eps=1e-5):
    words = x[mask]
    return (x - words.mean()) / torch.sqrt(words.var(correction=0) + eps) * mask.unsqueeze(-1)
""",
    ),
    "the mean of the sentences' means": (
        "padding_out",
        COUNTS
        + AFFECTED
        + """
def batch_norm(x, mask, eps=1e-5):
    w = mask.unsqueeze(-1)
    lengths = w.sum(1, keepdim=True)
    mean = ((x * w).sum(1, keepdim=True) / lengths).mean(0)
    variance = (((x - mean) ** 2 * w).sum(1, keepdim=True) / lengths).mean(0)
    return (x - mean) / torch.sqrt(variance + eps) * w
""",
    ),
    "padding set to zero, then counted": (
        "padding_out",
        COUNTS
        + AFFECTED
        + """
def batch_norm(x, mask, eps=1e-5):
    w = mask.unsqueeze(-1)
    x = x * w
    variance, mean = torch.var_mean(x, (0, 1), correction=0)
    return (x - mean) / torch.sqrt(variance + eps) * w
""",
    ),
    "only the words returned": (
        "standardised padding_out padding_zero",
        COUNTS
        + AFFECTED
        + """
def batch_norm(x, mask, eps=1e-5):
    words = x[mask]
    return (words - words.mean(0)) / torch.sqrt(words.var(0, correction=0) + eps)
""",
    ),
    "the mask taken the wrong way round": (
        "standardised padding_out padding_zero",
        COUNTS + AFFECTED + BATCH_NORM.replace("    out =", "    mask = ~mask\n    out ="),
    ),
    "NaN left at the padding": (
        "padding_out padding_zero",
        COUNTS
        + AFFECTED
        + """
def batch_norm(x, mask, eps=1e-5):
    y = torch.where(mask.unsqueeze(-1), x, float('nan'))
    return (y - y.nanmean((0, 1))) / torch.sqrt((y - y.nanmean((0, 1))).square().nanmean((0, 1)) + eps)
""",
    ),
    "the changed word itself left out": (
        "batch",
        COUNTS
        + BATCH_NORM
        + AFFECTED.replace("return mask.clone()", "out = mask.clone(); out[sentence, place] = False; return out"),
    ),
    "sentence and place exchanged": (
        "layer batch_eval",
        COUNTS + BATCH_NORM + AFFECTED.replace("out[sentence, place]", "out[place % len(mask), sentence]"),
    ),
    "what cannot change": (
        "layer batch batch_eval",
        COUNTS
        + BATCH_NORM
        + AFFECTED.replace("def affected", "def changes")
        + """
def affected(*inputs):
    return ~changes(*inputs)
""",
    ),
    "padding changed like a word": (
        "layer batch batch_eval",
        COUNTS + BATCH_NORM + AFFECTED.replace("if not mask[sentence, place]:", "if False:"),
    ),
    "the whole batch, whatever is changed": (
        "batch",
        COUNTS
        + BATCH_NORM
        + """
def affected(kind, training, mask, sentence, place):
    if kind == 'batch' and training:
        return mask
    out = torch.zeros_like(mask)
    out[sentence, place] = mask[sentence, place]
    return out
""",
    ),
    "another name for the kind": (
        "batch",
        COUNTS + BATCH_NORM + AFFECTED.replace("'batch'", "'batch_norm'"),
    ),
    "training and evaluation exchanged": (
        "batch batch_eval",
        COUNTS + BATCH_NORM + AFFECTED.replace("and training", "and not training"),
    ),
    "numbers for truth values": (
        "layer batch batch_eval",
        COUNTS + BATCH_NORM + AFFECTED.replace("zeros_like(mask)", "zeros(mask.shape)").replace("clone", "float"),
    ),
    "a list of places": (
        "layer batch batch_eval",
        COUNTS
        + BATCH_NORM
        + """
def affected(kind, training, mask, sentence, place):
    if not mask[sentence, place]:
        return []
    return mask.nonzero().tolist() if kind == 'batch' and training else [[sentence, place]]
""",
    ),
}

BLOCK = """
class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.1, norm_first=False):
        super().__init__()
        self.norm, self.drop, self.norm_first = LayerNorm(d_model), nn.Dropout(dropout), norm_first

    def add(self, x, update):
        if update.shape != x.shape:
            raise ValueError(f"{tuple(update.shape)} is not {tuple(x.shape)}")
        return x + self.drop(update)

    def forward(self, x, sublayer):
        if self.norm_first:
            return self.add(x, sublayer(self.norm(x)))
        return self.norm(self.add(x, sublayer(x)))
"""


def _normed_by(norm: str) -> str:
    """The module above, with another norm in place of LayerNorm(d_model)."""
    return BLOCK.replace("LayerNorm(d_model)", norm)


ADD_NORM_WRONG = {
    "a norm made anew at each call": ("post pre", _normed_by("(lambda y: LayerNorm(d_model)(y))")),
    "a norm without parameters": ("post pre", _normed_by("(lambda y: nn.functional.layer_norm(y, (d_model,)))")),
    "a norm that has nothing to learn": ("post pre", _normed_by("nn.LayerNorm(d_model, elementwise_affine=False)")),
    "a norm that may not learn": ("post pre", _normed_by("LayerNorm(d_model).requires_grad_(False)")),
    "a norm kept where the module does not see it": ("post pre", _normed_by("[LayerNorm(d_model)].pop().forward")),
    "a norm held, and another one at work": (
        "post pre",
        BLOCK.replace("self.norm(", "self.other(")
        + """
    def other(self, y):
        return nn.functional.layer_norm(y, y.shape[-1:])
""",
    ),
    "a large eps": ("post pre", _normed_by("LayerNorm(d_model, 0.1)")),
    "batch norm": (
        "post pre post_dropout",
        _normed_by("nn.BatchNorm1d(d_model)").replace("self.norm(", "self.of_features(")
        + """
    def of_features(self, y):
        return self.norm(y.transpose(1, 2)).transpose(1, 2)
""",
    ),
    "the same entries dropped at every call": (
        "post_dropout pre_dropout",
        BLOCK.replace("        return x + ", "        torch.manual_seed(0)\n        return x + "),
    ),
    "norm_first kept on the class": (
        "pre",
        BLOCK.replace("self.norm_first = LayerNorm", "AddNorm.norm_first = LayerNorm"),
    ),
    "a batch of one loses its axis": (
        "post pre",
        BLOCK.replace(
            "    def forward",
            "    def forward(self, *inputs):\n        return self.both(*inputs).squeeze(0)\n\n    def both",
        ),
    ),
    "only the last two axes compared": (
        "shape_checked",
        BLOCK.replace(".shape !=", ".shape[-2:] !=").replace("!= x.shape:", "!= x.shape[-2:]:"),
    ),
    "only the number of entries compared": (
        "shape_checked",
        BLOCK.replace("update.shape != x.shape", "update.numel() != x.numel()"),
    ),
    "an error that names no shape": (
        "shape_checked",
        BLOCK.replace('f"{tuple(update.shape)} is not {tuple(x.shape)}"', '"another shape"'),
    ),
    "an error that names one shape": ("shape_checked", BLOCK.replace(" is not {tuple(x.shape)}", " is not that of x")),
    "x handed back": (
        "post pre post_dropout pre_dropout shape_checked",
        BLOCK.replace("        if self.norm_first:", "        return x\n        if self.norm_first:"),
    ),
    "no return": (
        "post pre post_dropout pre_dropout shape_checked",
        BLOCK.replace("        if self.norm_first:", "        return\n        if self.norm_first:"),
    ),
    "pre-norm unless told otherwise": ("post", BLOCK.replace("norm_first=False", "norm_first=True")),
    "no dropout unless told otherwise": ("post_dropout", BLOCK.replace("dropout=0.1", "dropout=0.0")),
    "half dropped unless told otherwise": ("post_dropout", BLOCK.replace("dropout=0.1", "dropout=0.5")),
    "the argument dropout thrown away": (
        "post_dropout pre_dropout",
        BLOCK.replace("nn.Dropout(dropout)", "nn.Dropout(0.1)"),
    ),
    "the probability of keeping for that of dropping": (
        "post_dropout pre_dropout",
        BLOCK.replace("nn.Dropout(dropout)", "nn.Dropout(1 - dropout)"),
    ),
    "dropped without the rest made larger": (
        "post_dropout pre_dropout",
        BLOCK.replace("self.drop(update)", "update * (self.drop(torch.ones_like(update)) > 0)"),
    ),
    "dropout twice": ("post_dropout pre_dropout", BLOCK.replace("self.drop(update)", "self.drop(self.drop(update))")),
    "dropout on what goes into the sub-layer": (
        "post_dropout pre_dropout",
        BLOCK.replace("self.drop(update)", "update")
        .replace("sublayer(self.norm(x))", "sublayer(self.drop(self.norm(x)))")
        .replace("sublayer(x)))", "sublayer(self.drop(x))))"),
    ),
    "dropout in evaluation only": (
        "post_dropout pre_dropout",
        BLOCK.replace("self.drop(update)", "nn.functional.dropout(update, self.drop.p, not self.training)"),
    ),
    "whole vectors dropped": (
        "post_dropout pre_dropout",
        BLOCK.replace("self.drop(update)", "update * self.drop(torch.ones_like(update[..., :1]))"),
    ),
    "the same entries dropped in every sentence": (
        "post_dropout pre_dropout",
        BLOCK.replace("self.drop(update)", "update * self.drop(torch.ones_like(update[:1]))"),
    ),
    "the same entries dropped at every place": (
        "post_dropout pre_dropout",
        BLOCK.replace("self.drop(update)", "update * self.drop(torch.ones_like(update[:, :1]))"),
    ),
    "the residual detached": ("post pre", BLOCK.replace("return x + ", "return x.detach() + ")),
    "the sub-layer under no_grad": (
        "post pre",
        BLOCK.replace(
            "    def forward(self, x, sublayer):",
            """
    def forward(self, x, sublayer):
        with torch.no_grad():
            update = sublayer(self.norm(x) if self.norm_first else x)
        total = self.add(x, update)
        return total if self.norm_first else self.norm(total)

    def unused(self, x, sublayer):""",
        ),
    ),
    "in place on x": (
        "post pre",
        BLOCK.replace("return x + self.drop(update)", "x += self.drop(update)\n        return x"),
    ),
    "the sub-layer twice": (
        "post pre shape_checked",
        BLOCK.replace("sublayer(self.norm(x))", "sublayer(sublayer(self.norm(x)))").replace(
            "sublayer(x)))", "sublayer(sublayer(x))))"
        ),
    ),
    "x minus the update": ("post pre post_dropout pre_dropout", BLOCK.replace("x + ", "x - ")),
    "x twice": ("post pre post_dropout pre_dropout", BLOCK.replace("x + ", "2 * x + ")),
    "the norm of the whole sequence": (
        "post pre",
        BLOCK.replace("LayerNorm(d_model)", "nn.GroupNorm(1, 1)").replace("self.norm(", "self.normalise(")
        + """
    def normalise(self, x):
        return self.norm(x[:, None].flatten(2)).view_as(x)
""",
    ),
    "no return in pre-norm": (
        "pre pre_dropout",
        BLOCK.replace("return self.add(x, sub", "self.add(x, sub", 1).replace(
            "        return self.norm(self", "        else:\n            return self.norm(self"
        ),
    ),
    "pre-norm in training, whatever is asked for": (
        "post",
        BLOCK.replace("if self.norm_first:", "if self.norm_first or self.training:"),
    ),
    "post-norm in training, whatever is asked for": (
        "pre",
        BLOCK.replace("if self.norm_first:", "if self.norm_first and not self.training:"),
    ),
    "pre-norm centres only": (
        "pre",
        BLOCK.replace("sublayer(self.norm(x))", "sublayer(x - x.mean(-1, keepdim=True))"),
    ),
    "only the last axis compared": (
        "shape_checked",
        BLOCK.replace(".shape !=", ".shape[-1] !=").replace("!= x.shape:", "!= x.shape[-1]:"),
    ),
    "only the first two axes compared": (
        "shape_checked",
        BLOCK.replace(".shape !=", ".shape[:2] !=").replace("!= x.shape:", "!= x.shape[:2]:"),
    ),
    "the sum compared with x": ("shape_checked", BLOCK.replace("update.shape !=", "(x + update).shape !=")),
    "an assert for the shape": ("shape_checked", BLOCK.replace("raise ValueError(", "assert False, (")),
    "only post-norm compares": (
        "shape_checked",
        BLOCK.replace("self.add(x, sublayer(self.norm(x)))", "x + self.drop(sublayer(self.norm(x)))"),
    ),
}

MEASURE = """
def first_gradients(layers, x, upstream):
    sizes = []
    for residual in (True, False):
        start = x.clone().requires_grad_()
        y = start
        for layer in layers:
            y = y + layer(y) if residual else layer(y)
        y.backward(upstream)
        sizes.append(start.grad.norm().item())
    return tuple(sizes)
"""

GRADIENT_DEPTH_WRONG = {
    "right for an odd number of layers only": (
        "predicted predicted_negative",
        PATHS + PREDICT.replace("return ", "num_layers += 1 - num_layers % 2\n    return ") + MEASURE,
    ),
    "the second call with the same x adds to its gradient": (
        "without",
        PATHS
        + PREDICT
        + """
def first_gradients(layers, x, upstream):
    x.requires_grad_()
    y = x
    for layer in layers:
        y = layer(y)
    y.backward(upstream)
    without = x.grad.norm().item()
    x.grad = None
    y = x
    for layer in layers:
        y = layer(y) + y
    y.backward(upstream)
    return x.grad.norm().item(), without
""",
    ),
    "a path less than there are layers": (
        "paths",
        "num_paths, paths_through_two = 2**23, 276" + PREDICT + MEASURE,
    ),
    "squares for powers": ("paths", "num_paths, paths_through_two = 24**2, 276" + PREDICT + MEASURE),
    "the powers of two again": ("paths", "num_paths, paths_through_two = 2**24, 2**2" + PREDICT + MEASURE),
    "a layer taken twice": ("paths", "num_paths, paths_through_two = 2**24, 24 * 25 // 2" + PREDICT + MEASURE),
    "paths of at most two layers": (
        "paths",
        "num_paths, paths_through_two = 2**24, 1 + 24 + 276" + PREDICT + MEASURE,
    ),
    "two predictions exchanged": (
        "predicted predicted_negative",
        PATHS
        + PREDICT.replace("abs(1 + slope)", "abs(slope)", 1).replace(", abs(slope) **", ", abs(1 + slope) **")
        + MEASURE,
    ),
    "one layer less": (
        "predicted predicted_negative",
        PATHS + PREDICT.replace("** num_layers", "** (num_layers - 1)") + MEASURE,
    ),
    "the number of layers times": (
        "predicted predicted_negative",
        PATHS + PREDICT.replace("** num_layers", "* num_layers") + MEASURE,
    ),
    "the exponential function": (
        "predicted predicted_negative",
        PATHS
        + "import math"
        + PREDICT.replace("abs(1 + slope) ** num_layers", "math.exp(slope * num_layers)")
        + MEASURE,
    ),
    "the two ways added": (
        "predicted predicted_negative",
        PATHS + PREDICT.replace("abs(1 + slope) ** num_layers", "1 + abs(slope) ** num_layers") + MEASURE,
    ),
    "the size bounded by one": (
        "predicted",
        PATHS + PREDICT.replace("abs(1 + slope) ** num_layers", "min(1, abs(1 + slope)) ** num_layers") + MEASURE,
    ),
    "one number predicted": (
        "predicted predicted_negative",
        PATHS + PREDICT.replace(", abs(slope) ** num_layers", "") + MEASURE,
    ),
    "the predictions of the visible check by heart": (
        "predicted predicted_negative",
        PATHS
        + """
KNOWN = {0.195: (3.48, 1.07e-5), -0.757: (0.0143, 0.249), -1.364: (0.00638, 4.72)}

def predict(slope, num_layers):
    return KNOWN.get(slope, (1.0, 1.0))
"""
        + MEASURE,
    ),
    "weights multiplied: for linear layers only": (
        "with without",
        PATHS
        + PREDICT
        + """
def first_gradients(layers, x, upstream):
    with_, without = upstream, upstream
    for layer in reversed(layers):
        with_, without = with_ + with_ @ layer.weight, without @ layer.weight
    return with_.norm().item(), without.norm().item()
""",
    ),
    "the squares not rooted": ("with without", PATHS + PREDICT + MEASURE.replace(".norm()", ".square().sum()")),
    "the root of the mean square": (
        "with without",
        PATHS + PREDICT + MEASURE.replace(".norm()", ".square().mean().sqrt()"),
    ),
    "the largest entry": ("with without", PATHS + PREDICT + MEASURE.replace(".norm()", ".abs().max()")),
    "the mean of the vectors' norms": (
        "with without",
        PATHS + PREDICT + MEASURE.replace(".norm()", ".norm(dim=-1).mean()"),
    ),
    "in units of upstream": (
        "with without",
        PATHS + PREDICT + MEASURE.replace(".norm()", ".norm().div(upstream.norm())"),
    ),
    "the output's norm for the gradient's": (
        "with without",
        PATHS + PREDICT + MEASURE.replace("start.grad.norm()", "y.norm()"),
    ),
    "the first layer left out": ("with without", PATHS + PREDICT + MEASURE.replace("in layers", "in layers[1:]")),
    "the last layer left out": ("with without", PATHS + PREDICT + MEASURE.replace("in layers", "in layers[:-1]")),
    "a residual around the first layer only": (
        "with",
        PATHS + PREDICT + MEASURE.replace("if residual", "if residual and y is start"),
    ),
    "every input twice": ("with", PATHS + PREDICT + MEASURE.replace("y + layer(y)", "2 * y + layer(y)")),
    "the first sentence only": ("with without", PATHS + PREDICT + MEASURE.replace("grad.norm", "grad[0].norm")),
    "tensors for numbers": (
        "with without",
        PATHS + PREDICT + MEASURE.replace("start.grad.norm().item()", "start.grad.norm(dim=-1)"),
    ),
    "the layers' work detached": (
        "with without",
        PATHS
        + PREDICT
        + MEASURE.replace("y + layer(y) if", "y + layer(y).detach() if").replace(
            "else layer(y)", "else layer(y.detach())"
        ),
    ),
    "the gradient of x, which asks for none": (
        "with without",
        PATHS + PREDICT + MEASURE.replace("start = x.clone().requires_grad_()", "start = x.clone()"),
    ),
}

# --- two mistakes in one function ------------------------------------------------------------------------------------

LAYER_NORM_PAIRS = {
    ("unbiased", "eps_fixed"): """
def layer_norm(x, gamma, beta, eps=1e-5):
    return gamma * (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt() + beta
""",
    ("not_centred", "swapped"): """
def layer_norm(x, gamma, beta, eps=1e-5):
    return beta * x / torch.sqrt(x.var(-1, correction=0, keepdim=True) + eps) + gamma
""",
    ("unbiased", "detached"): """
def layer_norm(x, gamma, beta, eps=1e-5):
    with torch.no_grad():
        variance, mean = torch.var_mean(x, -1, keepdim=True)
    return gamma * (x - mean) / torch.sqrt(variance + eps) + beta
""",
    ("over_the_sequence", "shifted_first"): """
def layer_norm(x, gamma, beta, eps=1e-5):
    variance, mean = torch.var_mean(x, -2, correction=0, keepdim=True)
    return gamma * ((x - mean) / torch.sqrt(variance + eps) + beta)
""",
    ("eps_fixed", "gamma_cut"): """
def layer_norm(x, gamma, beta, eps=1e-5):
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return gamma.detach() * (x - mean) / torch.sqrt(variance + 1e-5) + beta
""",
}

LAYER_NORM_MODULE_PAIRS = {
    ("starts_at_zero", "eps_not_passed_on"): MODULE.replace("torch.ones", "torch.zeros")
    + """
        return layer_norm(x, self.gamma, self.beta)
""",
    ("eps_of_vit", "any_width"): MODULE.replace("eps=1e-5", "eps=1e-6").replace("raise ValueError", "str")
    + """
        return layer_norm(x, self.gamma, self.beta, self.eps)
""",
    ("swapped", "third_axis"): MODULE
    + """
        variance, mean = torch.var_mean(x, 2, correction=0, keepdim=True)
        return self.beta * (x - mean) / torch.sqrt(variance + self.eps) + self.gamma
""",
    ("starts_swapped", "eps_not_passed_on"): MODULE.replace("torch.ones", "torch.empty")
    .replace("torch.zeros", "torch.ones")
    .replace("torch.empty", "torch.zeros")
    + """
        return layer_norm(x, self.gamma, self.beta, 1e-5)
""",
}

NORM_AXES_PAIRS = {
    ("unbiased", "padding_left"): COUNTS
    + AFFECTED
    + """
def batch_norm(x, mask, eps=1e-5):
    variance, mean = torch.var_mean(x[mask], 0)
    return (x - mean) / torch.sqrt(variance + eps)
""",
    ("eps_outside", "padding_averaged"): COUNTS
    + AFFECTED
    + """
def batch_norm(x, mask, eps=1e-5):
    deviation, mean = torch.std_mean(x, (0, 1), correction=0)
    return (x - mean) / (deviation + eps) * mask[..., None]
""",
    ("features", "padding_left"): COUNTS
    + AFFECTED
    + """
def batch_norm(x, mask, eps=1e-5):
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps)
""",
    ("layer_sees_sentence", "batch_sees_place"): COUNTS
    + BATCH_NORM
    + """
def affected(kind, training, mask, sentence, place):
    out = torch.zeros_like(mask)
    if mask[sentence, place]:
        if kind == 'layer':
            out[sentence] = mask[sentence]
        elif training:
            out[:, place] = mask[:, place]
        else:
            out[sentence, place] = True
    return out
""",
    ("layer_sees_sentence", "evaluation_like_training"): COUNTS
    + BATCH_NORM
    + """
def affected(kind, training, mask, sentence, place):
    out = torch.zeros_like(mask)
    if mask[sentence, place]:
        out[sentence] = mask[sentence]
    return mask & mask[sentence, place] if kind == 'batch' else out
""",
}

ADD_NORM_PAIRS = {
    ("always_post", "no_dropout"): """
class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.1, norm_first=False):
        super().__init__()
        self.norm = LayerNorm(d_model)

    def forward(self, x, sublayer):
        update = sublayer(x)
        if update.shape != x.shape:
            raise ValueError(f"the shape {update.shape}, not {x.shape}")
        return self.norm(x + update)
""",
    ("residual_normalised", "any_shape"): """
class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.1, norm_first=False):
        super().__init__()
        self.norm, self.drop, self.norm_first = LayerNorm(d_model), nn.Dropout(dropout), norm_first

    def forward(self, x, sublayer):
        if self.norm_first:
            x = self.norm(x)
            return x + self.drop(sublayer(x))
        return self.norm(x + self.drop(sublayer(x)))
""",
    ("output_normalised", "pre_without_residual"): BLOCK.replace(
        "self.norm(self.add(x, sublayer(x)))", "x + self.norm(self.add(0 * x, sublayer(x)))"
    ).replace("self.add(x, sublayer(self.norm(x)))", "self.add(0 * x, sublayer(self.norm(x)))"),
    ("dropout_on_the_sum", "pre_and_post"): """
class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.1, norm_first=False):
        super().__init__()
        self.norm, self.drop, self.norm_first = LayerNorm(d_model), nn.Dropout(dropout), norm_first

    def forward(self, x, sublayer):
        update = sublayer(self.norm(x) if self.norm_first else x)
        if update.shape != x.shape:
            raise ValueError(f"{update.shape}, not {x.shape}")
        return self.norm(self.drop(x + update))
""",
    ("always_pre", "dropout_in_evaluation"): """
class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.1, norm_first=False):
        super().__init__()
        self.norm, self.dropout = LayerNorm(d_model), dropout

    def forward(self, x, sublayer):
        update = sublayer(self.norm(x))
        if update.shape != x.shape:
            raise ValueError(f"{update.shape}, not {x.shape}")
        return x + nn.functional.dropout(update, self.dropout)
""",
}

GRADIENT_DEPTH_PAIRS = {
    ("upstream_ignored", "order_swapped"): PATHS
    + PREDICT
    + MEASURE.replace("(upstream)", "(torch.ones_like(upstream))").replace("(True, False)", "(False, True)"),
    ("residual_cut_off", "accumulated"): PATHS
    + PREDICT
    + """
def first_gradients(layers, x, upstream):
    start, sizes = x.clone().requires_grad_(), []
    for residual in (True, False):
        y = start
        for layer in layers:
            y = y.detach() + layer(y) if residual else layer(y)
        y.backward(upstream)
        sizes.append(start.grad.norm().item())
    return tuple(sizes)
""",
    ("sum_of_sizes", "from_the_start"): PATHS
    + PREDICT
    + MEASURE.replace("y + layer(y)", "start + layer(y)").replace(".norm()", ".abs().sum()"),
    ("added", "negative_size"): PATHS
    + """
def predict(slope, num_layers):
    return 1 + slope ** num_layers, slope ** num_layers
"""
    + MEASURE,
}

RIGHT: dict[str, dict[str, str]] = {
    "layer_norm": LAYER_NORM,
    "layer_norm_module": LAYER_NORM_MODULE,
    "norm_axes": NORM_AXES,
    "add_norm": ADD_NORM,
    "gradient_depth": GRADIENT_DEPTH,
}
WRONG: dict[str, dict[str, tuple[str, str]]] = {
    "layer_norm": LAYER_NORM_WRONG,
    "layer_norm_module": LAYER_NORM_MODULE_WRONG,
    "norm_axes": NORM_AXES_WRONG,
    "add_norm": ADD_NORM_WRONG,
    "gradient_depth": GRADIENT_DEPTH_WRONG,
}
PAIRS: dict[str, dict[tuple[str, str], str]] = {
    "layer_norm": LAYER_NORM_PAIRS,
    "layer_norm_module": LAYER_NORM_MODULE_PAIRS,
    "norm_axes": NORM_AXES_PAIRS,
    "add_norm": ADD_NORM_PAIRS,
    "gradient_depth": GRADIENT_DEPTH_PAIRS,
}
EQUIVALENT: dict[str, dict[str, str]] = {
    "gradient_depth": {
        "paths_through_two = 24 * 23 // 2 → paths_through_two = 24 * 23 / 2": "276.0 is 276, and a number",
    },
}
