"""Known answers to the exercises of chapter 5; the package's docstring says what each table holds."""

TWO_MAPS = {
    "as the equation": """
def feed_forward(x, w_1, b_1, w_2, b_2):
    return torch.relu(x @ w_1 + b_1) @ w_2 + b_2
""",
    "linear layers of torch's functions": """
from torch.nn import functional as F

def feed_forward(x, w_1, b_1, w_2, b_2):
    return F.linear(F.relu(F.linear(x, w_1.T, b_1)), w_2.T, b_2)
""",
    "loops over batch, position and unit": """
def feed_forward(x, w_1, b_1, w_2, b_2):
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            out[b, t] = b_2
            for unit in range(len(b_1)):
                h = (x[b, t] * w_1[:, unit]).sum() + b_1[unit]
                if h > 0:
                    out[b, t] += h * w_2[unit]
    return out
""",
    "einsum, bent in place": """
def feed_forward(x, w_1, b_1, w_2, b_2):
    h = torch.einsum('bsd,df->bsf', x, w_1).add_(b_1).relu_()
    return torch.einsum('bsf,fd->bsd', h, w_2).add_(b_2)
""",
    "NumPy": """
import numpy as np

def feed_forward(x, w_1, b_1, w_2, b_2):
    x, w_1, b_1, w_2, b_2 = (t.numpy() for t in (x, w_1, b_1, w_2, b_2))
    return np.maximum(x @ w_1 + b_1, 0) @ w_2 + b_2
""",
    "two convolutions of width 1, in float64": """
def feed_forward(x, w_1, b_1, w_2, b_2):
    x, w_1, b_1, w_2, b_2 = (t.double() for t in (x, w_1, b_1, w_2, b_2))
    h = nn.functional.conv1d(x.mT, w_1.T[..., None], b_1)
    return nn.functional.conv1d(h * (h > 0), w_2.T[..., None], b_2).mT
""",
    "a sequential block with the weights put in": """
def feed_forward(x, w_1, b_1, w_2, b_2):
    net = nn.Sequential(nn.Linear(*w_1.shape), nn.ReLU(), nn.Linear(*w_2.shape))
    net.load_state_dict({'0.weight': w_1.T, '0.bias': b_1, '2.weight': w_2.T, '2.bias': b_2})
    return net(x)
""",
    "the biases as one more row of the weights": """
def with_one(t):
    return torch.cat([t, torch.ones(*t.shape[:-1], 1)], dim=-1)

def feed_forward(x, w_1, b_1, w_2, b_2):
    up = torch.cat([w_1, b_1[None]])
    down = torch.cat([w_2, b_2[None]])
    return with_one(torch.clamp(with_one(x) @ up, min=0)) @ down
""",
    "vmap over sequences and positions": """
def feed_forward(x, w_1, b_1, w_2, b_2):
    def one(token):
        return nn.functional.threshold(torch.mv(w_1.T, token) + b_1, 0, 0) @ w_2 + b_2
    return torch.vmap(torch.vmap(one))(x)
""",
    "all positions in one matrix, with addmm": """
def feed_forward(x, w_1, b_1, w_2, b_2):
    rows = x.reshape(-1, x.size(-1))  # (batch * seq, d_model)
    hidden = torch.addmm(b_1, rows, w_1)
    hidden[hidden < 0] = 0
    return torch.addmm(b_2, hidden, w_2).view(x.shape)
""",
    "a golfed lambda": """
feed_forward = lambda x, *w: (x @ w[0] + w[1]).clamp(0) @ w[2] + w[3]
""",
    "hidden unit by hidden unit, summed up": """
from functools import reduce

def unit(x, column, bias, row):
    h = (x * column).sum(-1, keepdim=True) + bias
    return (h + h.abs()) / 2 * row

def feed_forward(x, w_1, b_1, w_2, b_2):
    return reduce(torch.add, [unit(x, *u) for u in zip(w_1.T, b_1, w_2)], b_2)
""",
    "features first, turned round at the end": """
def feed_forward(x, w_1, b_1, w_2, b_2):
    columns = w_1.T @ x.permute(0, 2, 1) + b_1[:, None]  # (batch, d_ff, seq)
    columns = torch.where(columns < 0, torch.zeros_like(columns), columns)
    return (w_2.T @ columns + b_2[:, None]).permute(0, 2, 1)
""",
    "recursion down to one token": """
def feed_forward(x, w_1, b_1, w_2, b_2):
    if x.dim() > 1:
        return torch.stack([feed_forward(part, w_1, b_1, w_2, b_2) for part in x])
    return sum((h * row for h, row in zip(x @ w_1 + b_1, w_2) if h > 0), start=b_2)
""",
    "a decorator that prints and warns": """
import functools
import sys
import warnings

def chatty(f):
    @functools.wraps(f)
    def wrapped(x, *weights):
        print('x', tuple(x.shape), 'weights', [tuple(w.shape) for w in weights])
        warnings.warn('made by hand')
        result = f(x, *weights)
        print('done', result.mean().item(), file=sys.stderr)
        return result
    return wrapped

@chatty
def feed_forward(x, w_1, b_1, w_2, b_2):
    hidden = torch.tensordot(x, w_1, dims=1) + b_1.view(1, 1, -1)
    positive = torch.max(hidden, hidden.new_zeros(1))
    return torch.tensordot(positive, w_2, dims=1) + b_2.view(1, 1, -1)
""",
}

GELUS = {
    "erf": """
def gelu(x, approximate='none'):
    if approximate == 'none':
        return x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))
    if approximate == 'tanh':
        return 0.5 * x * (1 + torch.tanh((2 / math.pi)**.5 * (x + 0.044715 * x * x * x)))
    raise ValueError('no such form: ' + approximate)

def gelu_derivative(x):
    return (1 + torch.erf(x / 2**.5)) / 2 + x * torch.exp(-x * x / 2) / (2 * math.pi)**.5
""",
    "a distribution, and autograd": """
normal = torch.distributions.Normal(0.0, 1.0)

def gelu(x, approximate='none'):
    if approximate not in ('none', 'tanh'):
        raise ValueError(f'{approximate} is unknown')
    if approximate == 'none':
        return x * normal.cdf(x)
    return x * torch.sigmoid(math.sqrt(8 / math.pi) * (x + 0.044715 * x**3))

def gelu_derivative(x):
    x = x.detach().clone().requires_grad_()
    return torch.autograd.grad(gelu(x).sum(), x)[0]
""",
    "the complement, in float64": """
def gelu(x, approximate='none'):
    x = x.double()
    if approximate == 'none':
        return x * torch.erfc(-x / math.sqrt(2)) / 2
    elif approximate == 'tanh':
        return x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + .044715 * x**3)))
    else:
        raise ValueError(approximate)

def gelu_derivative(x):
    return torch.exp(log_density(x)) * x + torch.special.ndtr(x)

def log_density(x):
    return -x * x / 2 - math.log(2 * math.pi) / 2
""",
    "Python's own erf, number by number": """
import numpy as np

def gelu(x, approximate='none'):
    forms = {
        'none': lambda v: v * (1 + math.erf(v / math.sqrt(2))) / 2,
        'tanh': lambda v: v / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))),
    }
    if approximate not in forms:
        raise ValueError(f'approximate={approximate}')
    return torch.tensor([forms[approximate](v) for v in x.flatten().tolist()]).reshape(x.shape)

def gelu_derivative(x):
    step = lambda v: (1 + math.erf(v / math.sqrt(2))) / 2 + v * math.exp(-v * v / 2) / math.sqrt(2 * math.pi)
    return np.vectorize(step)(x.numpy())
""",
    "vmap of grad": """
def gelu(x, approximate='none'):
    if approximate == 'none':
        return torch.special.ndtr(x) * x
    if approximate == 'tanh':
        cube = x ** 3
        return (x + x * torch.tanh(math.sqrt(2 / math.pi) * x + math.sqrt(2 / math.pi) * 0.044715 * cube)) / 2
    raise ValueError(f"approximate should be 'none' or 'tanh', and not {approximate!r}")

def gelu_derivative(x):
    return torch.vmap(torch.func.grad(gelu))(x.flatten()).unflatten(0, x.shape)
""",
    "closures in a dict, and the rule for a product": """
def times_x(share):
    return lambda x: x * share(x)

def half_wave(curve, inner):
    return lambda x: 0.5 + 0.5 * curve(inner(x))

SHARES = dict(
    none=half_wave(torch.erf, lambda x: x * 0.5**0.5),
    tanh=half_wave(torch.tanh, lambda x: (2 / math.pi)**0.5 * x * (1 + 0.044715 * x**2)),
)

def gelu(x, approximate='none'):
    try:
        share = SHARES[approximate]
    except KeyError:
        raise ValueError(f'no form is called {approximate}') from None
    return times_x(share)(x)

def gelu_derivative(x):
    first, second = x, SHARES['none'](x)
    first_slope, second_slope = torch.ones_like(x), (2 * math.pi)**-0.5 * torch.exp(-x**2 / 2)
    return first_slope * second + first * second_slope
""",
    "the density, summed up by Gauss's rule": """
import numpy as np

NODES, SHARES = (torch.tensor(part) for part in np.polynomial.legendre.leggauss(40))

def density(x):
    return torch.exp(-x.square() / 2) / math.sqrt(math.tau)

def below(x):
    # one half lies below 0; between 0 and x, Gauss's points lie at x·(1 + node)/2; beyond 8 there is nothing
    x = x.double().clamp(-8, 8).unsqueeze(-1)
    return 0.5 + (density(x * (1 + NODES) / 2) * SHARES).sum(-1) * x.squeeze(-1) / 2

def gelu(x, approximate='none'):
    match approximate:
        case 'none':
            return (x * below(x)).float()
        case 'tanh':
            e = torch.exp(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
            return x * (1 - 1 / (e + 1))
        case _:
            raise ValueError(f'{approximate=}')

def gelu_derivative(x):
    return (below(x) + x * density(x)).to(x.dtype)
""",
    "the series of erf, in NumPy": """
import numpy as np

def erf(z):
    z = np.clip(np.asarray(z, dtype=np.float64), -4.2, 4.2)  # beyond, it is 1 to eight places
    term, total = z.copy(), z.copy()
    for n in range(1, 80):
        term = -term * z * z / n
        total += term / (2 * n + 1)
    return 2 / np.sqrt(np.pi) * total

def gelu(x, approximate='none'):
    x = x.numpy()
    if approximate == 'none':
        return (0.5 * x * (1 + erf(x / np.sqrt(2)))).astype(np.float32)
    if approximate == 'tanh':
        return x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi).astype(np.float32) * (x + np.float32(0.044715) * x**3)))
    raise ValueError('approximate may not be %s' % approximate)

def gelu_derivative(x):
    x = x.numpy()
    return 0.5 * (1 + erf(x / np.sqrt(2))) + x / np.sqrt(2 * np.pi) * np.exp(-0.5 * x**2)
""",
    "an autograd function of its own": """
class Exact(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * (1 - 0.5 * torch.erfc(x / math.sqrt(2)))

    @staticmethod
    def backward(ctx, upstream):
        (x,) = ctx.saved_tensors
        density = torch.distributions.Normal(0, 1).log_prob(x).exp()
        return upstream * (0.5 + 0.5 * torch.erf(x / math.sqrt(2)) + x * density)

def gelu(x, approximate='none'):
    if approximate == 'none':
        return Exact.apply(x)
    assert_known(approximate)
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3))))

def assert_known(approximate):
    if approximate != 'tanh':
        raise ValueError(f"'none' or 'tanh', please: {approximate} is neither")

def gelu_derivative(x):
    return torch.autograd.functional.vjp(gelu, x, torch.ones_like(x))[1]
""",
    "the slope by a central difference in float64": """
def gelu(x, approximate='none'):
    if approximate == 'none':
        cut = x / math.sqrt(2)
    elif approximate == 'tanh':
        cut = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x**2)
    else:
        raise ValueError(f'what is {approximate}?')
    return x * (1 + (torch.erf if approximate == 'none' else torch.tanh)(cut)) / 2

def gelu_derivative(x, step=1e-4):
    x = x.double()
    return (gelu(x + step) - gelu(x - step)) / (2 * step)
""",
    "in place on copies of its own": """
def gelu(x, approximate='none'):
    if approximate not in {'none', 'tanh'}:
        raise ValueError(approximate)
    if approximate == 'none':
        return x.clone().div_(math.sqrt(2)).erf_().add_(1).mul_(x).mul_(0.5)
    return x.pow(3).mul_(0.044715).add_(x).mul_(math.sqrt(2 / math.pi)).tanh_().add_(1).mul_(x).div_(2)

def gelu_derivative(x):
    out = x.clone()
    out.square_().neg_().div_(2).exp_()
    out *= x / math.sqrt(2 * math.pi)
    out += torch.special.log_ndtr(x).exp()
    return out
""",
    "an object that is called, and a dual number": """
import warnings

class Gelu:
    known = ('none', 'tanh')

    def __call__(self, x, approximate='none'):
        warnings.warn('made by hand')
        if approximate not in self.known:
            raise ValueError(f'{approximate!r} is not one of {self.known}')
        return getattr(self, approximate)(x)

    def none(self, x):
        return x / 2 + x * torch.erf(x / math.sqrt(2)) / 2

    def tanh(self, x):
        return x / 2 + x * torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)) / 2

gelu = Gelu()

def gelu_derivative(x):
    return torch.func.jvp(gelu, (x,), (torch.ones_like(x),))[1]
""",
}

MODULES = {
    "modules in a dict": """
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1, activation='relu'):
        super().__init__()
        kinds = {'relu': nn.ReLU, 'gelu': nn.GELU}
        if activation not in kinds:
            raise ValueError(f'activation={activation!r}')
        self.linear_1, self.linear_2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.act, self.drop = kinds[activation](), nn.Dropout(dropout)

    def forward(self, x):
        return self.linear_2(self.drop(self.act(self.linear_1(x))))
""",
    "functions, printing and warnings": """
import warnings

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1, activation='relu'):
        super().__init__()
        warnings.warn('made by hand')
        if activation == 'relu':
            self.act = torch.relu
        elif activation == 'gelu':
            self.act = lambda h: h * torch.special.ndtr(h)
        else:
            raise ValueError('I know relu and gelu, not ' + activation)
        self.linear_1, self.linear_2, self.p = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model), dropout

    def forward(self, x):
        print(x.shape)
        h = self.act(self.linear_1(x))
        return self.linear_2(nn.functional.dropout(h, self.p, self.training))
""",
    "a mask by hand, in float64": """
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1, activation='relu'):
        super().__init__()
        if activation not in ('relu', 'gelu'):
            raise ValueError(activation)
        self.linear_1 = nn.Linear(d_model, d_ff, dtype=torch.float64)
        self.linear_2 = nn.Linear(d_ff, d_model, dtype=torch.float64)
        self.activation, self.dropout = activation, dropout

    def forward(self, x):
        h = self.linear_1(x.double())
        h = h.clamp(min=0) if self.activation == 'relu' else nn.functional.gelu(h)
        if self.training and self.dropout:
            h = h * (torch.rand(h.shape) > self.dropout) / (1 - self.dropout)
        return self.linear_2(h)
""",
    "weights (in, out), through load_reference": """
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1, activation='relu'):
        super().__init__()
        if activation not in {'relu', 'gelu'}:
            raise ValueError(f'{activation}?')
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff) / d_model**.5)
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) / d_ff**.5)
        self.b_1, self.b_2 = nn.Parameter(torch.zeros(d_ff)), nn.Parameter(torch.zeros(d_model))
        self.f, self.drop = getattr(nn.functional, activation), nn.Dropout(dropout)

    def load_reference(self, weights):
        with torch.no_grad():
            for i, w, b in ((1, self.w_1, self.b_1), (2, self.w_2, self.b_2)):
                w.copy_(weights[f'linear_{i}.weight'].T)
                b.copy_(weights[f'linear_{i}.bias'])

    def forward(self, x):
        return self.drop(self.f(x @ self.w_1 + self.b_1)) @ self.w_2 + self.b_2
""",
    "both maps' weights in one parameter": """
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1, activation='relu'):
        super().__init__()
        if activation not in ('relu', 'gelu'):
            raise ValueError(f'activation {activation} is not to be had')
        self.widths = d_ff, d_model
        self.fused = nn.Parameter(torch.randn(2 * d_model, d_ff) / math.sqrt(d_ff))
        self.biases = nn.Parameter(torch.zeros(d_ff + d_model))
        self.activation, self.drop = activation, nn.Dropout(dropout)

    def load_reference(self, weights):
        self.fused.data = torch.cat([weights['linear_1.weight'].T, weights['linear_2.weight']])
        self.biases.data = torch.cat([weights['linear_1.bias'], weights['linear_2.bias']])

    def forward(self, x):
        up, down = self.fused.chunk(2)  # (d_model, d_ff) each
        b_1, b_2 = self.biases.split(self.widths)
        hidden = torch.einsum('...d,df->...f', x, up) + b_1
        hidden = hidden.relu() if self.activation == 'relu' else nn.functional.gelu(hidden)
        return torch.einsum('...f,df->...d', self.drop(hidden), down) + b_2
""",
    "a sequential block, and the two maps pointed at": """
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1, activation='relu'):
        super().__init__()
        if activation.lower() != activation or not hasattr(self, 'make_' + activation):
            raise ValueError(f'make_{activation} is missing')
        bend = getattr(self, 'make_' + activation)()
        self.net = nn.Sequential(nn.Linear(d_model, d_ff), bend, nn.Dropout(dropout), nn.Linear(d_ff, d_model))
        self.linear_1, self.linear_2 = self.net[0], self.net[-1]

    make_relu, make_gelu = nn.ReLU, nn.GELU

    def forward(self, x):
        return self.net(x)
""",
    "a sequential block by inheritance": """
from collections import OrderedDict

class FeedForward(nn.Sequential):
    def __init__(self, d_model, d_ff, dropout=0.1, activation='relu'):
        bends = nn.ModuleDict({'relu': nn.ReLU(inplace=True), 'gelu': nn.GELU()})
        if activation not in bends:
            raise ValueError(f'one of {list(bends)}, but not {activation}')
        super().__init__(OrderedDict(
            linear_1=nn.Linear(d_model, d_ff),
            bend=bends[activation],
            drop=nn.Dropout(dropout),
            linear_2=nn.Linear(d_ff, d_model),
        ))
""",
    "token by token with vmap": """
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1, activation='relu'):
        super().__init__()
        self.linear_1, self.linear_2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.bend, self.p = bend_called(activation), dropout

    def one_token(self, token):
        hidden = self.bend(self.linear_1.weight @ token + self.linear_1.bias)
        hidden = torch.dropout(hidden, self.p, self.training)
        return self.linear_2.weight @ hidden + self.linear_2.bias

    def forward(self, x):
        each = torch.vmap(torch.vmap(self.one_token, randomness='different'), randomness='different')
        return each(x)

def bend_called(name):
    match name:
        case 'relu':
            return lambda h: torch.where(h > 0, h, 0.0)
        case 'gelu':
            return lambda h: h * (1 + torch.erf(h / math.sqrt(2))) / 2
    raise ValueError(f'no bend is called {name}')
""",
    "convolutions of width 1, through load_reference": """
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1, activation='relu'):
        super().__init__()
        if activation not in ('relu', 'gelu'):
            raise ValueError(f'{activation} is unknown')
        self.up, self.down = nn.Conv1d(d_model, d_ff, 1), nn.Conv1d(d_ff, d_model, kernel_size=1)
        self.gelu, self.drop = activation == 'gelu', nn.Dropout(p=dropout)

    def load_reference(self, weights):
        self.up.load_state_dict({'weight': weights['linear_1.weight'][..., None], 'bias': weights['linear_1.bias']})
        self.down.load_state_dict({'weight': weights['linear_2.weight'][..., None], 'bias': weights['linear_2.bias']})

    def forward(self, x):
        channels = self.up(x.transpose(1, 2))  # (batch, d_ff, seq)
        channels = nn.functional.gelu(channels) if self.gelu else nn.functional.relu(channels)
        return self.down(self.drop(channels)).transpose(1, 2)
""",
    "parameters in dicts, under the same names": """
def filled(out_features, in_features):
    weight = nn.init.xavier_uniform_(torch.empty(out_features, in_features))
    return nn.ParameterDict({'weight': weight, 'bias': torch.zeros(out_features)})

class FeedForward(nn.Module):
    FUNCTIONS = {'relu': nn.functional.relu, 'gelu': nn.functional.gelu}

    def __init__(self, d_model, d_ff, dropout=0.1, activation='relu'):
        super().__init__()
        try:
            self.function = self.FUNCTIONS[activation]
        except KeyError as error:
            raise ValueError('unknown: ' + activation) from error
        self.linear_1, self.linear_2 = filled(d_ff, d_model), filled(d_model, d_ff)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        for number, layer in enumerate((self.linear_1, self.linear_2)):
            x = nn.functional.linear(self.drop(self.function(x)) if number else x, **layer)
        return x
""",
    "lazy layers and Bernoulli's draws": """
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1, activation='relu'):
        if activation not in 'relu gelu'.split():
            raise ValueError(f'activation={activation}, which is neither relu nor gelu')
        super().__init__()
        self.linear_1, self.linear_2 = nn.LazyLinear(d_ff), nn.LazyLinear(d_model)
        self.keep, self.activation = 1.0 - dropout, activation

    def forward(self, x):
        hidden = getattr(nn.functional, self.activation)(self.linear_1(x))
        if self.training:
            stays = torch.bernoulli(torch.full_like(hidden, self.keep))
            hidden = hidden.mul(stays).div(self.keep)
        return self.linear_2(hidden)
""",
    "a block for the hidden layer, computed again going backwards": """
from torch.utils.checkpoint import checkpoint

class Hidden(nn.Module):
    def __init__(self, d_in, d_out, act, p):
        super().__init__()
        self.map, self.act, self.p = nn.Linear(d_in, d_out), act, p

    def forward(self, x):
        return nn.functional.dropout(self.act(self.map(x)), p=self.p, training=self.training)

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1, activation='relu'):
        super().__init__()
        acts = {'relu': nn.Threshold(0.0, 0.0), 'gelu': nn.GELU(approximate='none')}
        if acts.get(activation) is None:
            raise ValueError(f'the activation may not be {activation}')
        self.hidden = Hidden(d_model, d_ff, acts[activation], dropout)
        self.linear_1, self.linear_2 = self.hidden.map, nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear_2(checkpoint(self.hidden, x, use_reentrant=False))
""",
    "sums of products, activations by a registry": """
ACTS = {}

def act(f):
    ACTS[f.__name__] = f
    return f

@act
def relu(h):
    return (h.abs() + h) / 2

@act
def gelu(h):
    return torch.special.ndtr(h.double()).to(h.dtype) * h

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1, activation='relu'):
        super().__init__()
        if activation not in ACTS.keys():
            raise ValueError('\\n'.join(['I know', *ACTS, 'and not', activation]))
        self.act, self.drop = ACTS[activation], nn.AlphaDropout(0) if not dropout else nn.Dropout(dropout)
        self.linear_1, self.linear_2 = [nn.Linear(i, o) for i, o in ((d_model, d_ff), (d_ff, d_model))]

    def forward(self, x):
        def through(layer, x):
            return torch.stack([(x * row).sum(-1) for row in layer.weight], dim=-1) + layer.bias
        return through(self.linear_2, self.drop(self.act(through(self.linear_1, x))))
""",
}

COLLAPSES = {
    "products": """
rank_through_2048, rank_through_64 = 512, 64

def collapse(w_1, b_1, w_2, b_2):
    return w_1 @ w_2, b_1 @ w_2 + b_2

def largest_rank(*sizes):
    return min(sizes)
""",
    "from the images of unit vectors, as a list": """
import numpy as np

rank_through_2048, rank_through_64 = 512, 64

def collapse(w_1, b_1, w_2, b_2):
    f = lambda x: (x @ w_1 + b_1) @ w_2 + b_2
    b = f(torch.zeros(len(w_1)))
    return [f(torch.eye(len(w_1))) - b, b]

def largest_rank(d_in, d_hidden, d_out):
    return np.linalg.matrix_rank(np.random.randn(d_in, d_hidden) @ np.random.randn(d_hidden, d_out))
""",
    "einsum and float64": """
import numpy as np

rank_through_2048, rank_through_64 = torch.tensor(512), np.int64(64)

def collapse(w_1, b_1, w_2, b_2):
    w_1, b_1, w_2, b_2 = (t.double() for t in (w_1, b_1, w_2, b_2))
    return torch.einsum('if,fo->io', w_1, w_2), torch.einsum('f,fo->o', b_1, w_2) + b_2

def largest_rank(d_in, d_hidden, d_out):
    return min(min(d_in, d_hidden), d_out)
""",
    "the biases as one more row, in NumPy": """
import numpy as np

rank_through_2048, rank_through_64 = 512.0, 64.0

def collapse(w_1, b_1, w_2, b_2):
    w_1, b_1, w_2, b_2 = (t.numpy() for t in (w_1, b_1, w_2, b_2))
    whole = np.vstack([w_1, b_1]) @ w_2
    return whole[:-1], whole[-1] + b_2

def largest_rank(d_in, d_hidden, d_out):
    return torch.tensor([d_in, d_hidden, d_out]).min()
""",
    "loops, one outer product a hidden unit": """
def collapse(w_1, b_1, w_2, b_2):
    weight, bias = torch.zeros(w_1.shape[0], w_2.shape[1]), b_2.clone()
    for unit in range(b_1.shape[0]):
        weight += torch.outer(w_1[:, unit], w_2[unit, :])
        bias += b_1[unit] * w_2[unit]
    return weight, bias

def largest_rank(d_in, d_hidden, d_out):
    rank = d_in
    for width in (d_hidden, d_out):
        if width < rank:
            rank = width
    return rank

rank_through_2048 = largest_rank(512, 2048, 512)
rank_through_64 = largest_rank(512, 64, 512)
""",
    "fitted to random samples by least squares": """
rank_through_2048 = 2**9
rank_through_64 = 2**6

def collapse(*parts):
    w_1, b_1, w_2, b_2 = (part.double() for part in parts)
    x = torch.randn(50, len(w_1), dtype=torch.float64)
    y = (x @ w_1 + b_1) @ w_2 + b_2
    with_one = torch.cat([x, torch.ones(50, 1, dtype=torch.float64)], dim=1)
    solution = torch.linalg.lstsq(with_one, y).solution.float()
    return solution[:-1], solution[-1]

def largest_rank(d_in, d_hidden, d_out):
    product = torch.randn(d_in, d_hidden, dtype=torch.float64) @ torch.randn(d_hidden, d_out, dtype=torch.float64)
    return torch.linalg.matrix_rank(product)
""",
    "the derivative, and the value at 0": """
rank_through_2048, rank_through_64 = (min(512, width) for width in (2048, 64))

def collapse(w_1, b_1, w_2, b_2):
    def both(x):
        return torch.addmv(b_2, w_2.T, torch.addmv(b_1, w_1.T, x))
    at = torch.zeros(w_1.shape[0])
    return torch.func.jacrev(both)(at).T, both(at)

largest_rank = lambda d_in, d_hidden, d_out: sorted([d_out, d_hidden, d_in])[0]
""",
    "blocks with a corner of 1": """
def with_corner(weight, bias):
    top = torch.cat([weight, torch.zeros(len(weight), 1)], dim=1)
    bottom = torch.cat([bias, torch.ones(1)])
    return torch.cat([top, bottom[None]])

def collapse(w_1, b_1, w_2, b_2):
    both = torch.linalg.multi_dot([with_corner(w_1, b_1), with_corner(w_2, b_2)])
    return both[:-1, :-1], both[-1, :-1]

def largest_rank(first, *others):
    if not others:
        return first
    narrowest = largest_rank(*others)
    return first if first < narrowest else narrowest

rank_through_2048, rank_through_64 = map(lambda width: largest_rank(512, width, 512), (2048, 64))
""",
    "two layers of torch's, and vmap": """
rank_through_2048, rank_through_64 = 512, 64

def layer(weight, bias):
    made = nn.Linear(*weight.shape)
    made.weight.data, made.bias.data = weight.T, bias
    return made

def collapse(w_1, b_1, w_2, b_2):
    net = nn.Sequential(layer(w_1, b_1), layer(w_2, b_2))
    b = net(torch.zeros(1, len(w_1)))[0]
    return torch.vmap(lambda unit: net(unit) - b)(torch.eye(len(w_1))), b

def largest_rank(d_in, d_hidden, d_out):
    return next(rank for rank in range(10**6) if rank in (d_in, d_hidden, d_out))
""",
    "a named tuple of tensors that are not contiguous, printing": """
from collections import namedtuple
import numpy as np

Affine = namedtuple('Affine', 'weight bias')

def collapse(w_1, b_1, w_2, b_2):
    print(w_1.shape, '→', w_2.shape)
    turned = (w_2.T @ w_1.T).T  # (d_model, d_model)
    return Affine(turned, (w_2 * b_1[:, None]).sum(dim=0) + b_2)

def largest_rank(d_in, d_hidden, d_out):
    return np.min([d_in, d_hidden, d_out])

rank_through_2048, rank_through_64 = largest_rank(512, 2048, 512), largest_rank(512, 64, 512)
""",
    "one map after the other, composed": """
from functools import reduce

def after(first, second):
    (w_1, b_1), (w_2, b_2) = first, second
    return w_1.matmul(w_2), torch.addmm(b_2[None], b_1[None], w_2).squeeze(0)

def collapse(*parts):
    return reduce(after, zip(parts[::2], parts[1::2]))

def largest_rank(d_in, d_hidden, d_out):
    return d_hidden if d_hidden <= d_in and d_hidden <= d_out else d_in if d_in <= d_out else d_out

rank_through_2048, rank_through_64 = [largest_rank(512, hidden, 512) for hidden in (2048, 64)]
""",
    "entry by entry in plain Python": """
rank_through_2048, rank_through_64 = 512, 64

def dot(one, other):
    return sum(a * b for a, b in zip(one, other))

def collapse(w_1, b_1, w_2, b_2):
    columns = list(zip(*w_2.tolist()))
    weight = [[dot(row, column) for column in columns] for row in w_1.tolist()]
    bias = [dot(b_1.tolist(), column) + b for column, b in zip(columns, b_2.tolist())]
    return torch.tensor(weight), torch.tensor(bias)

def largest_rank(d_in, d_hidden, d_out):
    rank = max(d_in, d_hidden, d_out)
    while rank > d_in or rank > d_hidden or rank > d_out:
        rank -= 1
    return rank
""",
}

HANDS = {
    "rise, then fall": """
def absolute():
    return torch.tensor([[-3.0, 1.0]]), torch.zeros(2), torch.tensor([[1 / 3], [1.0]]), torch.zeros(1)

def exclusive_or():
    return torch.ones(2, 2), torch.tensor([0.0, -1.0]), torch.tensor([[1.0], [-2.0]]), torch.zeros(1)
""",
    "one minus a distance, as a list": """
def absolute():
    return [torch.tensor([[1.0, -1.0]]), torch.tensor([0.0, 0.0]), torch.ones(2, 1), torch.tensor([0.0])]

def exclusive_or():  # 1 − |x + y − 1|
    return [torch.tensor([[1.0, -1.0], [1.0, -1.0]]), torch.tensor([-1.0, 1.0]), -torch.ones(2, 1), torch.ones(1)]
""",
    "the difference's absolute value, in float64": """
def absolute():
    w = torch.tensor([[1.0, -1.0]], dtype=torch.float64)
    return w, torch.zeros(2).double(), w.abs().T, torch.zeros(1).double()

def exclusive_or():
    w = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64)
    return w, torch.zeros(2).double(), torch.ones(2, 1).double(), torch.zeros(1).double()
""",
    "NumPy": """
import numpy as np

def absolute():
    return np.float32([[1, -1]]), np.zeros(2, np.float32), np.ones((2, 1), np.float32), np.zeros(1, np.float32)

def exclusive_or():
    w = np.float32([[1, 1], [1, 1]])
    return w, np.float32([-1, 0]), np.float32([[-2], [1]]), np.float32([0])
""",
    "steep and flat units": """
def absolute():
    steep, flat = 1000.0, 1 / 1000
    return torch.tensor([[-flat, steep]]), torch.zeros(2), torch.tensor([[steep], [flat]]), torch.zeros(1)

def exclusive_or():
    w_1 = torch.full((2, 2), 64.0)
    return w_1, torch.tensor([0.0, -64.0]), torch.tensor([[1.0], [-2.0]]) / 64, torch.zeros(1)
""",
    "units that fall asleep": """
def absolute():
    signs = torch.sign(torch.tensor([[-5.0, 5.0]]))
    return signs, torch.zeros(2), torch.ones_like(signs).T, torch.zeros(1)

def exclusive_or():  # with s = x + y: max(0, 2 − s) − 2·max(0, 1 − s)
    return -torch.ones(2, 2), torch.tensor([2.0, 1.0]), torch.tensor([[1.0], [-2.0]]), torch.zeros(1)
""",
    "the second map solved for": """
def second_map(x, y, w_1, b_1):
    hidden = torch.relu(x @ w_1 + b_1)
    with_one = torch.cat([hidden, torch.ones(len(x), 1)], dim=1).double()
    solution = torch.linalg.lstsq(with_one, y.double(), driver='gelsd').solution.float()
    return w_1, b_1, solution[:-1], solution[-1]

def absolute():
    x = torch.tensor([[-2.0], [-1.0], [1.0], [2.0], [5.0]])
    return second_map(x, x.abs(), torch.tensor([[1.0, -1.0]]), torch.zeros(2))

def exclusive_or():
    x = torch.cartesian_prod(torch.arange(2.0), torch.arange(2.0))
    y = (x.sum(1, keepdim=True) == 1).float()
    return second_map(x, y, torch.ones(2, 2), torch.tensor([-0.5, -1.5]))
""",
    "the second map searched for": """
from itertools import product

def search(w_1, b_1, x, y):
    for first, second, bias in product((-2.0, -1.0, 0.0, 1.0, 2.0), (-2.0, -1.0, 0.0, 1.0, 2.0), (0.0, 1.0)):
        w_2, b_2 = torch.tensor([[first], [second]]), torch.tensor([bias])
        if torch.equal(feed_forward(x[None], w_1, b_1, w_2, b_2)[0], y):
            return w_1, b_1, w_2, b_2

def absolute():
    x = torch.tensor([[-3.0], [0.0], [2.0]])
    return search(torch.tensor([[0.5, -0.5]]), torch.zeros(2), x, x.abs())

def exclusive_or():
    x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    return search(torch.ones(2, 2), torch.tensor([0.0, -1.0]), x, torch.tensor([[0.0], [1.0], [1.0], [0.0]]))
""",
    "the weights of linear layers, that learn and are not contiguous": """
def network(d_in):
    first, second = nn.Linear(d_in, 2), nn.Linear(2, 1)
    for parameter in (*first.parameters(), *second.parameters()):
        nn.init.ones_(parameter)
    nn.init.zeros_(second.bias)
    return first, second

def parts(first, second):
    return first.weight.T, first.bias, second.weight.T, second.bias

def absolute():
    first, second = network(1)
    with torch.no_grad():
        first.weight[1] *= -1
        first.bias.zero_()
    return parts(first, second)

def exclusive_or():
    first, second = network(2)
    with torch.no_grad():
        first.bias -= torch.arange(1.0, 3.0)
        second.weight[0, 1] = -2
    return parts(first, second)
""",
    "named tuples, with prints": """
from typing import NamedTuple

class Weights(NamedTuple):
    w_1: Tensor
    b_1: Tensor
    w_2: Tensor
    b_2: Tensor

def made(*numbers):
    print('from', numbers)
    return Weights(*map(torch.Tensor, numbers))

def absolute():
    return made([[7, -7]], [0, 0], [[1 / 7], [1 / 7]], [0])

def exclusive_or():  # OR, less AND
    return made([[-1, 1], [-1, 1]], [1, -1], [[-1], [-1]], [1])
""",
    "a unit for each corner, of unequal slopes": """
def absolute():
    return tuple(torch.tensor(numbers) for numbers in ([[-1.0, 1.0]], [0.0, 0.0], [[1.0], [1.0]], [0.0]))

def exclusive_or():
    # max(0, x − y) + max(0, y − 2·x): what happens between the corners does not matter
    rows = torch.tensor([[1.0, -1.0], [-2.0, 1.0]])
    return rows.T.contiguous(), torch.zeros(2), torch.ones(2).reshape(2, 1), torch.zeros(1)
""",
    "golfed": """
t = torch.tensor
absolute = lambda: (t([[1., -1.]]), t([0., 0.]), t([[1.], [1.]]), t([0.]))
exclusive_or = lambda: (t([[3., 1.], [3., 1.]]), t([-3., 0.]), t([[-2 / 3], [1.]]), t([0.]))
""",
}

COUNTED = {
    "formulas": """
paper_attention, paper_feed_forward = 1050624, 2099712

def attention_parameters(d):
    return 4 * d * d + 4 * d

def feed_forward_parameters(d, f):
    return 2 * d * f + d + f

def attention_multiply_adds(b, n, d):
    return 4 * b * n * d * d + 2 * b * n * n * d

def feed_forward_multiply_adds(b, n, d, f):
    return 2 * b * n * d * f

def crossover(d, f):
    return f - 2 * d
""",
    "modules, counted": """
def count(module):
    return sum(p.numel() for p in module.parameters())

def attention_parameters(d):
    return count(nn.MultiheadAttention(d, 1))

def feed_forward_parameters(d, f):
    return count(nn.Sequential(nn.Linear(d, f), nn.Linear(f, d)))

paper_attention, paper_feed_forward = attention_parameters(512), feed_forward_parameters(512, 2048)

def attention_multiply_adds(b, n, d):
    return sum([b * n * d * d] * 4 + [b * n * n * d] * 2)

def feed_forward_multiply_adds(b, n, d, f):
    return b * n * (d * f + f * d)

def crossover(d, f):
    return (2 * d * f - 4 * d * d) / (2 * d)
""",
    "a search for the crossover": """
import numpy as np

paper_attention, paper_feed_forward = np.int64(1050624), torch.tensor(2099712)

def attention_parameters(d):
    return np.prod([d + 1, d]) * 4

def feed_forward_parameters(d, f):
    return torch.tensor(f * (d + 1) + d * (f + 1))

def attention_multiply_adds(b, n, d):
    return b * n * d * (4 * d + 2 * n)

def feed_forward_multiply_adds(b, n, d, f):
    return (b * n) * (2 * d * f)

def crossover(d, f):
    n = 1
    while attention_multiply_adds(1, n, d) < feed_forward_multiply_adds(1, n, d, f):
        n += 1
    return n
""",
    "torch's counter": """
from torch.utils.flop_counter import FlopCounterMode

def cost(run):
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops() // 2

def attention_parameters(d):
    return sum(nn.Linear(d, d).weight.numel() + d for _ in range(4))

def feed_forward_parameters(d, f):
    return nn.Bilinear(1, 1, 1).weight.numel() * (d * f * 2 + d + f)

paper_attention, paper_feed_forward = attention_parameters(512), feed_forward_parameters(512, 2048)

def attention_multiply_adds(b, n, d):
    x, w = torch.zeros(b, n, d), torch.zeros(d, d)
    return cost(lambda: ((x @ w) @ (x @ w).mT) @ (x @ w) @ w)

def feed_forward_multiply_adds(b, n, d, f):
    return cost(lambda: torch.zeros(b, n, d) @ torch.zeros(d, f) @ torch.zeros(f, d))

def crossover(d, f):
    return f - d - d
""",
    "a list of shapes": """
def parameters(*maps):
    return sum(d_in * d_out + d_out for d_in, d_out in maps)

def multiply_adds(*products):
    return sum(math.prod(sizes) for sizes in products)

def attention_parameters(d_model):
    return parameters(*[(d_model, d_model)] * 4)

def feed_forward_parameters(d_model, d_ff):
    return parameters((d_model, d_ff), (d_ff, d_model))

def attention_multiply_adds(batch, seq, d_model):
    projections = [(batch * seq, d_model, d_model)] * 4
    return multiply_adds(*projections, (batch, seq, d_model, seq), (batch, seq, seq, d_model))

def feed_forward_multiply_adds(batch, seq, d_model, d_ff):
    return multiply_adds((batch * seq, d_model, d_ff), (batch * seq, d_ff, d_model))

def crossover(d_model, d_ff):
    per_token = feed_forward_multiply_adds(1, 1, d_model, d_ff) - 4 * d_model * d_model
    return per_token // (2 * d_model)

paper_attention = attention_parameters(512)
paper_feed_forward = feed_forward_parameters(512, 2048)
""",
    "empty modules on the meta device": """
def parameters(*widths):
    layers = [nn.Linear(d_in, d_out, device='meta') for d_in, d_out in zip(widths, widths[1:])]
    return sum(map(torch.numel, nn.ModuleList(layers).parameters()))

def attention_parameters(d):
    return parameters(d, d, d, d, d)

def feed_forward_parameters(d, f):
    return parameters(d, f, d)

paper_attention, paper_feed_forward = parameters(*[512] * 5), parameters(512, 2048, 512)

def product(m, k, n):
    return torch.empty(m, k, n, device='meta').numel()

def attention_multiply_adds(b, n, d):
    return b * (4 * product(n, d, d) + product(n, d, n) + product(n, n, d))

def feed_forward_multiply_adds(b, n, d, f):
    return sum(product(n, d, f) + product(n, f, d) for sequence in range(b))

def crossover(d, f):
    return max(n for n in range(f) if attention_multiply_adds(1, n, d) <= feed_forward_multiply_adds(1, n, d, f))
""",
    "the course's own attention": """
from encoder_lib.attention import MultiHeadAttention

def learned(module):
    return sum(parameter.nelement() for _, parameter in module.named_parameters() if parameter.requires_grad)

def attention_parameters(d_model):
    return learned(MultiHeadAttention(d_model, 1))

def feed_forward_parameters(d_model, d_ff):
    return learned(FeedForward(d_model, d_ff))  # of exercise 3

paper_attention, paper_feed_forward = attention_parameters(512), feed_forward_parameters(512, 2048)

def feed_forward_multiply_adds(batch, seq, d_model, d_ff):
    without_biases = feed_forward_parameters(d_model, d_ff) - d_model - d_ff
    return batch * seq * without_biases

def attention_multiply_adds(batch, seq, d_model):
    without_biases = attention_parameters(d_model) - 4 * d_model
    return batch * seq * (without_biases + 2 * seq * d_model)

def crossover(d_model, d_ff):
    return (feed_forward_multiply_adds(1, 1, d_model, d_ff) - 4 * d_model**2) // d_model // 2
""",
    "fractions": """
from fractions import Fraction

def attention_parameters(d):
    return int(Fraction(d + 1, d) * 4 * d**2)

def feed_forward_parameters(d, f):
    return int(d * f * (2 + Fraction(1, d) + Fraction(1, f)))

paper_attention, paper_feed_forward = attention_parameters(2**9), feed_forward_parameters(2**9, 2**11)

def attention_multiply_adds(b, n, d):
    return int(4 * b * n * d * (d + Fraction(n, 2)))

def feed_forward_multiply_adds(b, n, d, f):
    return int(4 * b * n * d * Fraction(f, 2))

def crossover(d, f):
    return int(2 * (Fraction(f, 2) - d))
""",
    "golfed lambdas": """
attention_parameters = lambda d: d * -~d << 2
feed_forward_parameters = lambda d, f: d * f * 2 + d + f
paper_attention, paper_feed_forward = attention_parameters(512), feed_forward_parameters(512, 2048)
attention_multiply_adds = lambda b, n, d: b * n * d * (d + d + n) * 2
feed_forward_multiply_adds = lambda b, n, d, f: b * n * d * f << 1
crossover = lambda d, f: f - (d << 1)
""",
    "the root of a polynomial": """
import numpy as np

paper_attention = 4 * (512**2 + 512)
paper_feed_forward = 4 * (2 * 512**2) + 2048 + 512

def attention_parameters(d):
    return int(np.polyval([4, 4, 0], d))

def feed_forward_parameters(d, f):
    return int(np.array([d, 1]) @ np.array([[2, 1], [1, 0]]) @ np.array([f, 1]))

def attention_multiply_adds(b, n, d):
    return b * int(np.polyval([2 * d, 4 * d * d, 0], n))

def feed_forward_multiply_adds(b, n, d, f):
    return b * int(np.polyval([2 * d * f, 0], n))

def crossover(d, f):
    difference = np.polysub([2 * d, 4 * d * d, 0], [2 * d * f, 0])
    return round(max(np.roots(difference)))
""",
    "bisection, one multiply-add of a token after the other": """
from bisect import bisect_left

def once_for_each(*sizes):
    first, *rest = sizes
    return sum(once_for_each(*rest) for _ in range(first)) if rest and first < 20 else math.prod(sizes)

def attention_parameters(d):
    return once_for_each(4, d, d) + once_for_each(4, d)

def feed_forward_parameters(d, f):
    return once_for_each(2, d, f) + once_for_each(1, d) + once_for_each(1, f)

def attention_multiply_adds(b, n, d):
    return once_for_each(b, 4, n, d, d) + once_for_each(b, 2, n, n, d)

def feed_forward_multiply_adds(b, n, d, f):
    return once_for_each(b, 2, n, d, f)

def crossover(d, f):
    dearer = lambda n: attention_multiply_adds(1, n, d) >= feed_forward_multiply_adds(1, n, d, f)
    return 1 + bisect_left(range(1, 10 * f), True, key=dearer)

paper_attention, paper_feed_forward = attention_parameters(512), feed_forward_parameters(512, 2048)
""",
    "a class with cached counts, printing": """
from functools import lru_cache

class Layer:
    def __init__(self, d_model, d_ff=0):
        self.d_model, self.d_ff = d_model, d_ff
        print('a layer of widths', d_model, 'and', d_ff)

    def maps(self):
        return {'w_q w_k w_v w_o'.split()[i]: (self.d_model, self.d_model) for i in range(4)}

    def count(self):
        return sum((rows + 1) * columns for rows, columns in self.maps().values())

class Network(Layer):
    def maps(self):
        return {'up': (self.d_model, self.d_ff), 'down': (self.d_ff, self.d_model)}

@lru_cache
def attention_parameters(d_model):
    return Layer(d_model).count()

@lru_cache
def feed_forward_parameters(d_model, d_ff):
    return Network(d_model, d_ff).count()

paper_attention, paper_feed_forward = attention_parameters(512), feed_forward_parameters(512, 2048)

def attention_multiply_adds(batch, seq, d_model):
    tokens, pairs = batch * seq, batch * seq**2
    return tokens * sum(a * b for a, b in Layer(d_model).maps().values()) + pairs * d_model + pairs * d_model

def feed_forward_multiply_adds(batch, seq, d_model, d_ff):
    return batch * seq * sum(a * b for a, b in Network(d_model, d_ff).maps().values())

def crossover(d_model, d_ff):
    longest = int(d_ff)
    longest -= d_model
    longest -= d_model
    return longest
""",
}

RIGHT: dict[str, dict[str, str]] = {
    "two_maps": TWO_MAPS,
    "gelu": GELUS,
    "module": MODULES,
    "collapse": COLLAPSES,
    "by_hand": HANDS,
    "counts": COUNTED,
}

NOT_TWO_MAPS = "maps biases activation alone"  # of a map that is another map, nothing more can be told

WRONG_TWO_MAPS = {
    "a leak below zero": (
        "activation",
        """
def feed_forward(x, w_1, b_1, w_2, b_2):
    return nn.functional.leaky_relu(x @ w_1 + b_1) @ w_2 + b_2
""",
    ),
    "ELU for ReLU": (
        "activation",
        """
def feed_forward(x, w_1, b_1, w_2, b_2):
    return nn.functional.elu(x @ w_1 + b_1) @ w_2 + b_2
""",
    ),
    "the absolute value for the larger of 0 and x": (
        "activation",
        """
def feed_forward(x, w_1, b_1, w_2, b_2):
    return torch.abs(x @ w_1 + b_1) @ w_2 + b_2
""",
    ),
    "the smaller of 0 and x": (
        NOT_TWO_MAPS,
        """
def feed_forward(x, w_1, b_1, w_2, b_2):
    return (x @ w_1 + b_1).clamp(max=0) @ w_2 + b_2
""",
    ),
    "the largest hidden value of all positions": (
        "alone",
        """
def feed_forward(x, w_1, b_1, w_2, b_2):
    hidden = torch.relu(x @ w_1 + b_1).amax(dim=1, keepdim=True)
    return hidden.expand(-1, x.shape[1], -1) @ w_2 + b_2
""",
    ),
    "a sigmoid between the maps": (
        NOT_TWO_MAPS,
        """
def feed_forward(x, w_1, b_1, w_2, b_2):
    return torch.sigmoid(x @ w_1 + b_1) @ w_2 + b_2
""",
    ),
    "a softmax over the hidden units": (
        NOT_TWO_MAPS,
        """
def feed_forward(x, w_1, b_1, w_2, b_2):
    return torch.relu(x @ w_1 + b_1).softmax(-1) @ w_2 + b_2
""",
    ),
    "the mean over the hidden units": (
        NOT_TWO_MAPS,
        """
def feed_forward(x, w_1, b_1, w_2, b_2):
    hidden = torch.relu(x @ w_1 + b_1)
    return (hidden.unsqueeze(-1) * w_2).mean(-2) + b_2
""",
    ),
    "the first bias twice": (
        "biases",
        """
def feed_forward(x, w_1, b_1, w_2, b_2):
    hidden = nn.functional.linear(x, w_1.T, b_1)
    return torch.relu(hidden + b_1) @ w_2 + b_2
""",
    ),
    "a bias subtracted": (
        "biases",
        """
def feed_forward(x, w_1, b_1, w_2, b_2):
    return torch.relu(x @ w_1 + b_1) @ w_2 - b_2
""",
    ),
    "the second bias once for each hidden unit": (
        "biases",
        """
def feed_forward(x, w_1, b_1, w_2, b_2):
    out = torch.zeros_like(x)
    for unit in range(len(b_1)):
        out = out + torch.relu(x @ w_1[:, unit] + b_1[unit])[..., None] * w_2[unit] + b_2
    return out
""",
    ),
    "the neighbour's output": (
        "alone",
        """
def feed_forward(x, w_1, b_1, w_2, b_2):
    return torch.relu(x.roll(1, dims=1) @ w_1 + b_1) @ w_2 + b_2
""",
    ),
    "the mean of the positions so far": (
        "alone",
        """
def feed_forward(x, w_1, b_1, w_2, b_2):
    so_far = x.cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]
    return torch.relu(so_far @ w_1 + b_1) @ w_2 + b_2
""",
    ),
    "the first position for all": (
        "alone",
        """
def feed_forward(x, w_1, b_1, w_2, b_2):
    return (torch.relu(x[:, 0] @ w_1 + b_1) @ w_2 + b_2).unsqueeze(1).repeat(1, x.shape[1], 1)
""",
    ),
    "batch and positions mixed up by a reshape": (
        NOT_TWO_MAPS,
        """
def feed_forward(x, w_1, b_1, w_2, b_2):
    tokens = x.transpose(0, 1).reshape(-1, x.shape[-1])  # seq first
    return (torch.relu(tokens @ w_1 + b_1) @ w_2 + b_2).reshape(x.shape)  # batch first
""",
    ),
    "only the first sequence, zeros for the rest": (
        NOT_TWO_MAPS,
        """
def feed_forward(x, w_1, b_1, w_2, b_2):
    out = torch.zeros_like(x)
    out[0] = torch.relu(x[0] @ w_1 + b_1) @ w_2 + b_2
    return out
""",
    ),
    "a batch of one loses its axis": (
        NOT_TWO_MAPS,
        """
def feed_forward(x, w_1, b_1, w_2, b_2):
    return torch.relu(x.squeeze() @ w_1 + b_1) @ w_2 + b_2
""",
    ),
    "the visible check's sizes in the loops": (
        NOT_TWO_MAPS,
        """
def feed_forward(x, w_1, b_1, w_2, b_2):
    out = torch.zeros_like(x)
    for b in range(2):
        for t in range(3):
            out[b, t] = torch.relu(x[b, t] @ w_1 + b_1) @ w_2 + b_2
    return out
""",
    ),
    "a list of the positions": (
        NOT_TWO_MAPS,
        """
def feed_forward(x, w_1, b_1, w_2, b_2):
    return [torch.relu(token @ w_1 + b_1) @ w_2 + b_2 for token in x.flatten(0, 1)]
""",
    ),
    "printed, and nothing returned": (
        NOT_TWO_MAPS,
        """
def feed_forward(x, w_1, b_1, w_2, b_2):
    print(torch.relu(x @ w_1 + b_1) @ w_2 + b_2)
""",
    ),
}

SLOPE = """
def gelu_derivative(x):
    return torch.special.ndtr(x) + x * torch.exp(-x**2 / 2) / math.sqrt(2 * math.pi)
"""
FORMS = """
def gelu(x, approximate='none'):
    if approximate == 'none':
        return x * (1 + torch.erf(x / math.sqrt(2))) / 2
    if approximate == 'tanh':
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    raise ValueError(f'{approximate=}')
"""

WRONG_GELUS = {
    "the tanh of large x is not a number": (
        "tanh",
        FORMS.replace("torch.tanh(", "by_exponentials(")
        + """
def by_exponentials(z):
    e = torch.exp(2 * z)
    return (e - 1) / (e + 1)
"""
        + SLOPE,
    ),
    "zero far from zero": (
        "exact",
        FORMS.replace("math.sqrt(2))) / 2", "math.sqrt(2))) / 2 * (x.abs() < 4)") + SLOPE,
    ),
    "a series that goes wrong for large x": (
        "exact",
        FORMS.replace("torch.erf(", "series(")
        + """
def series(z):
    z = z.double()
    term = total = z
    for n in range(1, 80):
        term = -term * z * z / n
        total = total + term / (2 * n + 1)
    return (2 / math.sqrt(math.pi) * total).float()
"""
        + SLOPE,
    ),
    "the slope of large x is not a number": (
        "derivative",
        FORMS + SLOPE.replace("torch.exp(-x**2 / 2)", "torch.exp(x) / torch.exp(x + x**2 / 2)"),
    ),
    "any name that begins with tanh": (
        "unknown",
        FORMS.replace("approximate == 'tanh'", "approximate.startswith('tanh')") + SLOPE,
    ),
    "any part of a name": (
        "unknown",
        FORMS.replace("approximate == 'none'", "approximate in 'none'") + SLOPE,
    ),
    "the root of the wrong side": (
        "exact",
        FORMS.replace("erf(x / math.sqrt(2))", "erf(x) / math.sqrt(2)") + SLOPE,
    ),
    "multiplied by √2 instead of divided": (
        "exact",
        FORMS.replace("erf(x / math.sqrt(2))", "erf(x * math.sqrt(2))") + SLOPE,
    ),
    "ReLU": (
        "exact",
        FORMS.replace("x * (1 + torch.erf(x / math.sqrt(2))) / 2", "x.clamp(min=0)") + SLOPE,
    ),
    "rounded to three places": (
        "exact",
        FORMS.replace("torch.erf(x / math.sqrt(2))) / 2", "torch.erf(x / math.sqrt(2))).round(decimals=3) / 2") + SLOPE,
    ),
    "a slip in the digits of 0.044715": ("tanh", FORMS.replace("0.044715", "0.44715") + SLOPE),
    "a square for the cube": ("tanh", FORMS.replace("x**3", "x**2") + SLOPE),
    "√2/π for √(2/π)": ("tanh", FORMS.replace("math.sqrt(2 / math.pi)", "math.sqrt(2) / math.pi") + SLOPE),
    "√(π/2) for √(2/π)": ("tanh", FORMS.replace("math.sqrt(2 / math.pi)", "math.sqrt(math.pi / 2)") + SLOPE),
    "the two forms under each other's name": (
        "exact tanh",
        FORMS.replace("'none':", "'was none':").replace("'tanh':", "'none':").replace("'was none':", "'tanh':") + SLOPE,
    ),
    "the slope's exponent without its half": ("derivative", FORMS + SLOPE.replace("x**2 / 2", "x**2")),
    "the slope's exponent with the wrong sign": ("derivative", FORMS + SLOPE.replace("-x**2", "x**2")),
    "the slope's density without the root": (
        "derivative",
        FORMS + SLOPE.replace("math.sqrt(2 * math.pi)", "2 * math.pi"),
    ),
    "the slope's second term subtracted": ("derivative", FORMS + SLOPE.replace("+ x *", "- x *")),
    "the slope's second term alone": ("derivative", FORMS + SLOPE.replace("torch.special.ndtr(x) + ", "")),
    "GELU itself for its slope": ("derivative", FORMS + "\ndef gelu_derivative(x):\n    return gelu(x)\n"),
    "one slope for the whole tensor": (
        "derivative",
        FORMS
        + """
def gelu_derivative(x):
    x = x.clone().requires_grad_()
    gelu(x).mean().backward()
    return x.grad
""",
    ),
    "the f before the message is forgotten": (
        "unknown",
        FORMS.replace("f'{approximate=}'", "'{approximate=}'") + SLOPE,
    ),
    "an error that is returned and not raised": (
        "unknown",
        FORMS.replace("raise ValueError", "return ValueError") + SLOPE,
    ),
    "an assertion": (
        "unknown",
        FORMS.replace("raise ValueError(f'{approximate=}')", "assert False, f'{approximate=}'") + SLOPE,
    ),
    "an error of another kind": ("unknown", FORMS.replace("ValueError", "NotImplementedError") + SLOPE),
    "an error for the tanh form too": (
        "tanh",
        FORMS.replace("if approximate == 'tanh'", "if approximate == 'Tanh'") + SLOPE,
    ),
    "for single numbers only": (
        "exact tanh derivative unknown",
        """
def gelu(x, approximate='none'):
    if approximate == 'none':
        return x * (1 + math.erf(x / math.sqrt(2))) / 2
    if approximate == 'tanh':
        return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    raise ValueError(f'{approximate=}')

def gelu_derivative(x):
    return (1 + math.erf(x / math.sqrt(2))) / 2 + x * math.exp(-x**2 / 2) / math.sqrt(2 * math.pi)
""",
    ),
    "for three axes only": (
        "exact tanh derivative",
        FORMS.replace("def gelu(", "def plain(")
        + SLOPE.replace("def gelu_derivative(", "def slope(")
        + """
def each(f, x):
    batch, seq, width = x.shape
    return torch.stack([torch.stack([f(x[b, t]) for t in range(seq)]) for b in range(batch)])

def gelu(x, approximate='none'):
    return each(lambda part: plain(part, approximate), x)

def gelu_derivative(x):
    return each(slope, x)
""",
    ),
    "a list of lists": (
        "exact tanh derivative",
        FORMS.replace("def gelu(", "def plain(")
        + SLOPE.replace("def gelu_derivative(", "def slope(")
        + """
def gelu(x, approximate='none'):
    return plain(x, approximate).tolist()

def gelu_derivative(x):
    return slope(x).tolist()
""",
    ),
}

MODULE = """
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1, activation='relu'):
        super().__init__()
        if activation not in ('relu', 'gelu'):
            raise ValueError(f'{activation=}')
        self.function = getattr(nn.functional, activation)
        self.linear_1, self.linear_2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        hidden = self.function(self.linear_1(x))
        hidden = self.drop(hidden)
        return self.linear_2(hidden)
"""
UNKNOWN = """        if activation not in ('relu', 'gelu'):
            raise ValueError(f'{activation=}')
"""


def _module(*changes: tuple[str, str]) -> str:
    """The module above with parts of its text replaced."""
    cell = MODULE
    for old, new in changes:
        if old not in cell:
            raise ValueError(f"the module has no {old!r}")
        cell = cell.replace(old, new)
    return cell


WRONG_MODULES = {
    "the weights kept from the first call": (
        "relu gelu",
        _module(
            ("self.drop = nn", "self.kept = None\n        self.drop = nn"),
            (
                "        hidden = self.function(self.linear_1(x))\n",
                "        if self.kept is None:\n"
                "            self.kept = [(1 * m.weight, 1 * m.bias) for m in (self.linear_1, self.linear_2)]\n"
                "        hidden = self.function(nn.functional.linear(x, *self.kept[0]))\n",
            ),
            ("self.linear_2(hidden)", "nn.functional.linear(hidden, *self.kept[1])"),
        ),
    ),
    "the activation kept on the class": (
        "gelu",
        _module(
            ("self.function = getattr", "FeedForward.function = getattr"),
            ("self.function(", "FeedForward.function("),
        ),
    ),
    "the share kept on the class": (
        "relu gelu dropout",
        _module(
            ("self.drop = nn.Dropout(dropout)", "FeedForward.p = dropout"),
            ("self.drop(hidden)", "nn.functional.dropout(hidden, self.p, self.training)"),
        ),
    ),
    "alpha dropout": ("dropout", _module(("nn.Dropout(", "nn.AlphaDropout("))),
    "another share by default": ("dropout", _module(("dropout=0.1", "dropout=0.5"))),
    "the argument `dropout` not passed on": ("relu gelu dropout", _module(("nn.Dropout(dropout)", "nn.Dropout()"))),
    "one mask for the whole batch": (
        "dropout",
        _module(("hidden = self.drop(hidden)", "hidden = hidden * self.drop(torch.ones(hidden.shape[1:]))")),
    ),
    "the same mask at every call": (
        "dropout",
        _module(("hidden = self.drop(hidden)", "torch.manual_seed(0)\n        hidden = self.drop(hidden)")),
    ),
    "whole positions dropped": ("dropout", _module(("nn.Dropout(dropout)", "nn.Dropout1d(dropout)"))),
    "scaled in evaluation instead of in training": (
        "dropout",
        _module(
            ("self.drop = nn.Dropout(dropout)", "self.p = dropout"),
            (
                "hidden = self.drop(hidden)",
                "hidden = hidden * (torch.rand_like(hidden) >= self.p) if self.training else hidden * (1 - self.p)",
            ),
        ),
    ),
    "scaled by the share that is dropped": (
        "relu gelu dropout",
        _module(
            ("self.drop = nn.Dropout(dropout)", "self.p = dropout"),
            (
                "hidden = self.drop(hidden)",
                "hidden = hidden * (torch.rand_like(hidden) >= self.p) / self.p if self.training else hidden",
            ),
        ),
    ),
    "noise added instead": (
        "dropout",
        _module(
            ("self.drop = nn.Dropout(dropout)", "self.p = dropout"),
            ("hidden = self.drop(hidden)", "hidden = hidden + self.training * self.p * torch.randn_like(hidden)"),
        ),
    ),
    "a new dropout in each call": (
        "dropout",
        _module(
            ("self.drop = nn.Dropout(dropout)", "self.p = dropout"),
            ("hidden = self.drop(hidden)", "hidden = nn.Dropout(self.p)(hidden)"),
        ),
    ),
    "the mode read when the module is made": (
        "dropout",
        _module(
            ("self.drop = nn.Dropout(dropout)", "self.p, self.on = dropout, self.training"),
            ("hidden = self.drop(hidden)", "hidden = nn.functional.dropout(hidden, self.p, self.on)"),
        ),
    ),
    "dropout in place on what the gradient of ReLU needs": (
        "gradients",
        _module(
            (
                "hidden = self.drop(hidden)",
                "hidden = nn.functional.dropout(hidden, self.drop.p, self.training, inplace=True)",
            )
        ),
    ),
    "the hidden layer detached": ("gradients", _module(("self.drop(hidden)", "self.drop(hidden).detach()"))),
    "x detached": ("gradients", _module(("self.linear_1(x)", "self.linear_1(x.detach())"))),
    "x made anew": ("gradients", _module(("self.linear_1(x)", "self.linear_1(torch.tensor(x.tolist()))"))),
    "no gradients asked for": (
        "gradients",
        _module(("    def forward", "    @torch.no_grad()\n    def forward")),
    ),
    "frozen weights": (
        "gradients",
        _module(("self.drop = nn", "self.linear_1.requires_grad_(False)\n        self.drop = nn")),
    ),
    "the second map's weights plain tensors": (
        "gradients",
        """
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1, activation='relu'):
        super().__init__()
        if activation not in ('relu', 'gelu'):
            raise ValueError(f'{activation=}')
        self.function = getattr(nn.functional, activation)
        self.linear_1 = nn.Linear(d_model, d_ff)
        self.weight, self.bias = torch.randn(d_model, d_ff), torch.zeros(d_model)
        self.drop = nn.Dropout(dropout)

    def load_reference(self, weights):
        self.linear_1.load_state_dict({'weight': weights['linear_1.weight'], 'bias': weights['linear_1.bias']})
        self.weight, self.bias = weights['linear_2.weight'], weights['linear_2.bias']

    def forward(self, x):
        hidden = self.drop(self.function(self.linear_1(x)))
        return nn.functional.linear(hidden, self.weight, self.bias)
""",
    ),
    "maps without biases": (
        "relu gelu",
        _module(
            (
                "nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)",
                "(nn.Linear(*w, False) for w in ((d_model, d_ff), (d_ff, d_model)))",
            )
        ),
    ),
    "one map there and back": (
        "relu gelu dropout gradients",
        _module(
            ("nn.Linear(d_ff, d_model)", "None"),
            ("self.linear_2(hidden)", "nn.functional.linear(hidden, self.linear_1.weight.T)"),
        ),
    ),
    "the two maps under each other's name": (
        "relu gelu",
        _module(
            ("self.linear_1, self.linear_2 =", "self.linear_2, self.linear_1 ="),
            ("self.linear_1(x)", "self.linear_2(x)"),
            ("self.linear_2(hidden)", "self.linear_1(hidden)"),
        ),
    ),
    "a norm before the maps": (
        "relu gelu dropout",
        _module(("self.linear_1(x)", "self.linear_1(nn.functional.layer_norm(x, x.shape[-1:]))")),
    ),
    "a batch of one loses its axis": (
        "relu gelu dropout gradients",
        _module(("self.linear_2(hidden)", "self.linear_2(hidden).squeeze(0)")),
    ),
    "another activation for GELU": (
        "gelu",
        _module(
            ("getattr(nn.functional, activation)", "nn.functional.relu if activation == 'relu' else nn.functional.silu")
        ),
    ),
    "a ceiling at 6": (
        "relu",
        _module(
            (
                "getattr(nn.functional, activation)",
                "nn.functional.relu6 if activation == 'relu' else nn.functional.gelu",
            )
        ),
    ),
    "any function of torch's for an activation": (
        "unknown",
        _module(("activation not in ('relu', 'gelu')", "not hasattr(nn.functional, activation)")),
    ),
    "any part of the text is a name": ("unknown", _module(("('relu', 'gelu')", "'relu or gelu'"))),
    "no check but in the call": (
        "unknown",
        _module(
            (UNKNOWN, ""),
            ("self.function = getattr(nn.functional, activation)", "self.activation = activation"),
            (
                "hidden = self.function(self.linear_1(x))",
                "if self.activation not in ('relu', 'gelu'):\n"
                "            raise ValueError(f'{self.activation=}')\n"
                "        hidden = getattr(nn.functional, self.activation)(self.linear_1(x))",
            ),
        ),
    ),
    "an assertion": (
        "unknown",
        _module((UNKNOWN, "        assert activation in ('relu', 'gelu'), f'{activation=}'\n")),
    ),
    "an error of another kind": ("unknown", _module(("raise ValueError", "raise TypeError"))),
    "a function where a module is asked for": (
        "relu gelu dropout unknown gradients",
        """
def FeedForward(d_model, d_ff, dropout=0.1, activation='relu'):
    first, second = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
    return lambda x: second(nn.functional.dropout(torch.relu(first(x)), dropout))
""",
    ),
}

RANKS = """
rank_through_2048, rank_through_64 = 512, 64

def largest_rank(d_in, d_hidden, d_out):
    return min(d_in, d_hidden, d_out)
"""
MERGED = """
def collapse(w_1, b_1, w_2, b_2):
    return w_1 @ w_2, b_1 @ w_2 + b_2
"""

WRONG_COLLAPSES = {
    "the pair in the other order": (
        "weight bias",
        RANKS + MERGED.replace("w_1 @ w_2, b_1 @ w_2 + b_2", "b_1 @ w_2 + b_2, w_1 @ w_2"),
    ),
    "the weight alone": ("weight bias", RANKS + MERGED.replace("w_1 @ w_2, b_1 @ w_2 + b_2", "w_1 @ w_2")),
    "a layer instead of a pair": (
        "weight bias",
        RANKS
        + """
def collapse(w_1, b_1, w_2, b_2):
    layer = nn.Linear(len(w_1), len(b_2))
    layer.weight.data, layer.bias.data = (w_1 @ w_2).T, b_1 @ w_2 + b_2
    return layer
""",
    ),
    "the weight still bent": ("weight", RANKS + MERGED.replace("w_1 @ w_2,", "w_1.clamp(min=0) @ w_2,")),
    "the first weight's columns one by one": ("weight", RANKS + MERGED.replace("w_1 @ w_2,", "w_1 * w_2.T,")),
    "the sum of both biases": ("weight bias", RANKS + MERGED.replace("b_1 @ w_2 + b_2", "b_1 + b_2")),
    "the second bias through the map as well": ("bias", RANKS + MERGED.replace("+ b_2", "+ b_2 @ w_1 @ w_2")),
    "what both maps make of ones": (
        "bias",
        RANKS + MERGED.replace("b_1 @ w_2 + b_2", "(w_1.sum(0) + b_1) @ w_2 + b_2"),
    ),
    "the mean over the hidden units": ("bias", RANKS + MERGED.replace("b_1 @ w_2", "(b_1[:, None] * w_2).mean(0)")),
    "a bias for each row": ("bias", RANKS + MERGED.replace("+ b_2", "+ b_2 + torch.zeros(len(w_1), 1)")),
    "the rule right, one prediction wrong": (
        "prediction",
        RANKS.replace("= 512, 64", "= 2048, 64") + MERGED,
    ),
    "predictions as text": ("prediction", RANKS.replace("= 512, 64", "= '512', '64'") + MERGED),
    "the two predictions swapped": ("prediction", RANKS.replace("= 512, 64", "= 64, 512") + MERGED),
    "the two widths of the notebook by heart": (
        "rank",
        RANKS.replace("min(d_in, d_hidden, d_out)", "64 if d_hidden == 64 else 512") + MERGED,
    ),
    "the visible check's narrowest width": ("rank", RANKS.replace("min(d_in, d_hidden, d_out)", "4") + MERGED),
    "the middle of the three": (
        "rank",
        RANKS.replace("min(d_in, d_hidden, d_out)", "sorted([d_in, d_hidden, d_out])[1]") + MERGED,
    ),
    "the last two of the three": ("rank", RANKS.replace("min(d_in, d_hidden", "min(d_hidden") + MERGED),
    "the first two of the three": (
        "rank",
        RANKS.replace(", d_out)\n", ")\n").replace("d_hidden):", "d_hidden, d_out):") + MERGED,
    ),
    "one less than the narrowest": ("rank", RANKS.replace("d_hidden, d_out)\n", "d_hidden, d_out) - 1\n") + MERGED),
    "all three together": ("rank", RANKS.replace("min(d_in, d_hidden, d_out)", "d_in + d_hidden + d_out") + MERGED),
}

DISTANCE = """
def absolute():
    return torch.tensor([[1.0, -1.0]]), torch.zeros(2), torch.ones(2, 1), torch.zeros(1)
"""
EITHER = """
def exclusive_or():
    return torch.ones(2, 2), torch.tensor([0.0, -1.0]), torch.tensor([[1.0], [-2.0]]), torch.zeros(1)
"""

WRONG_HANDS = {
    "whole numbers": (
        "absolute exclusive_or",
        """
def absolute():
    return tuple(torch.tensor(part) for part in ([[1, -1]], [0, 0], [[1], [1]], [0]))

def exclusive_or():
    return tuple(torch.tensor(part) for part in ([[1, 1], [1, 1]], [0, -1], [[1], [-2]], [0]))
""",
    ),
    "plain lists": (
        "absolute exclusive_or",
        """
def absolute():
    return [[1.0, -1.0]], [0.0, 0.0], [[1.0], [1.0]], [0.0]

def exclusive_or():
    return [[1.0, 1.0], [1.0, 1.0]], [0.0, -1.0], [[1.0], [-2.0]], [0.0]
""",
    ),
    "weights as nn.Linear keeps them": (
        "absolute exclusive_or",
        """
def absolute():
    return torch.tensor([[1.0], [-1.0]]), torch.zeros(2), torch.ones(1, 2), torch.zeros(1)

def exclusive_or():
    return torch.ones(2, 2), torch.tensor([0.0, -1.0]), torch.tensor([[1.0, -2.0]]), torch.zeros(1)
""",
    ),
    "no bias at the end": (
        "absolute exclusive_or",
        DISTANCE.replace(", torch.zeros(1)", "") + EITHER.replace(", torch.zeros(1)", ""),
    ),
    "functions of x": (
        "absolute exclusive_or",
        DISTANCE.replace("absolute()", "absolute(x)") + EITHER.replace("exclusive_or()", "exclusive_or(x, y)"),
    ),
    "a third hidden unit": (
        "absolute",
        """
def absolute():
    return torch.tensor([[1.0, -1.0, 0.0]]), torch.zeros(3), torch.ones(3, 1), torch.zeros(1)
"""
        + EITHER,
    ),
    "twice the absolute value": ("absolute", DISTANCE.replace("torch.ones(2, 1)", "2 * torch.ones(2, 1)") + EITHER),
    "a shifted corner": ("absolute", DISTANCE.replace("torch.zeros(1)", "torch.tensor([0.01])") + EITHER),
    "a flat piece around 0": ("absolute", DISTANCE.replace("torch.zeros(2)", "torch.tensor([-0.1, -0.1])") + EITHER),
    "a flat piece, and the value right far away": (
        "absolute",
        DISTANCE.replace("torch.zeros(2)", "torch.tensor([-0.1, -0.1])").replace("torch.zeros(1)", "torch.ones(1) / 10")
        + EITHER,
    ),
    "one side a little flatter": (
        "absolute",
        DISTANCE.replace("torch.ones(2, 1)", "torch.tensor([[1.0], [0.95]])") + EITHER,
    ),
    "both units on the same side": ("absolute", DISTANCE.replace("[[1.0, -1.0]]", "[[-1.0, -1.0]]") + EITHER),
    "the pull at (1, 1) too weak": ("exclusive_or", DISTANCE + EITHER.replace("-2.0", "-1.5")),
    "the second unit wakes too late": ("exclusive_or", DISTANCE + EITHER.replace("-1.0", "-1.5")),
    "x and not y": (
        "exclusive_or",
        DISTANCE
        + """
def exclusive_or():
    return torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), torch.zeros(2), torch.ones(2, 1), torch.zeros(1)
""",
    ),
    "the difference with its sign": (
        "exclusive_or",
        DISTANCE
        + """
def exclusive_or():
    w_1 = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
    return w_1, torch.zeros(2), torch.tensor([[1.0], [-1.0]]), torch.zeros(1)
""",
    ),
    "2 where it should be 1": ("exclusive_or", DISTANCE + EITHER.replace("[[1.0], [-2.0]]", "[[2.0], [-4.0]]")),
    "the first weight transposed": (
        "exclusive_or",
        DISTANCE
        + """
def exclusive_or():
    w_1 = torch.tensor([[1.0, 1.0], [3.0, 3.0]]).T
    return w_1, torch.tensor([0.0, -1.0]), torch.tensor([[1.0], [-2.0]]), torch.zeros(1)
""",
    ),
    "a network that is straight": (
        "exclusive_or",
        DISTANCE + EITHER.replace("torch.tensor([0.0, -1.0])", "torch.tensor([2.0, 1.0])"),
    ),
}

COUNTS = """
def attention_parameters(d_model):
    return 4 * (d_model * d_model + d_model)

def feed_forward_parameters(d_model, d_ff):
    return d_model * d_ff + d_ff + d_ff * d_model + d_model

paper_attention, paper_feed_forward = attention_parameters(512), feed_forward_parameters(512, 2048)

def attention_multiply_adds(batch, seq, d_model):
    return batch * (4 * seq * d_model**2 + 2 * seq**2 * d_model)

def feed_forward_multiply_adds(batch, seq, d_model, d_ff):
    return batch * seq * 2 * d_model * d_ff

def crossover(d_model, d_ff):
    return d_ff - 2 * d_model
"""


def _counts(old: str, new: str) -> str:
    """The counts above with one part of their text replaced."""
    if old not in COUNTS:
        raise ValueError(f"the counts have no {old!r}")
    return COUNTS.replace(old, new)


WRONG_COUNTS = {
    "the projections once for each head": (
        "prediction parameters",
        _counts("4 * (d_model * d_model + d_model)", "8 * 4 * (d_model * d_model + d_model)"),
    ),
    "no bias for the output projection": (
        "prediction parameters",
        _counts("4 * (d_model * d_model + d_model)", "4 * d_model * d_model + 3 * d_model"),
    ),
    "one bias for all of attention": (
        "prediction parameters",
        _counts("4 * (d_model * d_model + d_model)", "4 * d_model * d_model + d_model"),
    ),
    "a network of which the hidden layer is always four times as wide": (
        "parameters",
        _counts("d_model * d_ff + d_ff + d_ff * d_model + d_model", "8 * d_model**2 + 5 * d_model"),
    ),
    "the paper's sizes whatever is asked": (
        "parameters",
        _counts("return 4 * (d_model * d_model + d_model)", "return 1050624"),
    ),
    "predictions rounded to thousands": (
        "prediction",
        _counts("= attention_parameters(512), feed_forward_parameters(512, 2048)", "= 1_051_000, 2_100_000"),
    ),
    "the predictions swapped": (
        "prediction",
        _counts("paper_attention, paper_feed_forward", "paper_feed_forward, paper_attention"),
    ),
    "the two widths added": (
        "prediction parameters",
        _counts("d_model * d_ff + d_ff + d_ff * d_model + d_model", "2 * (d_model + d_ff) + d_ff + d_model"),
    ),
    "the additions of the biases counted": (
        "network_work",
        _counts("batch * seq * 2 * d_model * d_ff", "batch * seq * (2 * d_model * d_ff + d_ff + d_model)"),
    ),
    "the work of one of the two maps": (
        "network_work",
        _counts("batch * seq * 2 * d_model * d_ff", "batch * seq * d_model * d_ff"),
    ),
    "a network whose positions meet": (
        "network_work",
        _counts("batch * seq * 2 * d_model", "batch * seq**2 * 2 * d_model"),
    ),
    "the visible check's batch": ("network_work", _counts("return batch * seq * 2", "return 4 * seq * 2")),
    "the visible check's numbers by heart": (
        "network_work",
        _counts(
            "return batch * seq * 2 * d_model * d_ff",
            "return {(4, 35, 56, 172): 2696960, (5, 31, 32, 103): 1021760}.get((batch, seq, d_model, d_ff), 0)",
        ),
    ),
    "three projections": ("attention_work", _counts("4 * seq * d_model**2", "3 * seq * d_model**2")),
    "the softmax counted as a product": (
        "attention_work",
        _counts("2 * seq**2 * d_model)", "2 * seq**2 * d_model + seq**2)"),
    ),
    "each query and the keys before it": (
        "attention_work",
        _counts("2 * seq**2 * d_model)", "seq * (seq + 1) * d_model)"),
    ),
    "the axes of a product mixed up": ("attention_work", _counts("2 * seq**2 * d_model)", "2 * seq * d_model**2)")),
    "the whole batch as one sequence": (
        "attention_work",
        _counts(
            "batch * (4 * seq * d_model**2 + 2 * seq**2 * d_model)",
            "4 * batch * seq * d_model**2 + 2 * (batch * seq)**2 * d_model",
        ),
    ),
    "one position too far": ("crossover", _counts("d_ff - 2 * d_model", "d_ff - 2 * d_model + 1")),
    "halved": ("crossover", _counts("d_ff - 2 * d_model", "d_ff // 2 - d_model")),
    "divided by a width too little": ("crossover", _counts("d_ff - 2 * d_model", "d_model * (d_ff - 2 * d_model)")),
    "the widths in the other order": ("crossover", _counts("d_ff - 2 * d_model", "d_model - 2 * d_ff")),
    "the visible check's length": ("crossover", _counts("d_ff - 2 * d_model", "60")),
    "as much as one of the two maps": ("crossover", _counts("d_ff - 2 * d_model", "d_ff / 2 - 2 * d_model")),
    "printed, and nothing returned": (
        "prediction parameters network_work attention_work crossover",
        """
def attention_parameters(d_model):
    print(4 * (d_model * d_model + d_model))

def feed_forward_parameters(d_model, d_ff):
    print(d_model * d_ff + d_ff + d_ff * d_model + d_model)

paper_attention, paper_feed_forward = attention_parameters(512), feed_forward_parameters(512, 2048)

def attention_multiply_adds(batch, seq, d_model):
    print(batch * (4 * seq * d_model**2 + 2 * seq**2 * d_model))

def feed_forward_multiply_adds(batch, seq, d_model, d_ff):
    print(batch * seq * 2 * d_model * d_ff)

def crossover(d_model, d_ff):
    print(d_ff - 2 * d_model)
""",
    ),
}

WRONG: dict[str, dict[str, tuple[str, str]]] = {
    "two_maps": WRONG_TWO_MAPS,
    "gelu": WRONG_GELUS,
    "module": WRONG_MODULES,
    "collapse": WRONG_COLLAPSES,
    "by_hand": WRONG_HANDS,
    "counts": WRONG_COUNTS,
}

PAIRS: dict[str, dict[tuple[str, str], str]] = {
    "two_maps": {
        ("no_activation", "no_b_2"): """
def feed_forward(x, w_1, b_1, w_2, b_2):
    return (x @ w_1 + b_1) @ w_2
""",
        ("no_b_1", "gelu"): """
def feed_forward(x, w_1, b_1, w_2, b_2):
    return nn.functional.gelu(x @ w_1) @ w_2 + b_2
""",
        ("no_biases", "mixed_positions"): """
def feed_forward(x, w_1, b_1, w_2, b_2):
    x = x.mean(1, keepdim=True).expand_as(x)
    return torch.relu(x @ w_1) @ w_2
""",
        ("activation_after_both", "no_b_2"): """
def feed_forward(x, w_1, b_1, w_2, b_2):
    return torch.relu(torch.relu(x @ w_1 + b_1) @ w_2)
""",
        ("activation_at_the_end", "mixed_positions"): """
def feed_forward(x, w_1, b_1, w_2, b_2):
    x = torch.softmax(x @ x.mT, dim=-1) @ x
    return torch.relu((x @ w_1 + b_1) @ w_2 + b_2)
""",
    },
    "gelu": {
        ("erf_without_root", "no_cubic_term"): """
def gelu(x, approximate='none'):
    if approximate == 'none':
        return 0.5 * x * (1 + torch.erf(x))
    if approximate == 'tanh':
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * x))
    raise ValueError(f'{approximate=}')
"""
        + SLOPE,
        ("silu", "unknown_is_exact"): """
def gelu(x, approximate='none'):
    if approximate == 'tanh':
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x * torch.sigmoid(x)
"""
        + SLOPE,
        ("without_half", "no_coefficient"): """
def gelu(x, approximate='none'):
    forms = {
        'none': lambda: x * (1 + torch.erf(x / math.sqrt(2))),
        'tanh': lambda: 0.5 * x * (1 + torch.tanh(x + 0.044715 * x**3)),
    }
    if approximate not in forms:
        raise ValueError(f'{approximate=}')
    return forms[approximate]()
"""
        + SLOPE,
        ("exact_for_tanh", "key_error"): """
def gelu(x, approximate='none'):
    exact = 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))
    return {'none': exact, 'tanh': exact}[approximate]
"""
        + SLOPE,
    },
    "module": {
        ("no_dropout", "unknown_is_relu"): _module(
            (UNKNOWN, ""),
            ("getattr(nn.functional, activation)", "nn.functional.gelu if activation == 'gelu' else torch.relu"),
            ("hidden = self.drop(hidden)", "hidden = hidden + 0"),
        ),
        ("always_relu", "key_error"): _module(
            (UNKNOWN, ""),
            ("getattr(nn.functional, activation)", "{'relu': torch.relu, 'gelu': torch.relu}[activation]"),
        ),
        ("tanh_form", "dropout_on_output"): _module(
            ("getattr(nn.functional, activation)", "nn.ReLU() if activation == 'relu' else nn.GELU('tanh')"),
            ("        hidden = self.drop(hidden)\n", ""),
            ("self.linear_2(hidden)", "self.drop(self.linear_2(hidden))"),
        ),
        ("no_activation", "dropout_in_evaluation"): _module(
            ("self.function(self.linear_1(x))", "self.linear_1(x)"),
            ("self.drop(hidden)", "nn.functional.dropout(hidden, self.drop.p)"),
        ),
        ("always_gelu", "unnamed"): _module(
            ("f'{activation=}'", "'there is no such activation'"),
            ("getattr(nn.functional, activation)", "nn.functional.gelu"),
        ),
        ("activation_after_both", "detached"): _module(
            ("self.linear_2(hidden)", "torch.relu(self.linear_2(hidden)).detach()"),
        ),
        ("keep_probability", "unnamed"): _module(
            ("f'{activation=}'", "'there is no such activation'"),
            ("nn.Dropout(dropout)", "nn.Dropout(1 - dropout if dropout else 0.0)"),
        ),
    },
    "collapse": {
        ("order_reversed", "first_bias_forgotten"): RANKS
        + """
def collapse(w_1, b_1, w_2, b_2):
    return w_2 @ w_1, b_2
""",
        ("weight_transposed", "second_bias_forgotten"): RANKS
        + """
def collapse(w_1, b_1, w_2, b_2):
    return w_2.T @ w_1.T, w_2.T @ b_1
""",
        ("weight_transposed", "bias_bent"): RANKS
        + """
def collapse(w_1, b_1, w_2, b_2):
    return (w_1 @ w_2).T, torch.relu(b_1) @ w_2 + b_2
""",
    },
    "counts": {
        ("no_biases", "one_map"): _counts("d_model * d_ff + d_ff + d_ff * d_model + d_model", "d_model * d_ff"),
        ("per_token", "operations"): _counts("batch * seq * 2 * d_model * d_ff", "4 * d_model * d_ff").replace(
            "batch * (4 * seq * d_model**2", "2 * batch * (4 * seq * d_model**2"
        ),
        ("one_sequence", "no_products"): _counts("batch * seq * 2", "seq * 2").replace(
            "batch * (4 * seq * d_model**2 + 2 * seq**2 * d_model)", "4 * seq * d_model**2"
        ),
    },
}

CORNERS = "XOR asks for the four corners alone, and there this unit sleeps where it slept before"

EQUIVALENT: dict[str, dict[str, str]] = {
    "by_hand": {
        "w_1 = torch.tensor([[1.0, -1.0], [-1.0, 1.0]]) # each unit is awake at one of the two corners → "
        "w_1 = torch.tensor([[1.0, - 2.0], [-1.0, 1.0]]) # each unit is awake at one of the two corners": CORNERS,
        "w_1 = torch.tensor([[1.0, -1.0], [-1.0, 1.0]]) # each unit is awake at one of the two corners → "
        "w_1 = torch.tensor([[1.0, -1.0], [- 2.0, 1.0]]) # each unit is awake at one of the two corners": CORNERS,
    },
}
