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
    # one half lies below 0; between 0 and x, Gauss's points lie at x·(1 + node)/2
    x = x.double().unsqueeze(-1)
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
    z = np.asarray(z, dtype=np.float64)
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

WRONG: dict[str, dict[str, tuple[str, str]]] = {}
PAIRS: dict[str, dict[tuple[str, str], str]] = {}
EQUIVALENT: dict[str, dict[str, str]] = {}
