"""Answers to the exercises of chapter 6, stacking: right and wrong ones."""

_LAYER = {
    "the mask kept as an attribute": """
class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads, dropout)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.add_norm_1, self.add_norm_2 = (AddNorm(d_model, dropout, norm_first) for _ in range(2))

    def attend(self, x):
        return self.attention(x, mask=self.mask)

    def forward(self, x, mask=None):
        self.mask = mask
        return self.add_norm_2(self.add_norm_1(x, self.attend), self.feed_forward)
""",
    "residuals by hand, through load_reference": """
class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.a = MultiHeadAttention(d_model, num_heads, dropout=dropout)
        self.f = FeedForward(d_model, d_ff, dropout)
        self.n1, self.n2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.drop, self.pre = nn.Dropout(dropout), norm_first

    def load_reference(self, weights):
        own = {}
        for name, tensor in weights.items():
            name = name.replace("attention.", "a.").replace("feed_forward.", "f.")
            name = name.replace("add_norm_1.norm", "n1").replace("add_norm_2.norm", "n2")
            own[name.replace("gamma", "weight").replace("beta", "bias")] = tensor
        self.load_state_dict(own)

    def forward(self, x, mask=None):
        if self.pre:
            y = self.n1(x)
            x = x + self.drop(self.a(y, y, y, mask))
            return x + self.drop(self.f(self.n2(x)))
        x = self.n1(x + self.drop(self.a(x, x, x, mask)))
        return self.n2(x + self.drop(self.f(x)))
""",
    "fused projections and einsum": """
class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.h, self.pre, self.drop = num_heads, norm_first, nn.Dropout(dropout)
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.n1, self.n2 = LayerNorm(d_model), LayerNorm(d_model)

    @torch.no_grad()
    def load_reference(self, w):
        for kind in ("weight", "bias"):
            getattr(self.qkv, kind).copy_(torch.cat([w[f"attention.w_{c}.{kind}"] for c in "qkv"]))
            getattr(self.out, kind).copy_(w[f"attention.w_o.{kind}"])
            getattr(self.up, kind).copy_(w[f"feed_forward.linear_1.{kind}"])
            getattr(self.down, kind).copy_(w[f"feed_forward.linear_2.{kind}"])
        for kind in ("gamma", "beta"):
            getattr(self.n1, kind).copy_(w[f"add_norm_1.norm.{kind}"])
            getattr(self.n2, kind).copy_(w[f"add_norm_2.norm.{kind}"])

    def attend(self, x, mask):
        q, k, v = (t.unflatten(-1, (self.h, -1)) for t in self.qkv(x).chunk(3, -1))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask.logical_not(), -1e9)
        context = torch.einsum("bhqk,bkhd->bqhd", self.drop(scores.softmax(-1)), v)
        return self.out(context.flatten(2))

    def feed(self, x):
        return self.down(self.drop(self.up(x).clamp(min=0)))

    def forward(self, x, mask=None):
        for norm, part in ((self.n1, lambda x: self.attend(x, mask)), (self.n2, self.feed)):
            x = x + self.drop(part(norm(x))) if self.pre else norm(x + self.drop(part(x)))
        return x
""",
    "float64, with prints": """
class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads, dropout)
        self.add_norm_1 = AddNorm(d_model, dropout, norm_first)
        self.feed_forward = FeedForward(d_model, d_ff, dropout, "relu")
        self.add_norm_2 = AddNorm(d_model, dropout, norm_first)
        self.double()

    def forward(self, x, mask=None):
        x = x.double()
        print(x.shape)
        x = self.add_norm_1(x, lambda s: self.attention(s, s, s, mask=mask))
        return self.add_norm_2(x, lambda s: self.feed_forward(s))
""",
    "functools.partial and reduce over the pairs": """
from functools import partial, reduce


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        make_norm = partial(AddNorm, d_model, dropout=dropout, norm_first=norm_first)
        self.attention = MultiHeadAttention(d_model, num_heads, dropout)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.add_norm_1 = make_norm()
        self.add_norm_2 = make_norm()

    def forward(self, x, mask=None):
        steps = [(self.add_norm_1, partial(self.attention, mask=mask)), (self.add_norm_2, self.feed_forward)]
        return reduce(lambda stream, step: step[0](stream, step[1]), steps, x)
""",
    "a function that picks one of two classes": """
class Post(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads, dropout=dropout)
        self.feed_forward = FeedForward(d_model, d_ff, dropout=dropout)
        for number in (1, 2):
            setattr(self, f"add_norm_{number}", AddNorm(d_model, dropout=dropout, norm_first=self.first()))

    def first(self):
        return False

    def forward(self, x, mask=None):
        def attend(stream):
            return self.attention(query=stream, key=stream, value=stream, mask=mask)

        return self.add_norm_2(self.add_norm_1(x, attend), self.feed_forward)


class Pre(Post):
    def first(self):
        return True


def EncoderLayer(d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
    return {True: Pre, False: Post}[norm_first](d_model, num_heads, d_ff, dropout)
""",
    "a ModuleDict": """
class EncoderLayer(nn.ModuleDict):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        parts = {"attention": MultiHeadAttention(d_model, num_heads, dropout)}
        parts["add_norm_1"] = AddNorm(d_model, dropout, norm_first)
        parts["feed_forward"] = FeedForward(d_model, d_ff, dropout)
        parts["add_norm_2"] = AddNorm(d_model, dropout, norm_first)
        super().__init__(parts)

    def forward(self, x, mask=None):
        x = self["add_norm_1"](x, lambda y: self["attention"](y, mask=mask, need_weights=True)[0])
        return self["add_norm_2"](x, self["feed_forward"])
""",
    "example by example": """
class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads, dropout)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.add_norm_1 = AddNorm(d_model, dropout, norm_first)
        self.add_norm_2 = AddNorm(d_model, dropout, norm_first)

    def one(self, x, mask):
        x = self.add_norm_1(x, lambda y: self.attention(y, mask=mask))
        rows = [self.add_norm_2(row, self.feed_forward) for row in x.unbind(1)]
        return torch.stack(rows, dim=1)

    def forward(self, x, mask=None):
        outputs = []
        for i in range(len(x)):
            own = mask[i : i + 1] if mask is not None and mask.dim() == 4 else mask
            outputs.append(self.one(x[i : i + 1], own))
        return torch.cat(outputs)
""",
    "torch.vmap over the heads": """
class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads, dropout)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.add_norm_1 = AddNorm(d_model, dropout, norm_first)
        self.add_norm_2 = AddNorm(d_model, dropout, norm_first)

    def attend(self, x, mask):
        a, seq = self.attention, x.shape[1]
        seen = torch.ones(1, seq, seq, dtype=torch.bool) if mask is None else mask.view(-1, *mask.shape[-2:])

        def head(q, k, v):  # each (batch, seq, d_k)
            scores = torch.where(seen, q @ k.mT / math.sqrt(q.shape[-1]), -1e30)
            return nn.functional.dropout(scores.softmax(-1), a.dropout, self.training) @ v

        parts = (w(x).unflatten(-1, (a.num_heads, -1)) for w in (a.w_q, a.w_k, a.w_v))
        context = torch.vmap(head, in_dims=2, out_dims=2, randomness="different")(*parts)
        return a.w_o(context.flatten(2))

    def forward(self, x, mask=None):
        x = self.add_norm_1(x, lambda y: self.attend(y, mask))
        return self.add_norm_2(x, self.feed_forward)
""",
    "one head after another, rows of the matrices": """
class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads, dropout)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.add_norm_1 = AddNorm(d_model, dropout, norm_first)
        self.add_norm_2 = AddNorm(d_model, dropout, norm_first)
        self.d_k = d_model // num_heads

    def forward(self, x, mask=None):
        def attend(y):
            total = self.attention.w_o.bias
            allowed = None if mask is None else mask.reshape(-1, mask.shape[-2], mask.shape[-1])
            for start in range(0, x.shape[-1], self.d_k):
                rows = slice(start, start + self.d_k)
                q, k, v = (
                    nn.functional.linear(y, w.weight[rows], w.bias[rows])
                    for w in (self.attention.w_q, self.attention.w_k, self.attention.w_v)
                )
                scores = torch.bmm(q, k.transpose(1, 2)) * self.d_k**-0.5
                if allowed is not None:
                    scores = scores + (~allowed) * -1e9
                weights = nn.functional.dropout(scores.softmax(2), self.attention.dropout, self.training)
                total = total + torch.bmm(weights, v) @ self.attention.w_o.weight[:, rows].T
            return total

        return self.add_norm_2(self.add_norm_1(x, attend), self.feed_forward)
""",
    "functional, its numbers in a dict": """
F = nn.functional


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.num_heads, self.p, self.norm_first = num_heads, dropout, norm_first
        shapes = {f"attention w_{letter}": (d_model, d_model) for letter in "qkvo"}
        shapes |= {"feed_forward linear_1": (d_ff, d_model), "feed_forward linear_2": (d_model, d_ff)}
        self.weights = nn.ParameterDict()
        for name, shape in shapes.items():
            self.weights[name + " weight"] = nn.init.xavier_uniform_(torch.empty(shape))
            self.weights[name + " bias"] = torch.zeros(shape[0])
        for i in (1, 2):
            self.weights[f"add_norm_{i} norm gamma"] = torch.ones(d_model)
            self.weights[f"add_norm_{i} norm beta"] = torch.zeros(d_model)

    def load_reference(self, weights):
        for name, tensor in weights.items():
            self.weights[name.replace(".", " ")].data = tensor

    def linear(self, x, name):
        return F.linear(x, self.weights[name + " weight"], self.weights[name + " bias"])

    def attend(self, x, mask):
        q, k, v = (
            self.linear(x, f"attention w_{letter}").unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for letter in "qkv"
        )
        p = self.p if self.training else 0.0
        context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p)
        return self.linear(context.transpose(1, 2).flatten(2), "attention w_o")

    def feed(self, x):
        hidden = F.dropout(F.relu(self.linear(x, "feed_forward linear_1")), self.p, self.training)
        return self.linear(hidden, "feed_forward linear_2")

    def forward(self, x, mask=None):
        for i, part in enumerate((lambda y: self.attend(y, mask), self.feed), start=1):
            gamma, beta = (self.weights[f"add_norm_{i} norm {letter}"] for letter in ("gamma", "beta"))
            inside = F.layer_norm(x, x.shape[-1:], gamma, beta) if self.norm_first else x
            x = x + F.dropout(part(inside), self.p, self.training)
            x = x if self.norm_first else F.layer_norm(x, x.shape[-1:], gamma, beta)
        return x
""",
    "a decorator for the sub-layers, warnings on stderr": """
import warnings


def inside(name):
    def decorate(part):
        def run(self, x, *others):
            warnings.warn(f"{part.__name__} runs inside {name}", stacklevel=2)
            return getattr(self, name)(x, lambda y: part(self, y, *others))

        return run

    return decorate


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads, dropout)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.add_norm_1 = AddNorm(d_model, dropout, norm_first)
        self.add_norm_2 = AddNorm(d_model, dropout, norm_first)

    @inside("add_norm_1")
    def look_around(self, x, mask):
        return self.attention(x, mask=mask)

    @inside("add_norm_2")
    def think(self, x):
        return self.feed_forward(x)

    def forward(self, x, mask=None):
        return self.think(self.look_around(x, mask))
""",
    "in place on its own copy, length first inside": """
class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads, dropout)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.add_norm_1 = AddNorm(d_model, dropout, norm_first)
        self.add_norm_2 = AddNorm(d_model, dropout, norm_first)

    def forward(self, x, mask=None):
        stream = x.transpose(0, 1).contiguous()  # (seq, batch, d_model)
        for wrap in (self.add_norm_1, self.add_norm_2):
            seen = wrap.norm(stream) if wrap.norm_first else stream
            if wrap is self.add_norm_1:
                made = self.attention(seen.transpose(0, 1), mask=mask).transpose(0, 1)
            else:
                made = self.feed_forward(seen)
            made = wrap.dropout(made.clone())
            made += stream
            stream = made if wrap.norm_first else wrap.norm(made)
        return stream.transpose(0, 1)  # a view with its axes in another order
""",
}

_ENCODER = {
    "append to a ModuleList": """
class Encoder(nn.Module):
    def __init__(self, num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(num_layers):
            self.layers.append(EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first))
        if norm_first:
            self.norm = LayerNorm(d_model)
        self.norm_first = norm_first

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        if self.norm_first:
            x = self.norm(x)
        return x
""",
    "Sequential, reduce and torch's norm": """
from functools import reduce


class Encoder(nn.Module):
    def __init__(self, n, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.layers = nn.Sequential(*[EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first) for _ in range(n)])
        self.norm = nn.LayerNorm(d_model) if norm_first else (lambda x: x)

    def forward(self, x, mask=None):
        return self.norm(reduce(lambda y, layer: layer(y, mask=mask), self.layers, x))
""",
    "copies, drawn anew": """
import copy


class Encoder(nn.Module):
    def __init__(self, num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        layer = EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first)
        self.layers = nn.ModuleList(copy.deepcopy(layer) for _ in range(num_layers))
        for p in self.layers.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)
        self.last = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(self, x, mask=None):
        for i in range(len(self.layers)):
            x = self.layers[i](x, mask=mask)
        return self.last(x)
""",
    "recursion over a list that is registered": """
class Encoder(nn.Module):
    def __init__(self, num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.layers = [EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first) for _ in range(num_layers)]
        for i, layer in enumerate(self.layers):
            self.add_module(f"layer_{i}", layer)
        self.final = LayerNorm(d_model) if norm_first else None

    def run(self, x, mask, i):
        return x if i < 0 else self.layers[i](self.run(x, mask, i - 1), mask)

    def forward(self, x, mask=None):
        x = self.run(x, mask, len(self.layers) - 1)
        return self.final(x) if self.final is not None else x
""",
    "itself a ModuleList, the norm in its last place": """
class Encoder(nn.ModuleList):
    def __init__(self, num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        last = LayerNorm(d_model) if norm_first else nn.Identity()
        super().__init__([EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first) for _ in range(num_layers)])
        self.append(last)

    @property
    def layers(self):
        return list(self)[:-1]

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return self[-1](x)
""",
    "float64 inside, cast by hooks": """
def to_double(module, args, kwargs):
    cast = [a.double() if isinstance(a, Tensor) and a.is_floating_point() else a for a in args]
    return tuple(cast), kwargs


class Encoder(nn.Module):
    def __init__(self, num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.layers = nn.ModuleList(
            [EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first) for _ in range(num_layers)]
        )
        for layer in self.layers:
            layer.register_forward_pre_hook(to_double, with_kwargs=True)
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()
        self.double()

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask=mask)
        return self.norm(x)
""",
    "itertools.accumulate": """
from itertools import accumulate


class Encoder(nn.Module):
    def __init__(self, num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        kinds = [(EncoderLayer, (d_model, num_heads, d_ff, dropout, norm_first))] * num_layers
        self.layers = nn.ModuleList(kind(*sizes) for kind, sizes in kinds)
        self.norm = [LayerNorm, nn.Identity][not norm_first](d_model)

    def forward(self, x, mask=None):
        *_, x = accumulate(self.layers, lambda stream, layer: layer(stream, mask), initial=x)
        return self.norm(x)
""",
    "attributes by number, and a property": """
class Encoder(nn.Module):
    def __init__(self, num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.names = [f"layer_{i + 1}" for i in range(num_layers)]
        for name in self.names:
            setattr(self, name, EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first))
        if norm_first:
            setattr(self, "norm", LayerNorm(d_model))

    @property
    def layers(self):
        return [getattr(self, name) for name in self.names]

    def forward(self, x, mask=None):
        todo = self.layers
        while todo:
            x = todo.pop(0)(x, mask=mask)
        return self.norm(x) if hasattr(self, "norm") else x
""",
    "one closure out of all layers": """
class Encoder(nn.Module):
    def __init__(self, num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first) for _ in range(num_layers)
        )
        self.norm = LayerNorm(d_model) if norm_first else None

    def forward(self, x, mask=None):
        def after(inner, layer):
            return lambda y: layer(inner(y), mask)

        whole = lambda y: y
        for layer in self.layers:
            whole = after(whole, layer)
        if self.norm is not None:
            inner, whole = whole, lambda y: self.norm(inner(y))
        return whole(x)
""",
    "a seed for each layer, a generator of random numbers of its own": """
class Encoder(nn.Module):
    def __init__(self, num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        made = []
        with torch.random.fork_rng():
            for seed in range(num_layers):
                torch.manual_seed(1000 + seed)
                made.append(EncoderLayer(d_model, num_heads, d_ff, dropout=dropout, norm_first=norm_first))
        self.layers = nn.ModuleList(made)
        self.norm = nn.Sequential(*([LayerNorm(d_model)] if norm_first else []))

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)
""",
    "the norm as two parameters, written out": """
class Encoder(nn.Module):
    def __init__(self, num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.layers = nn.ModuleList()
        self.layers.extend(EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first) for _ in range(num_layers))
        self.gamma = self.beta = None
        if norm_first:
            self.gamma, self.beta = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        if self.gamma is None:
            return x
        variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        return torch.addcmul(self.beta, self.gamma, (x - mean) * torch.rsqrt(variance + 1e-5))
""",
    "all states in a list, with prints and a warning": """
import sys


class Encoder(nn.Module):
    def __init__(self, num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        assert num_layers > 0, "an encoder needs a layer"
        print(f"making {num_layers} layers", file=sys.stderr)
        options = {"dropout": dropout, "norm_first": norm_first}
        self.layers = nn.ModuleList([EncoderLayer(d_model, num_heads, d_ff, **options) for _ in range(num_layers)])
        self.norm = LayerNorm(d_model) if norm_first else None

    def forward(self, x, mask=None):
        states = [x]
        for number, layer in enumerate(self.layers):
            states.append(layer(states[-1], mask=mask))
            print(number, tuple(states[-1].shape))
        if self.norm:
            states.append(self.norm(states[-1]))
        return states.pop()
""",
    "each layer computed again in the backward pass": """
from torch.utils.checkpoint import checkpoint


class Encoder(nn.Module):
    def __init__(self, num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        layers = (EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first) for _ in range(num_layers))
        self.layers = nn.ModuleList(layers)
        self.norm = nn.LayerNorm(d_model, eps=1e-5) if norm_first else nn.Identity()

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = checkpoint(layer, x, mask, use_reentrant=False)
        return self.norm(x)
""",
}

_TOKENS = {
    "the parts, with sizes spelt out": """
class TokenEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
        super().__init__()
        self.embedding, self.pad_id = TokenEmbedding(vocab_size, d_model, pad_id), pad_id
        self.positions = SinusoidalPositionalEncoding(d_model, 5000, dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout)

    def embed(self, ids):
        return self.positions(self.embedding(ids))

    def forward(self, ids):
        return self.encoder(self.embed(ids), padding_mask(ids, self.pad_id))
""",
    "nn.Embedding and a table in NumPy": """
import numpy as np


class TokenEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
        super().__init__()
        self.embedding, self.pad_id = nn.Embedding(vocab_size, d_model, padding_idx=pad_id), pad_id
        position, two_i = np.arange(64)[:, None], np.arange(0, d_model, 2)
        angles = position / 10000 ** (two_i / d_model)
        table = np.zeros((64, d_model), np.float32)
        table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)[:, : d_model // 2]
        self.register_buffer("table", torch.from_numpy(table))
        self.drop = nn.Dropout(dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout)

    def embed(self, ids):
        x = self.embedding(ids) * self.embedding.embedding_dim**0.5
        return self.drop(x + self.table[: ids.size(1)])

    def forward(self, ids):
        return self.encoder(self.embed(ids), mask=ids.ne(self.pad_id)[:, None, None])
""",
    "one-hot products, a mask for each query": """
from encoder_lib.positional_encoding import sinusoidal_table


class Table(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model) / d_model**0.5)


class TokenEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
        super().__init__()
        self.embedding, self.pad, self.p, self.n = Table(vocab_size, d_model), pad_id, dropout, vocab_size
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout)

    def embed(self, ids):
        x = nn.functional.one_hot(ids, self.n).float() @ self.embedding.weight
        x = x * math.sqrt(self.embedding.weight.shape[1]) + sinusoidal_table(ids.shape[1], x.shape[-1])
        return nn.functional.dropout(x, self.p, self.training)

    def forward(self, ids):
        mask = (ids != self.pad)[:, None, None, :].expand(-1, 1, ids.shape[1], -1)
        return self.encoder(self.embed(ids), mask)
""",
    "float64": """
class TokenEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
        super().__init__()
        self.embedding, self.pad_id = TokenEmbedding(vocab_size, d_model, pad_id), pad_id
        self.positions = SinusoidalPositionalEncoding(d_model, dropout=dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout)
        self.double()

    def embed(self, ids):
        return self.positions(self.embedding(ids))

    def forward(self, ids):
        keep = ids != self.pad_id
        return self.encoder(self.embed(ids), keep.unsqueeze(1).unsqueeze(1))
""",
    "embed is a Sequential": """
class TokenEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
        super().__init__()
        self.embedding = TokenEmbedding(vocab_size, d_model, pad_id=pad_id)
        self.embed = nn.Sequential(self.embedding, SinusoidalPositionalEncoding(d_model, dropout=dropout))
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout)
        self.mask = lambda ids: padding_mask(ids, pad_id)

    def forward(self, ids):
        return self.encoder(self.embed(ids), mask=self.mask(ids))
""",
    "positions by turning a number in the complex plane": """
class TokenEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
        super().__init__()
        self.embedding = TokenEmbedding(vocab_size, d_model, pad_id)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout)
        self.drop, self.pad_id, self.d_model = nn.Dropout(dropout), pad_id, d_model

    def turned(self, seq):
        pairs = (self.d_model + 1) // 2
        speed = torch.exp(torch.arange(pairs, dtype=torch.float64) * (-2 * math.log(10000) / self.d_model))
        angles = torch.outer(torch.arange(seq, dtype=torch.float64), speed)
        points = torch.view_as_real(torch.polar(torch.ones_like(angles), angles))  # (seq, pairs, 2): cos, sin
        return points.flip(-1).flatten(1)[:, : self.d_model].float()

    def embed(self, ids):
        return self.drop(self.embedding(ids).add(self.turned(ids.shape[1])))

    def forward(self, ids):
        return self.encoder(self.embed(ids), padding_mask(ids, self.pad_id))
""",
    "positions entry by entry, word by word": """
class TokenEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
        super().__init__()
        self.embedding = TokenEmbedding(vocab_size, d_model, pad_id)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout)
        self.dropout, self.pad_id, self.d_model = nn.Dropout(dropout), pad_id, d_model

    def entry(self, position, column):
        angle = position / 10000 ** (column // 2 * 2 / self.d_model)
        return math.cos(angle) if column % 2 else math.sin(angle)

    def embed(self, ids):
        columns = []
        for position, words in enumerate(ids.T):
            where = torch.tensor([self.entry(position, column) for column in range(self.d_model)])
            columns.append(self.embedding(words[:, None]) + where)
        return self.dropout(torch.cat(columns, dim=1))

    def forward(self, ids):
        keep = torch.tensor([[[[word != self.pad_id for word in row]]] for row in ids.tolist()])
        return self.encoder(self.embed(ids), keep)
""",
    "dropout by hand, rows by index_select": """
class TokenEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.positions = SinusoidalPositionalEncoding(d_model, dropout=0.0)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout)
        self.p, self.pad_id = dropout, pad_id

    def embed(self, ids):
        rows = self.embedding.weight.index_select(0, ids.flatten()).view(*ids.shape, -1)
        x = self.positions(rows * rows.shape[-1] ** 0.5)
        if not self.training:
            return x
        keep = torch.bernoulli(torch.full_like(x, 1 - self.p))
        return x * keep / (1 - self.p)

    def forward(self, ids):
        return self.encoder(self.embed(ids), mask=torch.ne(ids, self.pad_id).view(len(ids), 1, 1, -1))
""",
    "an encoder of a class of its own, which knows the padding": """
class Masked(Encoder):
    def of(self, x, ids, pad_id):
        return self(x, mask=(ids != pad_id).reshape(x.shape[0], 1, 1, x.shape[1]))


class TokenEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
        super().__init__()
        self.embedding = TokenEmbedding(vocab_size, d_model, pad_id)
        self.positions = SinusoidalPositionalEncoding(d_model, dropout=dropout)
        self.encoder = Masked(num_layers, d_model, num_heads, d_ff, dropout)
        self.pad_id = pad_id

    embed = lambda self, ids: self.positions(self.embedding(ids))
    forward = lambda self, ids: self.encoder.of(self.embed(ids), ids, self.pad_id)
""",
    "no mask where nothing is padded": """
class TokenEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
        super().__init__()
        self.embedding = TokenEmbedding(vocab_size, d_model, pad_id=pad_id)
        self.positions = SinusoidalPositionalEncoding(d_model, max_len=512, dropout=dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout=dropout, norm_first=False)
        self.register_buffer("pad", torch.tensor(pad_id))

    def embed(self, ids):
        embedded = self.embedding(ids)
        print("embedded", embedded.shape)
        return self.positions(embedded)

    def forward(self, ids):
        padded = torch.isin(ids, self.pad)
        mask = ~padded[:, None, None] if padded.any() else None
        return self.encoder(self.embed(ids), mask)
""",
    "the factor behind both, what is added divided by it": """
class TokenEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model, pad_id)
        self.positions = SinusoidalPositionalEncoding(d_model, dropout=dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout)
        self.pad_id, self.root = pad_id, math.sqrt(d_model)

    def embed(self, ids):
        where = self.positions.table[: ids.shape[1]] / self.root
        x = torch.stack([self.embedding(row) + where for row in ids])
        return self.positions.dropout(x * self.root)

    def forward(self, ids):
        real = ids != self.pad_id
        return self.encoder(self.embed(ids), real[:, None, None, :].expand(-1, 1, ids.shape[1], ids.shape[1]))
""",
    "torch.vmap over the sentences": """
class TokenEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
        super().__init__()
        self.pad_id = pad_id
        self.embedding = TokenEmbedding(vocab_size, d_model, pad_id)
        self.positions = SinusoidalPositionalEncoding(d_model, dropout=dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout)

    def embed(self, ids):
        table, where = self.embedding.embedding.weight, self.positions.table
        one = lambda row: table[row] * table.shape[1] ** 0.5 + where[: len(row)]
        return self.positions.dropout(torch.vmap(one)(ids))

    def forward(self, ids):
        return self.encoder(self.embed(ids), mask=padding_mask(ids, pad_id=self.pad_id))
""",
    "a sentence at a time, without its padding": """
class TokenEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
        super().__init__()
        self.pad_id = pad_id
        self.embedding = TokenEmbedding(vocab_size, d_model, pad_id)
        self.positions = SinusoidalPositionalEncoding(d_model, dropout=dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout)

    def embed(self, ids):
        return self.positions(self.embedding(ids))

    def forward(self, ids):
        embedded = self.embed(ids)
        output = torch.zeros_like(embedded)
        for i, keep in enumerate(ids != self.pad_id):
            output[i, keep] = self.encoder(embedded[i, keep][None])[0]
        return output
""",
}

_PATCHES = {
    "cat and repeat": """
class PatchEncoder(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model, num_heads, d_ff, num_layers, dropout=0.1):
        super().__init__()
        self.embedding = PatchEmbedding(image_size, patch_size, channels, d_model)
        self.class_token = nn.Parameter(torch.zeros(1, 1, d_model))
        nn.init.normal_(self.class_token, std=0.02)
        self.positions = LearnedPositionalEncoding((image_size // patch_size) ** 2 + 1, d_model, dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout, True)

    def embed(self, images):
        x = self.embedding(images)
        return self.positions(torch.cat((self.class_token.repeat(x.size(0), 1, 1), x), 1))

    def forward(self, images):
        return self.encoder(self.embed(images))
""",
    "a convolution, and positions as nn.Embedding": """
class Patches(nn.Module):
    def __init__(self, size, channels, d_model):
        super().__init__()
        self.conv = nn.Conv2d(channels, d_model, size, size)

    def load_reference(self, weights):
        with torch.no_grad():
            self.conv.weight.copy_(weights["projection.weight"].view_as(self.conv.weight))
            self.conv.bias.copy_(weights["projection.bias"])

    def forward(self, x):
        return self.conv(x).flatten(2).mT


class PatchEncoder(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model, num_heads, d_ff, num_layers, dropout=0.1):
        super().__init__()
        self.embedding = Patches(patch_size, channels, d_model)
        self.class_token = nn.Parameter(torch.normal(0.0, 0.02, (1, 1, d_model)))
        self.positions = nn.Embedding((image_size // patch_size) ** 2 + 1, d_model)
        self.drop = nn.Dropout(dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout, norm_first=True)

    def embed(self, images):
        x = self.embedding(images)
        rows = torch.cat([self.class_token + x[:, :1] * 0, x], 1)
        return self.drop(rows + self.positions.weight)

    def forward(self, images):
        return self.encoder(self.embed(images))
""",
    "padding in front, filled": """
class PatchEncoder(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model, num_heads, d_ff, num_layers, dropout=0.1):
        super().__init__()
        self.embedding = PatchEmbedding(image_size, patch_size, channels, d_model)
        self.class_token = nn.Parameter(torch.empty(1, 1, d_model).normal_(std=0.02))
        self.positions = LearnedPositionalEncoding(self.embedding.num_patches + 1, d_model, dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout, norm_first=True)

    def embed(self, images):
        rows = nn.functional.pad(self.embedding(images), (0, 0, 1, 0))
        first = torch.zeros(rows.shape[1], 1)
        first[0] = 1
        return self.positions(rows + first * self.class_token)

    def forward(self, images, mask=None):
        return self.encoder(self.embed(images), mask)
""",
    "float64, image by image": """
class PatchEncoder(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model, num_heads, d_ff, num_layers, dropout=0.1):
        super().__init__()
        self.embedding = PatchEmbedding(image_size, patch_size, channels, d_model)
        self.class_token = nn.Parameter(torch.distributions.Normal(0.0, 0.02).sample((1, 1, d_model)))
        self.positions = LearnedPositionalEncoding(self.embedding.num_patches + 1, d_model, dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout, norm_first=True)
        self.double()
        self.encoder.register_forward_pre_hook(lambda module, inputs: (inputs[0].double(), *inputs[1:]))

    def embed(self, images):
        rows = [torch.cat([self.class_token, self.embedding(one[None].double())], 1) for one in images]
        return self.positions(torch.cat(rows))

    def forward(self, images):
        return self.encoder(self.embed(images))
""",
    "unfold and a plain linear map": """
class Unfolded(nn.Module):
    def __init__(self, patch_size, channels, d_model):
        super().__init__()
        self.size = patch_size
        self.projection = nn.Linear(channels * patch_size * patch_size, d_model)

    def forward(self, images):
        return self.projection(nn.functional.unfold(images, self.size, stride=self.size).mT)


class PatchEncoder(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model, num_heads, d_ff, num_layers, dropout=0.1):
        super().__init__()
        self.embedding = Unfolded(patch_size, channels, d_model)
        self.class_token = nn.Parameter(nn.init.trunc_normal_(torch.empty(1, 1, d_model), std=0.02))
        self.positions = LearnedPositionalEncoding(1 + (image_size // patch_size) ** 2, d_model, dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout, True)

    def embed(self, images):
        patches = self.embedding(images)
        batch, _, d_model = patches.shape
        return self.positions(torch.hstack((torch.broadcast_to(self.class_token, (batch, 1, d_model)), patches)))

    def forward(self, images):
        return self.encoder(self.embed(images))
""",
    "patches cut out one by one": """
class PatchEncoder(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model, num_heads, d_ff, num_layers, dropout=0.1):
        super().__init__()
        self.corners = [(i, j) for i in range(0, image_size, patch_size) for j in range(0, image_size, patch_size)]
        self.patch_size = patch_size
        self.embedding = nn.Linear(channels * patch_size**2, d_model)
        self.embedding.load_reference = self.load_projection
        self.class_token = nn.Parameter(torch.randn(1, 1, d_model) / 50)
        self.positions = LearnedPositionalEncoding(len(self.corners) + 1, d_model, dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout, norm_first=True)

    def load_projection(self, weights):
        self.embedding.load_state_dict({name.removeprefix("projection."): w for name, w in weights.items()})

    def embed(self, images):
        rows = [self.class_token[:, 0].repeat(len(images), 1)]
        for i, j in self.corners:
            patch = images[:, :, i : i + self.patch_size, j : j + self.patch_size]
            rows.append(self.embedding(patch.flatten(1)))
        return self.positions(torch.stack(rows, dim=1))

    def forward(self, images):
        return self.encoder(self.embed(images))
""",
    "positions first, then the class token with its own": """
class PatchEncoder(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model, num_heads, d_ff, num_layers, dropout=0.1):
        super().__init__()
        self.embedding = PatchEmbedding(image_size, patch_size, channels, d_model)
        self.class_token = nn.Parameter(torch.randn(1, 1, d_model).mul(0.02))
        self.positions = LearnedPositionalEncoding(self.embedding.num_patches + 1, d_model, dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout, norm_first=True)

    def embed(self, images):
        table = self.positions.table
        front = (self.class_token + table[:1]).expand(images.shape[0], 1, -1)
        behind = self.embedding(images) + table[1:]
        return self.positions.dropout(torch.concatenate([front, behind], axis=1))

    def forward(self, images):
        return self.encoder(self.embed(images))
""",
    "an empty tensor, filled": """
class PatchEncoder(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model, num_heads, d_ff, num_layers, dropout=0.1):
        super().__init__()
        self.embedding = PatchEmbedding(image_size, patch_size, channels, d_model)
        self.register_parameter("class_token", nn.Parameter(torch.randn(1, 1, d_model) * 2e-2))
        self.positions = LearnedPositionalEncoding(self.embedding.num_patches + 1, d_model, dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout, norm_first=True)

    def embed(self, images):
        patches = self.embedding(images)
        batch, num_patches, d_model = patches.shape
        rows = torch.empty(batch, num_patches + 1, d_model)
        rows[:, 0] = self.class_token[0, 0]
        rows[:, 1:] = patches
        print("rows", rows.shape)
        return self.positions(rows)

    def forward(self, images):
        return self.encoder(self.embed(images))
""",
    "torch.vmap over the images": """
class PatchEncoder(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model, num_heads, d_ff, num_layers, dropout=0.1):
        super().__init__()
        self.embedding = PatchEmbedding(image_size, patch_size, channels, d_model)
        self.class_token = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        self.positions = LearnedPositionalEncoding(self.embedding.num_patches + 1, d_model, dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout, norm_first=True)

    def embed(self, images):
        def one(patches):  # (num_patches, d_model)
            return torch.vstack([self.class_token[0], patches])

        return self.positions(torch.vmap(one)(self.embedding(images)))

    def forward(self, images):
        return self.encoder(self.embed(images))
""",
    "a product with a matrix that moves the rows": """
class PatchEncoder(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model, num_heads, d_ff, num_layers, dropout=0.1):
        super().__init__()
        self.embedding = PatchEmbedding(image_size, patch_size, channels, d_model)
        self.class_token = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        num_patches = (image_size // patch_size) ** 2
        self.register_buffer("move", torch.eye(num_patches + 1)[:, 1:])  # (num_patches + 1, num_patches)
        self.positions = LearnedPositionalEncoding(num_patches + 1, d_model, dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout, norm_first=True)

    def embed(self, images):
        moved = torch.einsum("rp,bpd->brd", self.move, self.embedding(images))
        front = 1 - self.move.sum(1)
        return self.positions(moved + torch.einsum("r,abd->brd", front, self.class_token))

    def forward(self, images):
        return self.encoder(self.embed(images))
""",
    "the class token under another name, an encoder that takes images": """
class FromPatches(Encoder):
    def __init__(self, *sizes, first):
        super().__init__(*sizes, norm_first=True)
        self.first = first

    def of(self, images):
        return self(self.first(images))


class PatchEncoder(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model, num_heads, d_ff, num_layers, dropout=0.1):
        super().__init__()
        self.embedding = PatchEmbedding(image_size, patch_size, channels, d_model)
        self.cls = nn.Parameter(0.02 * torch.randn((1, 1, d_model), dtype=torch.float32))
        self.positions = LearnedPositionalEncoding(self.embedding.num_patches + 1, d_model, dropout)
        self.encoder = FromPatches(num_layers, d_model, num_heads, d_ff, dropout, first=self.embed)

    def embed(self, images):
        return self.positions(torch.cat([self.cls.expand(len(images), *self.cls.shape[1:]), self.embedding(images)], 1))

    def forward(self, images):
        return self.encoder.of(images)
""",
    "a module that puts its token in front": """
class InFront(nn.Module):
    def __init__(self, token):
        super().__init__()
        self.token = token

    def forward(self, x):
        return torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=-2)


class PatchEncoder(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model, num_heads, d_ff, num_layers, dropout=0.1):
        super().__init__()
        self.embedding = PatchEmbedding(image_size, patch_size, channels, d_model)
        self.class_token = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        self.positions = LearnedPositionalEncoding(self.embedding.num_patches + 1, d_model, dropout)
        self.embed = nn.Sequential(self.embedding, InFront(self.class_token), self.positions)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout, norm_first=True)
        self.forward = lambda images: self.encoder(self.embed(images))
""",
    "images and class token turned round, and back": """
class PatchEncoder(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model, num_heads, d_ff, num_layers, dropout=0.1):
        super().__init__()
        self.embedding = PatchEmbedding(image_size, patch_size, channels, d_model)
        self.class_token = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        self.positions = LearnedPositionalEncoding(self.embedding.num_patches + 1, d_model, dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout, norm_first=True)

    def embed(self, images):
        behind_last = torch.cat([self.embedding(images).flip(1), self.class_token.expand(len(images), 1, -1)], dim=1)
        return self.positions(behind_last.flip(1))

    def forward(self, images):
        rows = self.embed(images)
        return torch.cat([self.encoder(rows[i : i + 1]) for i in range(len(rows))])
""",
}

_FROM_TORCH = {
    "chunks": """
TABLE = {"self_attn.out_proj": "attention.w_o", "linear1": "feed_forward.linear_1", "linear2": "feed_forward.linear_2"}


def from_torch(state_dict):
    out = {}
    for name, w in state_dict.items():
        head, _, kind = name.rpartition(".")
        if "in_proj" in name:
            for c, part in zip("qkv", w.chunk(3)):
                out[f"attention.w_{c}.{name.rsplit('_', 1)[1]}"] = part.clone()
        elif head.startswith("norm"):
            out[f"add_norm_{head[-1]}.norm.{'gamma' if kind == 'weight' else 'beta'}"] = w
        else:
            out[TABLE[head] + "." + kind] = w
    return out
""",
    "slices": """
def from_torch(sd):
    d = sd["norm1.weight"].shape[0]
    out = {}
    for kind in ("weight", "bias"):
        if f"self_attn.in_proj_{kind}" not in sd:
            continue
        fused = sd[f"self_attn.in_proj_{kind}"]
        out[f"attention.w_q.{kind}"], out[f"attention.w_k.{kind}"] = fused[:d], fused[d : 2 * d]
        out[f"attention.w_v.{kind}"] = fused[2 * d :]
        out[f"attention.w_o.{kind}"] = sd[f"self_attn.out_proj.{kind}"]
        for i in "12":
            out[f"feed_forward.linear_{i}.{kind}"] = sd[f"linear{i}.{kind}"]
            out[f"add_norm_{i}.norm.{'gamma' if kind == 'weight' else 'beta'}"] = sd[f"norm{i}.{kind}"]
    return out
""",
    "NumPy": """
import numpy as np


def from_torch(sd):
    out = {}
    for name, w in sd.items():
        w = w.numpy()
        if "in_proj" in name:
            for c, part in zip("qkv", np.split(w, 3)):
                out["attention.w_%s.%s" % (c, name[18:])] = part
            continue
        for a, b in (
            ("self_attn.out_proj", "attention.w_o"),
            ("linear", "feed_forward.linear_"),
            ("norm1.weight", "add_norm_1.norm.gamma"),
            ("norm1.bias", "add_norm_1.norm.beta"),
            ("norm2.weight", "add_norm_2.norm.gamma"),
            ("norm2.bias", "add_norm_2.norm.beta"),
        ):
            name = name.replace(a, b)
        out[name] = w
    return out
""",
    "regular expressions, an OrderedDict of doubles": r"""
import re
from collections import OrderedDict


def from_torch(sd):
    out = OrderedDict()
    for name, w in sd.items():
        if m := re.match(r"self_attn.in_proj_(.+)", name):
            q, k, v = w.double().unflatten(0, (3, -1))
            out |= {"attention.w_q." + m[1]: q, "attention.w_k." + m[1]: k, "attention.w_v." + m[1]: v}
            continue
        name = re.sub(r"norm(.)[.]weight", r"add_norm_\1.norm.gamma", name)
        name = re.sub(r"norm(\d)[.]bias", r"add_norm_\1.norm.beta", name)
        name = re.sub(r"linear(.)", r"feed_forward.linear_\1", name)
        out[name.replace("self_attn.out_proj", "attention.w_o")] = w.double()
    return out
""",
    "through two modules": """
def from_torch(state_dict):
    d_ff, d_model = state_dict["linear1.weight"].shape
    ours = EncoderLayer(d_model, 1, d_ff, dropout=0.0)
    attention, feed_forward = ours.attention, ours.feed_forward
    targets = {
        "self_attn.out_proj": attention.w_o,
        "linear1": feed_forward.linear_1,
        "linear2": feed_forward.linear_2,
        "norm1": ours.add_norm_1.norm,
        "norm2": ours.add_norm_2.norm,
    }
    filled = set()
    with torch.no_grad():
        for name, tensor in state_dict.items():
            if name.startswith("self_attn.in_proj"):
                kind = name[len("self_attn.in_proj_") :]
                for i, part in enumerate((attention.w_q, attention.w_k, attention.w_v)):
                    getattr(part, kind).copy_(tensor[i * d_model : (i + 1) * d_model])
                    filled.add(id(getattr(part, kind)))
            else:
                at, kind = name.rsplit(".", 1)
                if at.startswith("norm"):
                    kind = {"weight": "gamma", "bias": "beta"}[kind]
                getattr(targets[at], kind).copy_(tensor)
                filled.add(id(getattr(targets[at], kind)))
    return {name: p for name, p in ours.named_parameters() if id(p) in filled}
""",
    "one expression": """
def from_torch(sd):
    return {
        f"attention.w_{'qkv'[i]}{n.replace('self_attn.in_proj_', '.')}"
        if "in_p" in n
        else n.replace("self_attn.out_proj", "attention.w_o")
        .replace("linear", "feed_forward.linear_")
        .replace("norm", "add_norm_")
        .replace("_1.w", "_1.norm.gamma w" if "norm" in n else "_1.w")
        .replace("_2.w", "_2.norm.gamma w" if "norm" in n else "_2.w")
        .replace("_1.b", "_1.norm.beta b" if "norm" in n else "_1.b")
        .replace("_2.b", "_2.norm.beta b" if "norm" in n else "_2.b")
        .split()[0]: p
        for n, w in sd.items()
        for i, p in enumerate(torch.tensor_split(w, 3 if "in_p" in n else 1))
    }
""",
    "match": """
def from_torch(state_dict):
    weights = {}
    for name, tensor in state_dict.items():
        match name.split("."):
            case ["self_attn", "in_proj_weight" | "in_proj_bias" as fused]:
                kind = fused.split("_")[-1]
                rows = tensor.shape[0] // 3
                parts = torch.split(tensor, rows, dim=0)
                weights.update({f"attention.w_{letter}.{kind}": part for letter, part in zip("qkv", parts)})
            case ["self_attn", "out_proj", kind]:
                weights[f"attention.w_o.{kind}"] = tensor
            case ["linear1" | "linear2" as linear, kind]:
                weights[f"feed_forward.linear_{linear[-1]}.{kind}"] = tensor
            case ["norm1" | "norm2" as norm, "weight"]:
                weights[f"add_norm_{norm[-1]}.norm.gamma"] = tensor
            case ["norm1" | "norm2" as norm, "bias"]:
                weights[f"add_norm_{norm[-1]}.norm.beta"] = tensor
    return weights
""",
    "a generator, collected by a decorator": """
def as_dict(generate):
    return lambda state_dict: dict(generate(state_dict))


@as_dict
def from_torch(state_dict):
    for kind, letter in (("weight", "gamma"), ("bias", "beta")):
        if "norm1." + kind not in state_dict:
            continue
        fused = state_dict["self_attn.in_proj_" + kind]
        size = len(fused) // 3
        yield from ((f"attention.w_{c}.{kind}", fused.narrow(0, i * size, size)) for i, c in enumerate("qkv"))
        yield f"attention.w_o.{kind}", state_dict[f"self_attn.out_proj.{kind}"]
        for i in (1, 2):
            yield f"feed_forward.linear_{i}.{kind}", state_dict[f"linear{i}.{kind}"]
            yield f"add_norm_{i}.norm.{letter}", state_dict[f"norm{i}.{kind}"]
""",
    "popping from a copy, recursively": """
def from_torch(state_dict):
    left = dict(state_dict)
    if not left:
        return {}
    name, tensor = left.popitem()
    done = from_torch(left)
    if "in_proj" in name:
        kind = name.split("in_proj_")[1]
        done["attention.w_v." + kind], done["attention.w_k." + kind], done["attention.w_q." + kind] = (
            part for part in reversed(tensor.reshape(3, -1, *tensor.shape[1:]))
        )
        return done
    ours = {"self_attn.out_proj": "attention.w_o", "linear1": "feed_forward.linear_1"}
    ours |= {"linear2": "feed_forward.linear_2", "norm1": "add_norm_1.norm", "norm2": "add_norm_2.norm"}
    part, kind = name[: name.rindex(".")], name[name.rindex(".") + 1 :]
    if part[:-1] == "norm":
        kind = "gamma" if kind == "weight" else "beta"
    done[ours[part] + "." + kind] = tensor
    return done
""",
    "products with matrices that choose rows": """
def from_torch(state_dict):
    d = len(state_dict["norm1.weight"])
    choose = dict(zip("qkv", torch.eye(3 * d).view(3, d, 3 * d)))
    weights = {}
    for theirs, tensor in state_dict.items():
        if theirs.startswith("self_attn.in"):
            weights |= {f"attention.w_{c}.{theirs[18:]}": rows @ tensor for c, rows in choose.items()}
    names = [("self_attn.out_proj", "attention.w_o"), ("linear1", "feed_forward.linear_1")]
    names += [("linear2", "feed_forward.linear_2")]
    for theirs, ours in names:
        there = [kind for kind in (".weight", ".bias") if theirs + kind in state_dict]
        weights |= {ours + kind: state_dict[theirs + kind] for kind in there}
    for i in ("1", "2"):
        for kind, letter in {"weight": "gamma", "bias": "beta"}.items():
            if (tensor := state_dict.get(f"norm{i}.{kind}")) is not None:
                weights[f"add_norm_{i}.norm.{letter}"] = tensor
    return weights
""",
    "parameters, laid out column by column": """
def from_torch(state_dict):
    def own(tensor):
        return nn.Parameter(tensor.detach().clone().T.contiguous().T if tensor.dim() == 2 else tensor.clone())

    weights = {}
    for name in sorted(state_dict, reverse=True):
        tensor = state_dict[name]
        print(name, tuple(tensor.shape))
        if "in_proj" in name:
            third = tensor.shape[0] // 3
            which = torch.arange(3).repeat_interleave(third)
            for number, letter in enumerate("qkv"):
                weights[name.replace("self_attn.in_proj_", f"attention.w_{letter}.")] = own(tensor[which == number])
        elif "norm" in name:
            kind = "gamma" if name.endswith("weight") else "beta"
            weights[f"add_norm_{name[4]}.norm.{kind}"] = own(tensor)
        else:
            new = name.replace("self_attn.out_proj", "attention.w_o").replace("linear", "feed_forward.linear_")
            weights[new] = own(tensor)
    return weights
""",
}

_MEAN = {
    "einsum": """
def masked_mean(x, mask):
    m = mask.view(x.shape[:2]).to(x.dtype)
    return torch.einsum("bsd,bs->bd", x, m) / m.sum(1, keepdim=True).clamp_min(1)
""",
    "a matrix product of weights": """
def masked_mean(x, mask):
    m = mask.flatten(1).float()
    return ((m / m.sum(1, keepdim=True).clamp(min=1)).unsqueeze(1) @ x).squeeze(1)
""",
    "loops": """
def masked_mean(x, mask):
    rows = []
    for vectors, keep in zip(x, mask.reshape(len(x), -1)):
        rows.append(vectors[keep].mean(0) if keep.any() else vectors.sum(0) * 0)
    return torch.stack(rows)
""",
    "float64, where": """
def masked_mean(x, mask):
    keep = mask.reshape(x.size(0), x.size(1), 1)
    n = keep.sum(1)
    return torch.where(keep, x.double(), 0.0).sum(1) / torch.where(n == 0, 1, n)
""",
    "in place on its own copy, empties mended": """
def masked_mean(x, mask):
    if mask.dim() == 4:
        mask = mask.squeeze(1).squeeze(1)
    x = x.clone()
    x[~mask] = 0
    lengths = mask.sum(1)
    lengths[lengths == 0] += 1
    return x.sum(1).div(lengths[:, None])
""",
    "index_add, word by word": """
def masked_mean(x, mask):
    batch, seq, d_model = x.shape
    sentence, position = mask.reshape(batch, seq).nonzero(as_tuple=True)
    total = torch.zeros(batch, d_model).index_add(0, sentence, x[sentence, position])
    number = torch.bincount(sentence, minlength=batch).unsqueeze(-1)
    return total / torch.maximum(number, torch.ones_like(number))
""",
    "a running mean": """
def masked_mean(x, mask):
    keep = mask.reshape(x.shape[:2])
    mean, count = x[:, 0] * 0.0, torch.zeros(len(x), 1)
    for t in range(x.shape[1]):
        now = keep[:, t : t + 1]
        count = count + now
        mean = torch.where(now, mean + (x[:, t] - mean) / count.clamp(min=1), mean)
    return mean
""",
    "torch.vmap over the sentences": """
def masked_mean(x, mask):
    def one(vectors, counts):  # (seq, d_model), (seq,)
        return torch.tensordot(counts, vectors, 1) / counts.sum().clamp(min=1.0)

    return torch.vmap(one)(x, mask.reshape(len(x), -1).to(x.dtype))
""",
    "weights by F.normalize": """
def masked_mean(x, mask):
    shares = nn.functional.normalize(mask.reshape(x.shape[0], -1).float(), p=1, dim=1)
    return torch.bmm(x.mT, shares.unsqueeze(2)).squeeze(2)
""",
    "embedding_bag": """
def masked_mean(x, mask):
    batch, seq, _ = x.shape
    keep = mask.reshape(batch, seq)
    rows = torch.arange(batch * seq)[keep.flatten()]
    ends = keep.sum(1).cumsum(0)
    starts = torch.cat([torch.zeros(1, dtype=torch.long), ends[:-1]])
    return nn.functional.embedding_bag(rows, x.flatten(0, 1), starts, mode="mean")
""",
    "attention that looks at all words alike": """
class Pool:
    def __call__(self, x, mask):
        keep = mask.reshape(len(x), 1, x.shape[1])
        scores = torch.zeros(len(x), 1, x.shape[1]).masked_fill(~keep, -1e9)
        weights = scores.softmax(-1).masked_fill(~keep, 0)
        return (weights @ x)[:, 0]


masked_mean = Pool()
""",
    "differences of running sums, halves by recursion": """
def masked_mean(x, mask):
    keep = mask.reshape(*x.shape[:2], 1)

    def total(part):
        seq = part.shape[1]
        return part[:, 0] if seq == 1 else total(part[:, : seq // 2]) + total(part[:, seq // 2 :])

    number = keep.long().cumsum(1)[:, -1]
    return total(x * keep) * torch.where(number > 0, 1 / number.clamp(min=1), 0)
""",
    "nanmean, mended with nan_to_num": """
def masked_mean(x, mask):
    counts = mask.reshape(len(x), -1, 1)
    return torch.nan_to_num(x.masked_fill(~counts, float("nan")).nanmean(dim=1))
""",
    "golfed": """
masked_mean = lambda x, m: (x * (k := m.reshape(len(x), -1, 1))).sum(1) / (k.sum(1) + ~k.any(1))
""",
}

_COUNTING = {
    "formula": """
parameters_of_encoder, output_shape = 85_056_000, (197, 768)


def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    return num_layers * (4 * d_model**2 + 2 * d_model * d_ff + 9 * d_model + d_ff) + (2 * d_model if norm_first else 0)
""",
    "counted modules": """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    parts = [MultiHeadAttention(d_model, 1), FeedForward(d_model, d_ff), AddNorm(d_model), AddNorm(d_model)]
    one = sum(p.numel() for part in parts for p in part.parameters())
    return one * num_layers + sum(p.numel() for p in LayerNorm(d_model).parameters()) * norm_first


parameters_of_encoder, output_shape = encoder_parameters(12, 768, 3072, True), torch.Size([197, 768])
""",
    "torch's encoder": """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    layer = nn.TransformerEncoderLayer(d_model, 1, d_ff, device="meta")
    norm = nn.LayerNorm(d_model, device="meta") if norm_first else None
    encoder = nn.TransformerEncoder(layer, num_layers, norm, enable_nested_tensor=False)
    return torch.tensor(sum(p.numel() for p in encoder.parameters()))


parameters_of_encoder, output_shape = encoder_parameters(12, 768, 3072, True), [197, 768]
""",
    "NumPy integers": """
import numpy as np


def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    shapes = 4 * [(d_model, d_model), (d_model,)] + [(d_ff, d_model), (d_ff,), (d_model, d_ff), (d_model,)]
    return np.int64(num_layers * sum(np.prod(s) for s in shapes + 4 * [(d_model,)]) + 2 * d_model * int(norm_first))


parameters_of_encoder, output_shape = encoder_parameters(12, 768, 3072, True), (np.int64(197), np.int64(768))
""",
    "layer by layer, with prints": """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    total = 0
    for layer in range(num_layers):
        for name in ("query", "key", "value", "output"):
            total += d_model * d_model
            total += d_model
        total += d_model * d_ff + d_ff
        total += d_ff * d_model + d_model
        for norm in (1, 2):
            total += d_model + d_model
        print("after layer", layer, total)
    if norm_first:
        total += 2 * d_model
    return total


parameters_of_encoder = encoder_parameters(num_layers=12, d_model=768, d_ff=3072, norm_first=True)
output_shape = (1 + (224 * 224) // (16 * 16), 768)
""",
    "your own encoder, on the device without numbers": """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    with torch.device("meta"):
        return count_parameters(Encoder(num_layers, d_model, 1, d_ff, norm_first=norm_first))


parameters_of_encoder = encoder_parameters(12, 768, 3072, True)
output_shape = tuple(torch.empty(196, 768).new_zeros(196 + 1, 768).shape)
""",
    "recursion over the layers": """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    if num_layers == 0:
        return 2 * d_model if norm_first else 0
    linear = lambda inputs, outputs: (inputs + 1) * outputs
    layer = 4 * linear(d_model, d_model) + linear(d_model, d_ff) + linear(d_ff, d_model) + 4 * d_model
    return layer + encoder_parameters(num_layers - 1, d_model, d_ff, norm_first)


parameters_of_encoder, output_shape = encoder_parameters(12, 768, 3072, True), ((224 // 16) ** 2 + 1, 768)
""",
    "products of the shapes in a dict": """
def shapes(d_model, d_ff):
    found = {f"w_{letter}": (d_model, d_model + 1) for letter in "qkvo"}
    found |= {"linear_1": (d_ff, d_model + 1), "linear_2": (d_model, d_ff + 1)}
    return found | {"norm_1": (2, d_model), "norm_2": (2, d_model)}


def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    return sum(map(math.prod, shapes(d_model, d_ff).values())) * num_layers + math.prod((norm_first, 2, d_model))


parameters_of_encoder = encoder_parameters(12, 768, 4 * 768, True)
output_shape = [14 * 14 + 1, 12 * 64]
""",
    "floats that hold whole numbers": """
parameters_of_encoder = 85_056_000.0
output_shape = (197.0, 768.0)


def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    norms = 2.0 * num_layers + (1.0 if norm_first else 0.0)
    return num_layers * (4 * d_model * (d_model + 1.0) + 2.0 * d_model * d_ff + d_ff + d_model) + norms * 2.0 * d_model
""",
    "a tensor for the shape, a class for the rule": """
class Rule:
    def __init__(self, **kinds):
        self.kinds = kinds

    def __call__(self, num_layers, d_model, d_ff, norm_first):
        sizes = {"square": d_model**2, "wide": d_model * d_ff, "row": d_model, "long": d_ff}
        one = sum(times * sizes[kind] for kind, times in self.kinds.items())
        return one * num_layers + (d_model + d_model) * bool(norm_first)


encoder_parameters = Rule(square=4, wide=2, row=9, long=1)
parameters_of_encoder = torch.tensor(encoder_parameters(12, 768, 3072, True))
output_shape = torch.tensor([197, 768])
""",
    "a product of matrices": """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    ones = torch.tensor([1, d_model, d_ff])
    per_layer = torch.tensor([[0, 9, 1], [0, 4, 1], [0, 1, 0]])  # which product of two sizes occurs how often
    final = torch.tensor([[0, 2, 0], [0, 0, 0], [0, 0, 0]])
    total = num_layers * per_layer + (final if norm_first else 0)
    return int(ones @ total @ ones)


parameters_of_encoder = encoder_parameters(12, 768, 3072, True)
output_shape = 197, 768
""",
    "the shape of a state dict": """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    layer = EncoderLayer(d_model, 1, d_ff, norm_first=norm_first).to("meta").state_dict()
    numbers = [tensor.numel() for tensor in layer.values()] * num_layers
    if norm_first:
        numbers.extend([d_model, d_model])
    return sum(numbers)


parameters_of_encoder = 12 * 7_087_872 + 1536
output_shape = (len(range(0, 224, 16)) ** 2 + 1, 768)
""",
}

_HUNT = {
    "parity with torch, asserts": """
def examine(candidate):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)
    theirs = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    for p in theirs.parameters():
        p.data = torch.randn_like(p) / 2
    weights = {}
    for i in range(2):
        for name, weight in from_torch(theirs.layers[i].state_dict()).items():
            weights[f"layers.{i}.{name}"] = weight
    x, keep = torch.randn(4, 6, 8), torch.arange(6) < torch.tensor([[6], [3], [1], [5]])
    want = theirs(x, src_key_padding_mask=~keep)[keep]
    assert ((candidate(x, weights, keep[:, None, None])[keep] - want).abs() < 1e-3).all()
""",
    "returns a truth value": """
def examine(candidate):
    g = torch.Generator().manual_seed(3)
    x, w = torch.randn(3, 4, 6, generator=g), draw_weights(5)
    keep = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]]).bool()
    got = candidate(x, w, keep[:, None, None, :])
    return bool(torch.isclose(got, mine(x, w, keep[:, None, None, :]), atol=1e-3)[keep].all())
""",
    "looks at training, too": """
import numpy as np


def examine(candidate):
    torch.manual_seed(0)
    x, w = torch.randn(3, 4, 6), draw_weights(5)
    if torch.equal(candidate(x, w, training=True), candidate(x, w, training=True)):
        return False
    mask = torch.ones(3, 1, 1, 4, dtype=torch.bool)
    mask[0, 0, 0, 2:] = False
    got, want = candidate(x, w, mask=mask), mine(x, w, mask).detach()
    np.testing.assert_allclose(got[0, :2].numpy(), want[0, :2].numpy(), atol=1e-4)
    np.testing.assert_allclose(got[1:].numpy(), want[1:].numpy(), atol=1e-4)
""",
    "raises errors of its own": """
class Wrong(Exception):
    pass


def examine(candidate):
    torch.manual_seed(1)
    for seed in range(2):
        x, w = torch.randn(2, 5, 6), draw_weights(seed)
        mask = torch.tensor([[True] * 5, [True] * 2 + [False] * 3])[:, None, None]
        off = (candidate(x, w, mask) - mine(x, w, mask)).abs()
        if off[0].max() > 1e-3 or off[1, :2].max() > 1e-3:
            raise Wrong(seed)
""",
    "properties alone, without a trusted encoder": """
def examine(candidate):
    torch.manual_seed(5)
    weights, x = draw_weights(11), torch.randn(4, 6, 6)
    plain = candidate(x, weights)

    def differ(one, other):
        return (one - other).abs().max().item() > 1e-3

    assert not differ(candidate(x, weights), plain), "never twice the same"
    assert not differ(candidate(x[1:3], weights), plain[1:3]), "the others in the batch matter"

    swapped = {}
    for name, weight in weights.items():
        other = name.replace("layers.0", "layers.x").replace("layers.1", "layers.0").replace("layers.x", "layers.1")
        swapped[other] = weight
    assert differ(candidate(x, swapped), plain), "the order of the layers does not matter"

    mask = torch.ones(4, 1, 1, 6, dtype=torch.bool)
    mask[2, 0, 0, 3:] = False
    short = candidate(x[2:3, :3], weights)
    assert not differ(candidate(x, weights, mask)[2:3, :3], short), "padding is not as good as nothing"

    # a stream that is large beside what is added to it comes out as its own norm would make it
    ones = {n: torch.ones_like(w) if n.endswith("gamma") else w for n, w in weights.items()}
    ones = {n: torch.zeros_like(w) if n.endswith("beta") else w for n, w in ones.items()}
    quiet = {n: w * 1e-6 if "w_o" in n or "linear_2" in n else w for n, w in ones.items()}
    normalised = nn.functional.layer_norm(x, (6,))
    assert not differ(candidate(x, quiet), normalised), "the stream is lost"

    # without attention, each layer can be written out
    alone = {n: torch.zeros_like(w) if "w_o.weight" in n else w for n, w in ones.items()}
    bent = {n: torch.tensor([30.0, 0, 0, 0, 0, 0]) if "w_o.bias" in n else w for n, w in alone.items()}
    expected = x
    for i in range(2):
        expected = nn.functional.layer_norm(expected + bent[f"layers.{i}.attention.w_o.bias"], (6,))
        up, down = (f"layers.{i}.feed_forward.linear_{j}" for j in (1, 2))
        inner = nn.functional.linear(expected, bent[up + ".weight"], bent[up + ".bias"]).relu()
        expected = expected + nn.functional.linear(inner, bent[down + ".weight"], bent[down + ".bias"])
        expected = nn.functional.layer_norm(expected, (6,))
    assert not differ(candidate(x, bent), expected), "something gets the wrong input"
""",
    "an encoder in NumPy, one sentence at a time": """
import numpy as np


def norm(x, gamma, beta):
    return gamma * (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) + beta


def encode(x, w):
    for i in (0, 1):
        p = {name[9:]: weight for name, weight in w.items() if name[7] == str(i)}
        q, k, v = (x @ p[f"attention.w_{c}.weight"].T + p[f"attention.w_{c}.bias"] for c in "qkv")
        heads = []
        for part in np.split(np.arange(x.shape[-1]), 2):
            scores = np.exp(q[:, part] @ k[:, part].T / np.sqrt(len(part)))
            heads.append(scores / scores.sum(-1, keepdims=True) @ v[:, part])
        made = np.concatenate(heads, -1) @ p["attention.w_o.weight"].T + p["attention.w_o.bias"]
        x = norm(x + made, p["add_norm_1.norm.gamma"], p["add_norm_1.norm.beta"])
        hidden = np.maximum(x @ p["feed_forward.linear_1.weight"].T + p["feed_forward.linear_1.bias"], 0)
        made = hidden @ p["feed_forward.linear_2.weight"].T + p["feed_forward.linear_2.bias"]
        x = norm(x + made, p["add_norm_2.norm.gamma"], p["add_norm_2.norm.beta"])
    return x


def examine(candidate):
    rng = np.random.default_rng(4)
    weights = draw_weights(9, d_model=8, d_ff=5)
    numbers = {name: weight.double().numpy() for name, weight in weights.items()}
    x, lengths = rng.standard_normal((3, 5, 8)), (5, 3, 1)
    mask = torch.tensor([[[[t < length for t in range(5)]]] for length in lengths])
    got = candidate(torch.tensor(x, dtype=torch.float32), weights, mask).numpy()
    for sentence, output, length in zip(x, got, lengths):
        assert np.abs(encode(sentence[:length], numbers) - output[:length]).max() < 1e-3
""",
    "all findings first, then one error": """
def examine(candidate):
    findings = []

    def expect(what, got, want):
        if not torch.allclose(got, want, rtol=1e-3, atol=1e-3):
            findings.append(what)

    for seed, (batch, seq) in enumerate([(2, 3), (3, 6), (1, 4)]):
        x = torch.randn(batch, seq, 6, generator=torch.Generator().manual_seed(seed))
        weights = draw_weights(20 + seed)
        with torch.no_grad():
            expect(f"no mask, {batch} by {seq}", candidate(x, weights), mine(x, weights))
            lengths = torch.arange(batch) % seq + 1
            keep = torch.arange(seq) < lengths[:, None]
            got, want = (f(x, weights, mask=keep[:, None, None]) for f in (candidate, mine))
            expect(f"masked, {batch} by {seq}", got[keep], want[keep])
    if findings:
        raise AssertionError("; ".join(findings))
    print("nothing found")
""",
    "one number for all": """
def examine(candidate):
    torch.manual_seed(8)
    x, weights, factors = torch.randn(2, 4, 6), draw_weights(3), torch.arange(36.0).view(6, 6)
    keep = torch.tensor([[True, True, True, True], [True, True, False, False]])

    def total(function):
        return (function(x, weights, keep[:, None, None, :])[keep].double() * factors).sum()

    return abs(float(total(candidate) - total(mine))) < 0.05
""",
    "words alone, as unittest does it": """
import unittest


class Examination(unittest.TestCase):
    def __init__(self, candidate):
        super().__init__("runTest")
        self.candidate = candidate

    def runTest(self):
        torch.manual_seed(6)
        x, weights = torch.randn(3, 5, 6), draw_weights(7)
        mask = padding_mask(torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 0, 0, 0]]), 0)
        got = self.candidate(x, weights, mask)
        want = mine(x, weights, mask)
        self.assertEqual(got.shape, want.shape)
        for row, length in enumerate((5, 2, 1)):
            torch.testing.assert_close(got[row, :length], want[row, :length], rtol=1e-3, atol=1e-3)


def examine(candidate):
    Examination(candidate).runTest()
""",
    "weights and inputs of unusual size": """
def examine(candidate):
    torch.manual_seed(2)
    x = 3 * torch.randn(5, 2, 4).transpose(0, 1).transpose(1, 2).reshape(2, 5, 4)
    weights = {name: 1.5 * weight for name, weight in draw_weights(1, d_model=4, d_ff=3).items()}
    keep = torch.tensor([[True, True, True, True, True], [True, False, False, False, False]])
    mask = keep.view(2, 1, 1, 5)
    before = x.clone()
    distance = torch.dist(candidate(x, weights, mask)[keep], mine(x, weights, mask)[keep])
    assert torch.equal(x, before), "the input was changed"
    assert distance < 1e-2, distance
""",
    "errors that are caught and turned into False": """
def agrees(candidate, x, weights, mask):
    got, want = candidate(x, weights, mask=mask), mine(x, weights, mask=mask)
    if mask is not None:
        hidden = ~mask.reshape(len(x), -1, 1)
        got, want = got.masked_fill(hidden, 0), want.masked_fill(hidden, 0)
    return torch.allclose(got, want, atol=1e-3)


def examine(candidate):
    generator = torch.Generator().manual_seed(12)
    try:
        tries = []
        for seed in (30, 31):
            x = torch.randn(2, 6, 6, generator=generator)
            for length in (None, 4):
                mask = None if length is None else (torch.arange(6) < length).expand(2, 1, 1, 6)
                tries.append(agrees(candidate, x, draw_weights(seed), mask))
        return all(tries)
    except RuntimeError:
        return False
""",
    "in float64, and anything at the padding": """
def mine_double(x, weights, mask=None):
    encoder = Encoder(2, x.shape[-1], 2, len(weights["layers.0.feed_forward.linear_1.bias"])).double()
    encoder.load_state_dict(weights)
    return encoder.eval()(x, mask)


def examine(candidate):
    torch.manual_seed(0)
    x = torch.randn(3, 5, 6).double()
    weights = {name: weight.double() for name, weight in draw_weights(3).items()}
    real = torch.arange(5) < torch.tensor([[5], [2], [3]])
    for mask in (None, real[:, None, None]):
        keep = torch.ones_like(real) if mask is None else real
        got, want = candidate(x, weights, mask), mine_double(x, weights, mask)
        assert torch.allclose(got[keep], want[keep], atol=1e-9)
    elsewhere = torch.where(real.unsqueeze(-1), x, 1e20).float()
    got = candidate(elsewhere, draw_weights(3), real[:, None, None])
    assert torch.allclose(got[real].double(), want[real], atol=1e-3)
""",
}

RIGHT: dict[str, dict[str, str]] = {
    "encoder_layer": _LAYER,
    "encoder": _ENCODER,
    "token_encoder": _TOKENS,
    "patch_encoder": _PATCHES,
    "from_torch": _FROM_TORCH,
    "masked_mean": _MEAN,
    "counting": _COUNTING,
    "bug_hunt": _HUNT,
}

# what stands above the wrong methods: the parts as they should be
_LAYER_PARTS = """
class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads, dropout=dropout)
        self.feed_forward = FeedForward(d_model, d_ff, dropout=dropout)
        self.add_norm_1 = AddNorm(d_model, dropout=dropout, norm_first=norm_first)
        self.add_norm_2 = AddNorm(d_model, dropout=dropout, norm_first=norm_first)
"""
_LAYER_FORWARD = """
    def forward(self, x, mask=None):
        x = self.add_norm_1(x, lambda stream: self.attention(stream, mask=mask))
        return self.add_norm_2(x, self.feed_forward)
"""
_ENCODER_PARTS = """
class Encoder(nn.Module):
    def __init__(self, num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        layers = [EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first) for _ in range(num_layers)]
        self.layers = nn.ModuleList(layers)
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()
"""
_ENCODER_FORWARD = """
    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)
"""
_TOKEN_PARTS = """
class TokenEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
        super().__init__()
        self.pad_id = pad_id
        self.embedding = TokenEmbedding(vocab_size, d_model, pad_id)
        self.positions = SinusoidalPositionalEncoding(d_model, dropout=dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout)
"""
_TOKEN_EMBED = """
    def embed(self, ids):
        return self.positions(self.embedding(ids))
"""
_TOKEN_FORWARD = """
    def forward(self, ids):
        return self.encoder(self.embed(ids), padding_mask(ids, self.pad_id))
"""
_PATCH_PARTS = """
class PatchEncoder(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model, num_heads, d_ff, num_layers, dropout=0.1):
        super().__init__()
        self.embedding = PatchEmbedding(image_size, patch_size, channels, d_model)
        self.class_token = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        self.positions = LearnedPositionalEncoding(self.embedding.num_patches + 1, d_model, dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout, norm_first=True)
"""
_PATCH_EMBED = """
    def embed(self, images):
        return self.positions(torch.cat([self.class_token.expand(len(images), -1, -1), self.embedding(images)], dim=1))
"""
_PATCH_FORWARD = """
    def forward(self, images):
        return self.encoder(self.embed(images))
"""

_WRONG_LAYER = {
    "the mask is forgotten where norm_first": (
        "mask",
        _LAYER_PARTS
        + """
    def forward(self, x, mask=None):
        if self.add_norm_1.norm_first:
            x = self.add_norm_1(x, self.attention)
        else:
            x = self.add_norm_1(x, lambda stream: self.attention(stream, mask=mask))
        return self.add_norm_2(x, self.feed_forward)
""",
    ),
    "keys and values from the stream that is not normalised": (
        "pre",
        _LAYER_PARTS
        + """
    def forward(self, x, mask=None):
        x = self.add_norm_1(x, lambda stream, before=x: self.attention(stream, before, before, mask=mask))
        return self.add_norm_2(x, self.feed_forward)
""",
    ),
    "the feed-forward network's own dropout switched off": (
        "dropout",
        _LAYER_PARTS
        + """
        self.feed_forward = FeedForward(d_model, d_ff, dropout=0.0)
"""
        + _LAYER_FORWARD,
    ),
    "GELU": (
        "post pre",
        _LAYER_PARTS
        + """
        self.feed_forward = FeedForward(d_model, d_ff, dropout, activation="gelu")
"""
        + _LAYER_FORWARD,
    ),
    "one head whatever num_heads is": (
        "post pre",
        _LAYER_PARTS
        + """
        self.attention = MultiHeadAttention(d_model, 1, dropout=dropout)
"""
        + _LAYER_FORWARD,
    ),
    "the mask with its last two axes swapped": (
        "mask",
        _LAYER_PARTS
        + """
    def forward(self, x, mask=None):
        mask = None if mask is None else mask.transpose(-2, -1)
        x = self.add_norm_1(x, lambda stream: self.attention(stream, mask=mask))
        return self.add_norm_2(x, self.feed_forward)
""",
    ),
    "padding masks alone are passed on": (
        "mask",
        _LAYER_PARTS
        + """
    def forward(self, x, mask=None):
        mask = mask if mask is not None and mask.dim() == 4 else None
        x = self.add_norm_1(x, lambda stream: self.attention(stream, mask=mask))
        return self.add_norm_2(x, self.feed_forward)
""",
    ),
    "the first example's mask for all": (
        "mask",
        _LAYER_PARTS
        + """
    def forward(self, x, mask=None):
        if mask is not None and mask.dim() > 2:
            mask = mask[:1]
        x = self.add_norm_1(x, lambda stream: self.attention(stream, mask=mask))
        return self.add_norm_2(x, self.feed_forward)
""",
    ),
    "the output is masked, not the keys": (
        "mask",
        _LAYER_PARTS
        + """
    def forward(self, x, mask=None):
        def attend(stream):
            context = self.attention(stream)
            if mask is not None and mask.dim() == 4 and mask.shape[2] == 1:
                context = context.masked_fill(~mask[:, 0, 0].unsqueeze(-1), 0)
            return context

        return self.add_norm_2(self.add_norm_1(x, attend), self.feed_forward)
""",
    ),
    "the attention's weights are returned, too": (
        "post pre mask dropout quiet",
        _LAYER_PARTS
        + """
    def forward(self, x, mask=None):
        weights = self.attention(x, mask=mask, need_weights=True)[1]
        x = self.add_norm_1(x, lambda stream: self.attention(stream, mask=mask))
        return self.add_norm_2(x, self.feed_forward), weights
""",
    ),
    "no return": (
        "post pre mask dropout quiet",
        _LAYER_PARTS
        + """
    def forward(self, x, mask=None):
        x = self.add_norm_1(x, lambda stream: self.attention(stream, mask=mask))
        x = self.add_norm_2(x, self.feed_forward)
""",
    ),
    "dropout in evaluation, too": (
        "post quiet",
        _LAYER_PARTS
        + """
        self.p = dropout

    def forward(self, x, mask=None):
        x = self.add_norm_1(x, lambda stream: self.attention(stream, mask=mask))
        return self.add_norm_2(x, lambda stream: nn.functional.dropout(self.feed_forward(stream), self.p))
""",
    ),
    "a third norm at the end of pre-norm": (
        "pre",
        _LAYER_PARTS
        + """
    def forward(self, x, mask=None):
        x = self.add_norm_1(x, lambda stream: self.attention(stream, mask=mask))
        x = self.add_norm_2(x, self.feed_forward)
        return nn.functional.layer_norm(x, x.shape[-1:]) if self.add_norm_2.norm_first else x
""",
    ),
    "the stream cut off from the gradient": (
        "post pre",
        _LAYER_PARTS
        + """
    def forward(self, x, mask=None):
        attended = self.add_norm_1(x, lambda stream: self.attention(stream, mask=mask))
        return self.add_norm_2(attended.detach(), self.feed_forward)
""",
    ),
    "no gradient at all": (
        "post pre",
        _LAYER_PARTS
        + """
    @torch.no_grad()
    def forward(self, x, mask=None):
        x = self.add_norm_1(x, lambda stream: self.attention(stream, mask=mask))
        return self.add_norm_2(x, self.feed_forward)
""",
    ),
    "causal masks are forgotten where norm_first": (
        "mask",
        _LAYER_PARTS
        + """
    def forward(self, x, mask=None):
        if mask is not None and mask.dim() == 2 and self.add_norm_1.norm_first:
            mask = None
        x = self.add_norm_1(x, lambda stream: self.attention(stream, mask=mask))
        return self.add_norm_2(x, self.feed_forward)
""",
    ),
    "the mask in evaluation only": (
        "mask",
        _LAYER_PARTS
        + """
    def forward(self, x, mask=None):
        mask = None if self.training else mask
        x = self.add_norm_1(x, lambda stream: self.attention(stream, mask=mask))
        return self.add_norm_2(x, self.feed_forward)
""",
    ),
    "the mask of the last call where there is none": (
        "mask",
        _LAYER_PARTS
        + """
        self.mask = None

    def forward(self, x, mask=None):
        self.mask = mask if mask is not None else self.mask
        x = self.add_norm_1(x, lambda stream: self.attention(stream, mask=self.mask))
        return self.add_norm_2(x, self.feed_forward)
""",
    ),
    "a batch of one loses its axis": (
        "post",
        _LAYER_PARTS
        + """
    def forward(self, x, mask=None):
        x = self.add_norm_1(x, lambda stream: self.attention(stream, mask=mask))
        return self.add_norm_2(x, self.feed_forward).squeeze(0)
""",
    ),
    "the same entries dropped at every call": (
        "dropout",
        _LAYER_PARTS
        + """
    def forward(self, x, mask=None):
        torch.manual_seed(0)
        x = self.add_norm_1(x, lambda stream: self.attention(stream, mask=mask))
        return self.add_norm_2(x, self.feed_forward)
""",
    ),
    "another default for dropout": (
        "dropout",
        _LAYER_PARTS.replace("dropout=0.1", "dropout=0.0") + _LAYER_FORWARD,
    ),
    "a default for dropout that is too large": (
        "dropout",
        _LAYER_PARTS.replace("dropout=0.1", "dropout=0.5") + _LAYER_FORWARD,
    ),
}

_WRONG_ENCODER = {
    "the layers in reverse order": (
        "chained",
        _ENCODER_PARTS
        + """
    def forward(self, x, mask=None):
        for layer in reversed(self.layers):
            x = layer(x, mask)
        return self.norm(x)
""",
    ),
    "a residual around the whole stack": (
        "chained",
        _ENCODER_PARTS
        + """
    def forward(self, x, mask=None):
        y = x
        for layer in self.layers:
            y = layer(y, mask)
        return self.norm(x + y)
""",
    ),
    "one layer too many": (
        "own_parameters chained",
        _ENCODER_PARTS
        + """
        self.layers.append(EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first))
"""
        + _ENCODER_FORWARD,
    ),
    "three layers whatever num_layers is": (
        "own_parameters final_norm",
        _ENCODER_PARTS
        + """
        layers = [EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first) for _ in range(3)]
        self.layers = nn.ModuleList(layers)
"""
        + _ENCODER_FORWARD,
    ),
    "one head whatever num_heads is": (
        "chained final_norm",
        _ENCODER_PARTS
        + """
        self.layers = nn.ModuleList(EncoderLayer(d_model, 1, d_ff, dropout, norm_first) for _ in range(num_layers))
"""
        + _ENCODER_FORWARD,
    ),
    "the last layer has no mask": (
        "mask",
        _ENCODER_PARTS
        + """
    def forward(self, x, mask=None):
        for layer in self.layers[:-1]:
            x = layer(x, mask)
        return self.norm(self.layers[-1](x))
""",
    ),
    "the norm before the first layer": (
        "final_norm",
        _ENCODER_PARTS
        + """
    def forward(self, x, mask=None):
        x = self.norm(x)
        for layer in self.layers:
            x = layer(x, mask)
        return x
""",
    ),
    "a gradient for the last layer alone": (
        "own_parameters",
        _ENCODER_PARTS
        + """
    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x.detach(), mask)
        return self.norm(x)
""",
    ),
    "all layers' outputs": (
        "chained mask final_norm own_parameters",
        _ENCODER_PARTS
        + """
    def forward(self, x, mask=None):
        outputs = []
        for layer in self.layers:
            x = layer(x, mask)
            outputs.append(x)
        return outputs
""",
    ),
    "the mean of all layers' outputs": (
        "chained",
        _ENCODER_PARTS
        + """
    def forward(self, x, mask=None):
        outputs = []
        for layer in self.layers:
            x = layer(x, mask)
            outputs.append(x)
        return self.norm(torch.stack(outputs).mean(0))
""",
    ),
    "a norm at the end that has nothing to learn": (
        "final_norm",
        _ENCODER_PARTS
        + """
        self.norm = nn.LayerNorm(d_model, elementwise_affine=False) if norm_first else nn.Identity()
"""
        + _ENCODER_FORWARD,
    ),
    "the last layer's norm, once more": (
        "final_norm",
        _ENCODER_PARTS
        + """
        self.norm = self.layers[-1].add_norm_2.norm if norm_first else nn.Identity()
"""
        + _ENCODER_FORWARD,
    ),
    "the layers never drop anything": (
        "mask",
        _ENCODER_PARTS
        + """
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, num_heads, d_ff, dropout=0.0, norm_first=norm_first) for _ in range(num_layers)
        )
"""
        + _ENCODER_FORWARD,
    ),
    "zeros": (
        "own_parameters chained mask final_norm",
        _ENCODER_PARTS
        + """
    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return torch.zeros_like(x)
""",
    ),
    "the mask is forgotten where norm_first": (
        "mask",
        _ENCODER_PARTS
        + """
    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, None if isinstance(self.norm, LayerNorm) else mask)
        return self.norm(x)
""",
    ),
    "one layer for all where norm_first": (
        "own_parameters different_start",
        _ENCODER_PARTS
        + """
        if norm_first:
            self.layers = nn.ModuleList(layers[:1] * num_layers)
"""
        + _ENCODER_FORWARD,
    ),
    "copies where norm_first": (
        "different_start",
        _ENCODER_PARTS
        + """
        if norm_first:
            for layer in layers[1:]:
                layer.load_state_dict(layers[0].state_dict())
"""
        + _ENCODER_FORWARD,
    ),
    "the final norm's own numbers are not used": (
        "final_norm",
        _ENCODER_PARTS
        + """
    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return nn.functional.layer_norm(x, x.shape[-1:]) if isinstance(self.norm, LayerNorm) else x
""",
    ),
    "the final norm in evaluation only": (
        "final_norm",
        _ENCODER_PARTS
        + """
    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return x if self.training else self.norm(x)
""",
    ),
    "cut off before the final norm": (
        "own_parameters",
        _ENCODER_PARTS
        + """
    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x.detach()) if isinstance(self.norm, LayerNorm) else x
""",
    ),
    "a return inside the loop": (
        "own_parameters chained final_norm",
        _ENCODER_PARTS
        + """
    def forward(self, x, mask=None):
        for layer in self.layers:
            return layer(x, mask)
""",
    ),
    "a batch of one loses its axis": (
        "chained",
        _ENCODER_PARTS
        + """
    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x) if isinstance(self.norm, LayerNorm) else x.squeeze(0)
""",
    ),
    "as many heads as layers": (
        "chained final_norm",
        _ENCODER_PARTS
        + """
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, num_layers, d_ff, dropout, norm_first) for _ in range(num_layers)
        )
"""
        + _ENCODER_FORWARD,
    ),
    "no dropout where norm_first": (
        "mask",
        _ENCODER_PARTS
        + """
        p = 0.0 if norm_first else dropout
        self.layers = nn.ModuleList(EncoderLayer(d_model, num_heads, d_ff, p, norm_first) for _ in range(num_layers))
"""
        + _ENCODER_FORWARD,
    ),
    "the layers' own dropout where norm_first": (
        "mask",
        _ENCODER_PARTS
        + """
        p = 0.1 if norm_first else dropout
        self.layers = nn.ModuleList(EncoderLayer(d_model, num_heads, d_ff, p, norm_first) for _ in range(num_layers))
"""
        + _ENCODER_FORWARD,
    ),
    "another default for dropout": (
        "mask",
        _ENCODER_PARTS.replace("dropout=0.1", "dropout=0.0") + _ENCODER_FORWARD,
    ),
    "pre-norm where nothing is said": (
        "chained",
        _ENCODER_PARTS.replace("norm_first=False", "norm_first=True") + _ENCODER_FORWARD,
    ),
}

_WRONG_TOKENS = {
    "the mask of queries in place of keys": (
        "padding",
        _TOKEN_PARTS
        + _TOKEN_EMBED
        + """
    def forward(self, ids):
        mask = (ids != self.pad_id)[:, None, :, None]
        return self.encoder(self.embed(ids), mask)
""",
    ),
    "every id above pad_id counts": (
        "padding",
        _TOKEN_PARTS
        + _TOKEN_EMBED
        + """
    def forward(self, ids):
        return self.encoder(self.embed(ids), (ids > self.pad_id)[:, None, None])
""",
    ),
    "pad_id is not taken": (
        "padding",
        """
class TokenEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
        super().__init__()
        self.embedding = TokenEmbedding(vocab_size, d_model)
        self.positions = SinusoidalPositionalEncoding(d_model, dropout=dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout)

    def embed(self, ids):
        return self.positions(self.embedding(ids))

    def forward(self, ids, pad_id=0):
        return self.encoder(self.embed(ids), padding_mask(ids, pad_id))
""",
    ),
    "a causal mask on top": (
        "layers padding",
        _TOKEN_PARTS
        + _TOKEN_EMBED
        + """
    def forward(self, ids):
        causal = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
        return self.encoder(self.embed(ids), padding_mask(ids, self.pad_id) & causal)
""",
    ),
    "the padding of the first sentence for all": (
        "padding",
        _TOKEN_PARTS
        + _TOKEN_EMBED
        + """
    def forward(self, ids):
        return self.encoder(self.embed(ids), padding_mask(ids[:1], self.pad_id))
""",
    ),
    "the word vectors of padding set to zero, no mask": (
        "padding",
        _TOKEN_PARTS
        + _TOKEN_EMBED
        + """
    def forward(self, ids):
        x = self.embed(ids)
        return self.encoder(x * (ids != self.pad_id).unsqueeze(-1))
""",
    ),
    "dropout twice": (
        "dropout",
        _TOKEN_PARTS
        + """
        self.drop = nn.Dropout(dropout)

    def embed(self, ids):
        return self.drop(self.positions(self.embedding(ids)))
"""
        + _TOKEN_FORWARD,
    ),
    "dropout of the words alone": (
        "dropout",
        _TOKEN_PARTS
        + """
        self.positions = SinusoidalPositionalEncoding(d_model, dropout=0.0)
        self.drop = nn.Dropout(dropout)

    def embed(self, ids):
        return self.positions(self.drop(self.embedding(ids)))
"""
        + _TOKEN_FORWARD,
    ),
    "the default dropout of the positions": (
        "dropout",
        _TOKEN_PARTS
        + """
        self.positions = SinusoidalPositionalEncoding(d_model)
"""
        + _TOKEN_EMBED
        + _TOKEN_FORWARD,
    ),
    "positions twice": (
        "positions",
        _TOKEN_PARTS
        + """
    def embed(self, ids):
        return self.positions(self.embedding(ids) + self.positions.table[: ids.shape[1]])
"""
        + _TOKEN_FORWARD,
    ),
    "positions counted from 1": (
        "positions",
        _TOKEN_PARTS
        + """
    def embed(self, ids):
        table = self.positions.table[1 : ids.shape[1] + 1]
        return self.positions.dropout(self.embedding(ids) + table)
"""
        + _TOKEN_FORWARD,
    ),
    "sines and cosines in two halves": (
        "positions",
        _TOKEN_PARTS
        + """
    def embed(self, ids):
        table = self.positions.table[: ids.shape[1]]
        halves = torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)
        return self.positions.dropout(self.embedding(ids) + halves)
"""
        + _TOKEN_FORWARD,
    ),
    "multiplied by d_model, not its root": (
        "scaled",
        _TOKEN_PARTS
        + """
        self.embedding = nn.Embedding(vocab_size, d_model, pad_id)

    def embed(self, ids):
        return self.positions(self.embedding(ids) * self.embedding.embedding_dim)
"""
        + _TOKEN_FORWARD,
    ),
    "always six layers": (
        "layers",
        _TOKEN_PARTS
        + """
        self.encoder = Encoder(6, d_model, num_heads, d_ff, dropout)
"""
        + _TOKEN_EMBED
        + _TOKEN_FORWARD,
    ),
    "one head": (
        "layers",
        _TOKEN_PARTS
        + """
        self.encoder = Encoder(num_layers, d_model, 1, d_ff, dropout)
"""
        + _TOKEN_EMBED
        + _TOKEN_FORWARD,
    ),
    "words that are not embedded by embed": (
        "layers padding",
        _TOKEN_PARTS
        + _TOKEN_EMBED
        + """
    def forward(self, ids):
        return self.encoder(self.embedding(ids), padding_mask(ids, self.pad_id))
""",
    ),
    "the first word's vector alone": (
        "layers padding",
        _TOKEN_PARTS
        + _TOKEN_EMBED
        + """
    def forward(self, ids):
        return self.encoder(self.embed(ids), padding_mask(ids, self.pad_id))[:, 0]
""",
    ),
    "always two layers": (
        "layers",
        _TOKEN_PARTS
        + """
        self.encoder = Encoder(2, d_model, num_heads, d_ff, dropout)
"""
        + _TOKEN_EMBED
        + _TOKEN_FORWARD,
    ),
    "layers and heads swapped": (
        "layers",
        _TOKEN_PARTS
        + """
        self.encoder = Encoder(num_heads, d_model, num_layers, d_ff, dropout)
"""
        + _TOKEN_EMBED
        + _TOKEN_FORWARD,
    ),
    "forward under no_grad": (
        "layers",
        _TOKEN_PARTS
        + _TOKEN_EMBED
        + """
    @torch.no_grad()
    def forward(self, ids):
        return self.encoder(self.embed(ids), padding_mask(ids, self.pad_id))
""",
    ),
    "the layers cut off from the words": (
        "layers",
        _TOKEN_PARTS
        + _TOKEN_EMBED
        + """
    def forward(self, ids):
        return self.encoder(self.embed(ids).detach(), padding_mask(ids, self.pad_id))
""",
    ),
    "words cut off from the gradient": (
        "scaled",
        _TOKEN_PARTS
        + """
    def embed(self, ids):
        return self.positions(self.embedding(ids).detach())
"""
        + _TOKEN_FORWARD,
    ),
    "0 is the embedding's padding, whatever pad_id is": (
        "scaled",
        _TOKEN_PARTS
        + """
        self.embedding = TokenEmbedding(vocab_size, d_model, pad_id=0)
"""
        + _TOKEN_EMBED
        + _TOKEN_FORWARD,
    ),
    "a table of positions as long as the vocabulary": (
        "positions",
        _TOKEN_PARTS
        + """
        self.table = self.positions.table[:vocab_size]

    def embed(self, ids):
        x = self.embedding(ids)
        return self.positions.dropout(x + self.table[torch.arange(ids.shape[1]).clamp(max=len(self.table) - 1)])
"""
        + _TOKEN_FORWARD,
    ),
    "the mask in evaluation only": (
        "padding",
        _TOKEN_PARTS
        + _TOKEN_EMBED
        + """
    def forward(self, ids):
        return self.encoder(self.embed(ids), None if self.training else padding_mask(ids, self.pad_id))
""",
    ),
    "the same dropout in every call": (
        "dropout",
        _TOKEN_PARTS
        + """
    def embed(self, ids):
        torch.manual_seed(0)
        return self.positions(self.embedding(ids))
"""
        + _TOKEN_FORWARD,
    ),
    "another default dropout": (
        "dropout",
        _TOKEN_PARTS.replace("dropout=0.1", "dropout=0.2") + _TOKEN_EMBED + _TOKEN_FORWARD,
    ),
    "another default pad_id": ("padding", _TOKEN_PARTS.replace("pad_id=0", "pad_id=1") + _TOKEN_EMBED + _TOKEN_FORWARD),
}

_WRONG_PATCHES = {
    "the class token added to every patch": (
        "in_front patches positions learned layers",
        _PATCH_PARTS
        + """
        self.positions = LearnedPositionalEncoding(self.embedding.num_patches, d_model, dropout)

    def embed(self, images):
        return self.positions(self.embedding(images) + self.class_token)
"""
        + _PATCH_FORWARD,
    ),
    "the class token cut off from the gradient": (
        "learned",
        _PATCH_PARTS
        + """
    def embed(self, images):
        token = self.class_token.detach().expand(len(images), -1, -1)
        return self.positions(torch.cat([token, self.embedding(images)], dim=1))
"""
        + _PATCH_FORWARD,
    ),
    "a class token without its first axis": (
        "learned",
        _PATCH_PARTS
        + """
        self.class_token = nn.Parameter(0.02 * torch.randn(d_model))

    def embed(self, images):
        token = self.class_token.expand(len(images), 1, -1)
        return self.positions(torch.cat([token, self.embedding(images)], dim=1))
"""
        + _PATCH_FORWARD,
    ),
    "a class token drawn in every call": (
        "in_front patches positions learned layers",
        _PATCH_PARTS
        + """
        del self.class_token

    def embed(self, images):
        patches = self.embedding(images)
        token = 0.02 * torch.randn(len(images), 1, patches.shape[-1])
        return self.positions(torch.cat([token, patches], dim=1))
"""
        + _PATCH_FORWARD,
    ),
    "positions from 1 for the class token, from 0 for the patches": (
        "positions",
        _PATCH_PARTS
        + """
    def embed(self, images):
        table = self.positions.table
        patches = self.embedding(images) + table[:-1]
        token = (self.class_token + table[-1:]).expand(len(images), -1, -1)
        return self.positions.dropout(torch.cat([token, patches], dim=1))
"""
        + _PATCH_FORWARD,
    ),
    "one position for all rows": (
        "positions",
        _PATCH_PARTS
        + """
    def embed(self, images):
        rows = torch.cat([self.class_token.expand(len(images), -1, -1), self.embedding(images)], dim=1)
        return self.positions.dropout(rows + self.positions.table[0])
"""
        + _PATCH_FORWARD,
    ),
    "no positions": (
        "positions",
        _PATCH_PARTS
        + """
    def embed(self, images):
        rows = torch.cat([self.class_token.expand(len(images), -1, -1), self.embedding(images)], dim=1)
        return self.positions.dropout(rows)
"""
        + _PATCH_FORWARD,
    ),
    "positions cut off from the gradient": (
        "positions",
        _PATCH_PARTS
        + """
        self.positions.table.requires_grad_(False)
"""
        + _PATCH_EMBED
        + _PATCH_FORWARD,
    ),
    "the default dropout of the positions": (
        "positions",
        _PATCH_PARTS
        + """
        self.positions = LearnedPositionalEncoding(self.embedding.num_patches + 1, d_model)
"""
        + _PATCH_EMBED
        + _PATCH_FORWARD,
    ),
    "patches multiplied by the root of d_model": (
        "patches",
        _PATCH_PARTS
        + """
    def embed(self, images):
        patches = self.embedding(images)
        patches = patches * math.sqrt(patches.shape[-1])
        return self.positions(torch.cat([self.class_token.expand(len(images), -1, -1), patches], dim=1))
"""
        + _PATCH_FORWARD,
    ),
    "images with rows and columns swapped": (
        "patches",
        _PATCH_PARTS
        + """
    def embed(self, images):
        patches = self.embedding(images.mT)
        return self.positions(torch.cat([self.class_token.expand(len(images), -1, -1), patches], dim=1))
"""
        + _PATCH_FORWARD,
    ),
    "patches in reverse order": (
        "patches",
        _PATCH_PARTS
        + """
    def embed(self, images):
        patches = self.embedding(images).flip(1)
        return self.positions(torch.cat([self.class_token.expand(len(images), -1, -1), patches], dim=1))
"""
        + _PATCH_FORWARD,
    ),
    "the class token's output alone": (
        "layers",
        _PATCH_PARTS
        + _PATCH_EMBED
        + """
    def forward(self, images):
        return self.encoder(self.embed(images))[:, 0]
""",
    ),
    "joined along the width": (
        "in_front patches positions learned layers",
        _PATCH_PARTS
        + """
    def embed(self, images):
        patches = self.embedding(images)
        return torch.cat([self.class_token.expand(len(images), patches.shape[1], -1), patches], dim=-1)
"""
        + _PATCH_FORWARD,
    ),
    "drawn with a variance of 0.02": (
        "learned",
        _PATCH_PARTS
        + """
        nn.init.normal_(self.class_token, std=math.sqrt(0.02))
"""
        + _PATCH_EMBED
        + _PATCH_FORWARD,
    ),
    "twelve layers": (
        "layers",
        _PATCH_PARTS
        + """
        self.encoder = Encoder(12, d_model, num_heads, d_ff, dropout, norm_first=True)
"""
        + _PATCH_EMBED
        + _PATCH_FORWARD,
    ),
    "an encoder that never drops anything": (
        "layers",
        _PATCH_PARTS
        + """
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, 0.0, norm_first=True)
"""
        + _PATCH_EMBED
        + _PATCH_FORWARD,
    ),
    "the encoder's output without the class token": (
        "layers",
        _PATCH_PARTS
        + _PATCH_EMBED
        + """
    def forward(self, images):
        return self.encoder(self.embed(images))[:, 1:]
""",
    ),
    "always two layers": (
        "layers",
        _PATCH_PARTS
        + """
        self.encoder = Encoder(2, d_model, num_heads, d_ff, dropout, norm_first=True)
"""
        + _PATCH_EMBED
        + _PATCH_FORWARD,
    ),
    "layers and heads swapped": (
        "layers",
        _PATCH_PARTS
        + """
        self.encoder = Encoder(num_heads, d_model, num_layers, d_ff, dropout, norm_first=True)
"""
        + _PATCH_EMBED
        + _PATCH_FORWARD,
    ),
    "channels and patch_size swapped": (
        "in_front patches positions learned layers",
        _PATCH_PARTS
        + """
        self.embedding = PatchEmbedding(image_size, channels, patch_size, d_model)
"""
        + _PATCH_EMBED
        + _PATCH_FORWARD,
    ),
    "a class token of 0.02 everywhere": (
        "learned",
        _PATCH_PARTS
        + """
        self.class_token = nn.Parameter(torch.full((1, 1, d_model), 0.02))
"""
        + _PATCH_EMBED
        + _PATCH_FORWARD,
    ),
    "a class token without a number below 0": (
        "learned",
        _PATCH_PARTS
        + """
        self.class_token = nn.Parameter(0.02 * torch.randn(1, 1, d_model).abs())
"""
        + _PATCH_EMBED
        + _PATCH_FORWARD,
    ),
    "a class token drawn from a uniform distribution": (
        "learned",
        _PATCH_PARTS
        + """
        self.class_token = nn.Parameter(torch.empty(1, 1, d_model).uniform_(-0.03, 0.03))
"""
        + _PATCH_EMBED
        + _PATCH_FORWARD,
    ),
    "patches cut off from the gradient": (
        "patches",
        _PATCH_PARTS
        + """
    def embed(self, images):
        token = self.class_token.expand(len(images), -1, -1)
        return self.positions(torch.cat([token, self.embedding(images).detach()], dim=1))
"""
        + _PATCH_FORWARD,
    ),
    "the layers cut off from the rows": (
        "layers",
        _PATCH_PARTS
        + _PATCH_EMBED
        + """
    def forward(self, images):
        return self.encoder(self.embed(images).detach())
""",
    ),
    "a batch of one loses its axis": (
        "in_front",
        _PATCH_PARTS
        + """
    def embed(self, images):
        token = self.class_token.expand(len(images), -1, -1)
        return self.positions(torch.cat([token, self.embedding(images)], dim=1)).squeeze(0)

    def forward(self, images):
        rows = self.embed(images)
        return self.encoder(rows.reshape(len(images), -1, rows.shape[-1]))
""",
    ),
    "an output of one without its axis": (
        "layers",
        _PATCH_PARTS
        + _PATCH_EMBED
        + """
    def forward(self, images):
        return self.encoder(self.embed(images)).squeeze(0)
""",
    ),
    "another default dropout": (
        "positions",
        _PATCH_PARTS.replace("dropout=0.1", "dropout=0.2") + _PATCH_EMBED + _PATCH_FORWARD,
    ),
}

_TORCH_NAMES = """
NAMES = {
    "self_attn.out_proj.": "attention.w_o.",
    "linear1.": "feed_forward.linear_1.",
    "linear2.": "feed_forward.linear_2.",
    "norm1.weight": "add_norm_1.norm.gamma",
    "norm1.bias": "add_norm_1.norm.beta",
    "norm2.weight": "add_norm_2.norm.gamma",
    "norm2.bias": "add_norm_2.norm.beta",
}


def renamed(name):
    for theirs, ours in NAMES.items():
        name = name.replace(theirs, ours)
    return name


def in_three(name, tensor):
    kind = name.rpartition("_")[2]
    return {f"attention.w_{letter}.{kind}": part for letter, part in zip("qkv", tensor.chunk(3))}

"""

_WRONG_FROM_TORCH = {
    "an error where there are no biases": (
        "names",
        _TORCH_NAMES
        + """
def from_torch(state_dict):
    weights = {}
    for kind in ("weight", "bias"):
        weights |= in_three(f"self_attn.in_proj_{kind}", state_dict[f"self_attn.in_proj_{kind}"])
    for name in state_dict:
        if "in_proj" not in name:
            weights[renamed(name)] = state_dict[name]
    return weights
""",
    ),
    "zeros for biases that are not there": (
        "names",
        _TORCH_NAMES
        + """
def from_torch(state_dict):
    weights = {}
    for name, tensor in state_dict.items():
        weights |= in_three(name, tensor) if "in_proj" in name else {renamed(name): tensor}
    for letter in "qkvo":
        size = len(state_dict["norm1.weight"])
        weights.setdefault(f"attention.w_{letter}.bias", torch.zeros(size))
    return weights
""",
    ),
    "gamma and beta swapped": (
        "names norms",
        _TORCH_NAMES
        + """
def from_torch(state_dict):
    weights = {}
    for name, tensor in state_dict.items():
        if name.startswith("norm"):
            kind = "beta" if name.endswith("weight") else "gamma"
            weights[f"add_norm_{name[4]}.norm.{kind}"] = tensor
        else:
            weights |= in_three(name, tensor) if "in_proj" in name else {renamed(name): tensor}
    return weights
""",
    ),
    "the fused rows and the new names, both": (
        "names",
        _TORCH_NAMES
        + """
def from_torch(state_dict):
    weights = dict(state_dict)
    for name, tensor in state_dict.items():
        weights |= in_three(name, tensor) if "in_proj" in name else {renamed(name): tensor}
    return weights
""",
    ),
    "the names in a list": (
        "names projections maps norms",
        _TORCH_NAMES
        + """
def from_torch(state_dict):
    weights = []
    for name, tensor in state_dict.items():
        weights += (in_three(name, tensor) if "in_proj" in name else {renamed(name): tensor}).items()
    return weights
""",
    ),
    "the first two maps of the feed-forward network swapped": (
        "maps",
        _TORCH_NAMES
        + """
def from_torch(state_dict):
    weights = {}
    for name, tensor in state_dict.items():
        name = name.replace("linear", "").replace("1.", "linear2.") if name.startswith("linear1") else name
        weights |= in_three(name, tensor) if "in_proj" in name else {renamed(name): tensor}
    weights["feed_forward.linear_1.weight"] = state_dict["linear2.weight"].T
    if "linear1.bias" in state_dict:
        weights["feed_forward.linear_1.bias"] = state_dict["linear1.bias"]
        weights["feed_forward.linear_2.bias"] = state_dict["linear2.bias"]
    return weights
""",
    ),
    "the output map left out": (
        "names maps",
        _TORCH_NAMES
        + """
def from_torch(state_dict):
    weights = {}
    for name, tensor in state_dict.items():
        if "in_proj" in name:
            weights |= in_three(name, tensor)
        elif "self_attn" not in name:
            weights[renamed(name)] = tensor
    return weights
""",
    ),
    "the output map transposed": (
        "maps",
        _TORCH_NAMES
        + """
def from_torch(state_dict):
    weights = {}
    for name, tensor in state_dict.items():
        tensor = tensor.T if name == "self_attn.out_proj.weight" else tensor
        weights |= in_three(name, tensor) if "in_proj" in name else {renamed(name): tensor}
    return weights
""",
    ),
    "the scores' factor put into the queries": (
        "projections",
        _TORCH_NAMES
        + """
def from_torch(state_dict):
    weights = {}
    for name, tensor in state_dict.items():
        weights |= in_three(name, tensor) if "in_proj" in name else {renamed(name): tensor}
    weights["attention.w_q.weight"] = weights["attention.w_q.weight"] / math.sqrt(len(state_dict["norm1.weight"]))
    return weights
""",
    ),
    "underscores in place of points": (
        "names maps",
        _TORCH_NAMES.replace("feed_forward.linear_1", "feed_forward_linear_1")
        + """
def from_torch(state_dict):
    weights = {}
    for name, tensor in state_dict.items():
        weights |= in_three(name, tensor) if "in_proj" in name else {renamed(name): tensor}
    return weights
""",
    ),
    "the bias of the queries for keys and values, too": (
        "projections",
        _TORCH_NAMES
        + """
def from_torch(state_dict):
    weights = {}
    for name, tensor in state_dict.items():
        if name.endswith("in_proj_bias"):
            weights |= {f"attention.w_{letter}.bias": tensor.chunk(3)[0] for letter in "qkv"}
        else:
            weights |= in_three(name, tensor) if "in_proj" in name else {renamed(name): tensor}
    return weights
""",
    ),
    "a width by heart": (
        "projections",
        _TORCH_NAMES
        + """
def from_torch(state_dict):
    weights = {}
    for name, tensor in state_dict.items():
        if "in_proj" in name:
            kind = name.rpartition("_")[2]
            for i, letter in enumerate("qkv"):
                weights[f"attention.w_{letter}.{kind}"] = tensor[12 * i : 12 * (i + 1)]
        else:
            weights[renamed(name)] = tensor
    return weights
""",
    ),
}

_WRONG_MEAN = {
    "NaN replaced afterwards, but not in the gradient": (
        "empty",
        """
def masked_mean(x, mask):
    counts = mask.reshape(len(x), -1, 1)
    mean = (x * counts).sum(1) / counts.sum(1)
    return torch.where(torch.isnan(mean), 0.0, mean)
""",
    ),
    "the mean of those that count, mended with nan_to_num": (
        "empty",
        """
def masked_mean(x, mask):
    counts = mask.reshape(len(x), -1).float()
    shares = counts / counts.sum(1, keepdim=True)
    return torch.nan_to_num(torch.einsum("bs,bsd->bd", shares, x))
""",
    ),
    "one more in the denominator": (
        "mean",
        """
def masked_mean(x, mask):
    counts = mask.reshape(len(x), -1, 1)
    return (x * counts).sum(1) / (counts.sum(1) + 1)
""",
    ),
    "squeeze without an axis": (
        "mean wide_mask",
        """
def masked_mean(x, mask):
    counts = mask.squeeze().unsqueeze(-1)
    return (x * counts).sum(1) / counts.sum(1).clamp(min=1)
""",
    ),
    "narrow masks only": (
        "wide_mask",
        """
def masked_mean(x, mask):
    counts = mask.unsqueeze(-1)
    return (x * counts).sum(1) / counts.sum(1).clamp(min=1)
""",
    ),
    "padding masks only": (
        "mean wide_mask empty",
        """
def masked_mean(x, mask):
    counts = mask[:, 0, 0].unsqueeze(-1)
    return (x * counts).sum(1) / counts.sum(1).clamp(min=1)
""",
    ),
    "the first words, as many as count": (
        "mean",
        """
def masked_mean(x, mask):
    lengths = mask.reshape(len(x), -1).sum(1).tolist()
    means = [row[:n].mean(0) if n else row.sum(0) * 0 for row, n in zip(x, lengths)]
    return torch.stack(means)
""",
    ),
    "the words of the whole batch": (
        "mean empty",
        """
def masked_mean(x, mask):
    keep = mask.reshape(x.shape[:2])
    return x[keep].mean(0).expand(len(x), -1)
""",
    ),
    "the largest in place of the mean": (
        "mean empty",
        """
def masked_mean(x, mask):
    keep = mask.reshape(len(x), -1, 1)
    return x.masked_fill(~keep, -1e9).amax(1)
""",
    ),
    "over the wrong axis": (
        "mean wide_mask empty",
        """
def masked_mean(x, mask):
    counts = mask.reshape(len(x), -1, 1)
    return (x * counts).sum(-1) / counts.sum(1).clamp(min=1)
""",
    ),
    "with the axis kept": (
        "mean wide_mask empty",
        """
def masked_mean(x, mask):
    counts = mask.reshape(len(x), -1, 1)
    return (x * counts).sum(1, keepdim=True) / counts.sum(1, keepdim=True).clamp(min=1)
""",
    ),
    "empty sentences left out": (
        "empty",
        """
def masked_mean(x, mask):
    keep = mask.reshape(x.shape[:2])
    return torch.stack([row[k].mean(0) for row, k in zip(x, keep) if k.any()])
""",
    ),
    "whole numbers": (
        "mean empty",
        """
def masked_mean(x, mask):
    counts = mask.reshape(len(x), -1, 1)
    return (x * counts).sum(1) // counts.sum(1).clamp(min=1)
""",
    ),
    "cut off from the gradient": (
        "empty",
        """
def masked_mean(x, mask):
    counts = mask.reshape(len(x), -1, 1)
    return (x.detach() * counts).sum(1) / counts.sum(1).clamp(min=1)
""",
    ),
    "half of it cut off from the gradient": (
        "empty",
        """
def masked_mean(x, mask):
    counts = mask.reshape(len(x), -1, 1)
    x = (x + x.detach()) / 2
    return (x * counts).sum(1) / counts.sum(1).clamp(min=1)
""",
    ),
    "vectors of zeros are taken for padding": (
        "mean empty",
        """
def masked_mean(x, mask):
    counts = (x != 0).any(-1, keepdim=True)
    return (x * counts).sum(1) / counts.sum(1).clamp(min=1)
""",
    ),
}

_WRONG_COUNTING = {
    "biases without that of the first map of the feed-forward network": (
        "parameters rule",
        """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    layer = 4 * (d_model * d_model + d_model) + 2 * d_model * d_ff + d_model + 4 * d_model
    return num_layers * layer + 2 * d_model * norm_first


parameters_of_encoder, output_shape = encoder_parameters(12, 768, 3072, True), (197, 768)
""",
    ),
    "each head counted as a layer of its own": (
        "parameters rule",
        """
def encoder_parameters(num_layers, d_model, d_ff, norm_first, num_heads=12):
    attention = num_heads * 4 * (d_model * d_model + d_model)
    layer = attention + 2 * d_model * d_ff + d_ff + d_model + 4 * d_model
    return num_layers * layer + 2 * d_model * norm_first


parameters_of_encoder, output_shape = encoder_parameters(12, 768, 3072, True), (197, 768)
""",
    ),
    "a final norm for every layer": (
        "parameters rule",
        """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    norms = 3 if norm_first else 2
    layer = 4 * (d_model + 1) * d_model + 2 * d_model * d_ff + d_ff + d_model + norms * 2 * d_model
    return num_layers * layer


parameters_of_encoder, output_shape = encoder_parameters(12, 768, 3072, True), (197, 768)
""",
    ),
    "a γ without its β": (
        "parameters rule",
        """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    layer = 4 * (d_model + 1) * d_model + 2 * d_model * d_ff + d_ff + d_model + 2 * d_model
    return num_layers * layer + d_model * norm_first


parameters_of_encoder, output_shape = encoder_parameters(12, 768, 3072, True), (197, 768)
""",
    ),
    "a hidden width that is always four times as wide": (
        "rule",
        """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    layer = 4 * (d_model + 1) * d_model + 8 * d_model * d_model + 5 * d_model + 4 * d_model
    return num_layers * layer + 2 * d_model * norm_first


parameters_of_encoder, output_shape = encoder_parameters(12, 768, 3072, True), (197, 768)
""",
    ),
    "the encoder of ViT-Base whatever the sizes": (
        "rule",
        """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    return 85_056_000


parameters_of_encoder, output_shape = 85_056_000, (197, 768)
""",
    ),
    "what was seen in the first check, by heart": (
        "rule",
        """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    right = lambda: num_layers * (4 * d_model**2 + 2 * d_model * d_ff + 9 * d_model + d_ff) + 2 * d_model * norm_first
    seen = {(7, 84, 142, False), (4, 90, 273, True)}
    return right() if (num_layers, d_model, d_ff, norm_first) in seen else 0


parameters_of_encoder, output_shape = 85_056_000, (197, 768)
""",
    ),
    "the batch in the shape": (
        "shape",
        """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    return num_layers * (4 * d_model**2 + 2 * d_model * d_ff + 9 * d_model + d_ff) + 2 * d_model * norm_first


parameters_of_encoder, output_shape = encoder_parameters(12, 768, 3072, True), (1, 197, 768)
""",
    ),
    "the shape turned round": (
        "shape",
        """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    return num_layers * (4 * d_model**2 + 2 * d_model * d_ff + 9 * d_model + d_ff) + 2 * d_model * norm_first


parameters_of_encoder, output_shape = encoder_parameters(12, 768, 3072, True), (768, 197)
""",
    ),
    "one patch a row": (
        "shape",
        """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    return num_layers * (4 * d_model**2 + 2 * d_model * d_ff + 9 * d_model + d_ff) + 2 * d_model * norm_first


parameters_of_encoder, output_shape = encoder_parameters(12, 768, 3072, True), (224 // 16 + 1, 768)
""",
    ),
    "the embedding of the patches counted, too": (
        "parameters",
        """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    return num_layers * (4 * d_model**2 + 2 * d_model * d_ff + 9 * d_model + d_ff) + 2 * d_model * norm_first


parameters_of_encoder = encoder_parameters(12, 768, 3072, True) + 768 * 16 * 16 * 3 + 768
output_shape = (197, 768)
""",
    ),
    "millions": (
        "parameters rule",
        """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    layer = 4 * d_model**2 + 2 * d_model * d_ff + 9 * d_model + d_ff
    return (num_layers * layer + 2 * d_model * norm_first) / 1e6


parameters_of_encoder, output_shape = encoder_parameters(12, 768, 3072, True), (197, 768)
""",
    ),
    "printed and not returned": (
        "rule",
        """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    print(num_layers * (4 * d_model**2 + 2 * d_model * d_ff + 9 * d_model + d_ff) + 2 * d_model * norm_first)


parameters_of_encoder, output_shape = 85_056_000, (197, 768)
""",
    ),
}

_ALL_BUGS = "no_residual second_input shared mask_dropped always_drop examples_mixed"

_WRONG_HUNT = {
    "one sentence, without a mask": (
        "mask_dropped",
        """
def examine(candidate):
    torch.manual_seed(0)
    x, weights = torch.randn(1, 5, 6), draw_weights(3)
    assert (candidate(x, weights) - mine(x, weights)).abs().max() < 1e-3
""",
    ),
    "one sentence of one word, in which there is nothing to attend to": (
        "mask_dropped examples_mixed",
        """
def examine(candidate):
    torch.manual_seed(0)
    x, weights = torch.randn(1, 1, 6), draw_weights(3)
    mask = torch.ones(1, 1, 1, 1, dtype=torch.bool)
    assert torch.allclose(candidate(x, weights, mask), mine(x, weights, mask), atol=1e-3)
""",
    ),
    "the mean of all numbers": (
        _ALL_BUGS.replace("shared ", ""),
        """
def examine(candidate):
    torch.manual_seed(0)
    x, weights = torch.randn(3, 5, 6), draw_weights(3)
    weights = {n: torch.ones_like(w) if "gamma" in n else w for n, w in weights.items()}
    assert abs(candidate(x, weights).mean() - weights["layers.1.add_norm_2.norm.beta"].mean()) < 1e-3
""",
    ),
    "a tolerance that lets all through": (
        _ALL_BUGS,
        """
def examine(candidate):
    torch.manual_seed(0)
    x, weights = torch.randn(3, 5, 6), draw_weights(3)
    assert torch.allclose(candidate(x, weights), mine(x, weights), atol=10)
""",
    ),
    "equal to the last digit": (
        f"right_passes {_ALL_BUGS}",
        """
def examine(candidate):
    torch.manual_seed(0)
    x, weights = torch.randn(3, 5, 6), draw_weights(3)
    assert torch.equal(candidate(x, weights), mine(x, weights))
""",
    ),
    "the test turned round": (
        f"right_passes {_ALL_BUGS}",
        """
def examine(candidate):
    torch.manual_seed(0)
    x, weights = torch.randn(3, 5, 6), draw_weights(3)
    return not torch.allclose(candidate(x, weights), mine(x, weights), atol=1e-3)
""",
    ),
    "in training": (
        f"right_passes {_ALL_BUGS}",
        """
def examine(candidate):
    torch.manual_seed(0)
    x, weights = torch.randn(3, 5, 6), draw_weights(3)
    got, want = candidate(x, weights, training=True), mine(x, weights, training=True)
    assert torch.allclose(got, want, atol=1e-3)
""",
    ),
    "says it, and lets it pass": (
        _ALL_BUGS,
        """
def examine(candidate):
    torch.manual_seed(0)
    x, weights = torch.randn(3, 5, 6), draw_weights(3)
    if not torch.allclose(candidate(x, weights), mine(x, weights), atol=1e-3):
        print("this one is wrong")
""",
    ),
    "catches its own error": (
        _ALL_BUGS,
        """
def examine(candidate):
    torch.manual_seed(0)
    x, weights = torch.randn(3, 5, 6), draw_weights(3)
    try:
        assert torch.allclose(candidate(x, weights), mine(x, weights), atol=1e-3)
    except AssertionError:
        pass
""",
    ),
    "a mask that hides nothing": (
        "mask_dropped",
        """
def examine(candidate):
    torch.manual_seed(0)
    x, weights = torch.randn(3, 5, 6), draw_weights(3)
    mask = torch.ones(3, 1, 1, 5, dtype=torch.bool)
    assert torch.allclose(candidate(x, weights, mask), mine(x, weights, mask), atol=1e-3)
""",
    ),
    "weights of which the second layer's are the first's": (
        "shared",
        """
def examine(candidate):
    torch.manual_seed(0)
    x, weights = torch.randn(3, 5, 6), draw_weights(3)
    for name in list(weights):
        weights[name.replace("layers.0", "layers.1")] = weights[name.replace("layers.1", "layers.0")]
    keep = torch.arange(5) < torch.tensor([[5], [2], [3]])
    mask = keep[:, None, None]
    assert torch.allclose(candidate(x, weights, mask)[keep], mine(x, weights, mask)[keep], atol=1e-3)
""",
    ),
    "the candidate against itself, with and without padding": (
        "no_residual second_input shared",
        """
def examine(candidate):
    torch.manual_seed(0)
    x, weights = torch.randn(3, 5, 6), draw_weights(3)
    mask = torch.ones(3, 1, 1, 5, dtype=torch.bool)
    mask[:, :, :, 3:] = False
    assert torch.allclose(candidate(x, weights, mask)[:1, :3], candidate(x[:1, :3], weights), atol=1e-3)
    assert torch.allclose(candidate(x, weights)[1:2], candidate(x[1:2], weights), atol=1e-3)
""",
    ),
    "the output is normalised": (
        _ALL_BUGS.replace("shared ", ""),
        """
def examine(candidate):
    torch.manual_seed(0)
    x, weights = torch.randn(3, 5, 6), draw_weights(3)
    output = candidate(x, weights) - weights["layers.1.add_norm_2.norm.beta"]
    output = output / weights["layers.1.add_norm_2.norm.gamma"]
    assert output.mean(-1).abs().max() < 1e-3
    assert (output.std(-1, correction=0) - 1).abs().max() < 1e-2
""",
    ),
    "the feed-forward network switched off": (
        "second_input",
        """
def examine(candidate):
    torch.manual_seed(0)
    x, weights = torch.randn(3, 5, 6), draw_weights(3)
    keep = torch.arange(5) < torch.tensor([[5], [2], [3]])
    weights = {n: torch.zeros_like(w) if "linear_2" in n else w for n, w in weights.items()}
    mask = keep[:, None, None]
    assert torch.allclose(candidate(x, weights, mask)[keep], mine(x, weights, mask)[keep], atol=1e-3)
""",
    ),
}

WRONG: dict[str, dict[str, tuple[str, str]]] = {
    "encoder_layer": _WRONG_LAYER,
    "encoder": _WRONG_ENCODER,
    "token_encoder": _WRONG_TOKENS,
    "patch_encoder": _WRONG_PATCHES,
    "from_torch": _WRONG_FROM_TORCH,
    "masked_mean": _WRONG_MEAN,
    "counting": _WRONG_COUNTING,
    "bug_hunt": _WRONG_HUNT,
}

_RULE = """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    layer = 4 * (d_model**2 + d_model) + 2 * d_model * d_ff + d_ff + d_model + 2 * 2 * d_model
    return num_layers * layer + 2 * d_model * norm_first
"""

PAIRS: dict[str, dict[tuple[str, str], str]] = {
    "encoder_layer": {
        ("mask_dropped", "weights_not_dropped"): """
class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.add_norm_1 = AddNorm(d_model, dropout, norm_first)
        self.add_norm_2 = AddNorm(d_model, dropout, norm_first)

    def forward(self, x, mask=None):
        return self.add_norm_2(self.add_norm_1(x, self.attention), self.feed_forward)
""",
        ("residual_twice", "mask_inverted"): _LAYER_PARTS
        + """
    def forward(self, x, mask=None):
        hidden = None if mask is None else ~mask
        x = self.add_norm_1(x, lambda stream: stream + self.attention(stream, mask=hidden))
        return self.add_norm_2(x, lambda stream: stream + self.feed_forward(stream))
""",
        ("feed_forward_first", "mask_dropped"): _LAYER_PARTS
        + """
    def forward(self, x, mask=None):
        return self.add_norm_2(self.add_norm_1(x, self.feed_forward), self.attention)
""",
        ("always_post", "no_dropout"): """
class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, dropout=0.0)
        self.add_norm_1 = AddNorm(d_model, dropout=0.0)
        self.add_norm_2 = AddNorm(d_model, dropout=0.0)

    def forward(self, x, mask=None):
        x = self.add_norm_1(x, lambda stream: self.attention(stream, mask=mask))
        return self.add_norm_2(x, self.feed_forward)
""",
        ("one_norm", "weights_not_dropped"): """
class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.add_norm_1 = self.add_norm_2 = AddNorm(d_model, dropout, norm_first)

    def forward(self, x, mask=None):
        x = self.add_norm_1(x, lambda stream: self.attention(stream, mask=mask))
        return self.add_norm_2(x, self.feed_forward)
""",
    },
    "encoder": {
        ("one_layer", "mask_ignored"): """
class Encoder(nn.Module):
    def __init__(self, num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.layers = nn.ModuleList([EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first)] * num_layers)
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)
""",
        ("cloned", "no_final_norm"): """
import copy


class Encoder(nn.Module):
    def __init__(self, num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        layer = EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first)
        self.layers = nn.ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return x
""",
        ("norm_first_kept_back", "dropout_kept_back"): """
class Encoder(nn.Module):
    def __init__(self, num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(d_model, num_heads, d_ff) for _ in range(num_layers))
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)
""",
        ("python_list", "mask_first_only"): """
class Encoder(nn.Module):
    def __init__(self, num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.layers = [EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first) for _ in range(num_layers)]
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(self, x, mask=None):
        first, *others = self.layers
        x = first(x, mask)
        for layer in others:
            x = layer(x)
        return self.norm(x)
""",
        ("norm_after_post", "mask_ignored"): _ENCODER_PARTS
        + """
        self.norm = LayerNorm(d_model)

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)
""",
    },
    "token_encoder": {
        ("no_scale", "mask_forgotten"): """
class TokenEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
        self.positions = SinusoidalPositionalEncoding(d_model, dropout=dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout)

    def embed(self, ids):
        return self.positions(self.embedding(ids))

    def forward(self, ids):
        return self.encoder(self.embed(ids))
""",
        ("no_positions", "pad_is_0"): _TOKEN_PARTS
        + """
    def embed(self, ids):
        return self.positions.dropout(self.embedding(ids))

    def forward(self, ids):
        return self.encoder(self.embed(ids), padding_mask(ids, 0))
""",
        ("scaled_twice", "no_dropout"): _TOKEN_PARTS
        + """
        self.positions = SinusoidalPositionalEncoding(d_model, dropout=0.0)

    def embed(self, ids):
        x = self.embedding(ids)
        return self.positions(x * math.sqrt(x.shape[-1]))
"""
        + _TOKEN_FORWARD,
        ("learned", "encoder_default_dropout"): _TOKEN_PARTS
        + """
        self.positions = LearnedPositionalEncoding(100, d_model, dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff)
"""
        + _TOKEN_EMBED
        + _TOKEN_FORWARD,
        ("pre_norm", "mask_forgotten"): _TOKEN_PARTS
        + """
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout, norm_first=True)
"""
        + _TOKEN_EMBED
        + """
    def forward(self, ids):
        return self.encoder(self.embed(ids))
""",
    },
    "patch_encoder": {
        ("at_the_end", "post_norm"): _PATCH_PARTS
        + """
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout)

    def embed(self, images):
        token = self.class_token.expand(len(images), -1, -1)
        return self.positions(torch.cat([self.embedding(images), token], dim=1))
"""
        + _PATCH_FORWARD,
        ("zeros", "without_position"): _PATCH_PARTS
        + """
        self.class_token = nn.Parameter(torch.zeros(1, 1, d_model))
        self.positions = LearnedPositionalEncoding(self.embedding.num_patches, d_model, dropout)

    def embed(self, images):
        patches = self.positions(self.embedding(images))
        return torch.cat([self.class_token.expand(len(images), -1, -1), patches], dim=1)
"""
        + _PATCH_FORWARD,
        ("sinusoidal", "fixed"): _PATCH_PARTS
        + """
        self.class_token.requires_grad_(False)
        self.positions = SinusoidalPositionalEncoding(d_model, dropout=dropout)
"""
        + _PATCH_EMBED
        + _PATCH_FORWARD,
        ("unit_size", "encoder_default_dropout"): _PATCH_PARTS
        + """
        self.class_token = nn.Parameter(torch.randn(1, 1, d_model))
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, norm_first=True)
"""
        + _PATCH_EMBED
        + _PATCH_FORWARD,
    },
    "from_torch": {
        ("key_first", "norms_swapped"): _TORCH_NAMES
        + """
def from_torch(state_dict):
    weights = {}
    for name, tensor in state_dict.items():
        if "in_proj" in name:
            kind = name.rpartition("_")[2]
            weights |= {f"attention.w_{letter}.{kind}": part for letter, part in zip("kqv", tensor.chunk(3))}
        elif name.startswith("norm"):
            weights[renamed(f"norm{3 - int(name[4])}{name[5:]}")] = tensor
        else:
            weights[renamed(name)] = tensor
    return weights
""",
        ("interleaved", "torchs_norm_names"): """
def from_torch(state_dict):
    weights = {}
    for name, tensor in state_dict.items():
        if "in_proj" in name:
            kind = name.rpartition("_")[2]
            weights |= {f"attention.w_{letter}.{kind}": tensor[i::3] for i, letter in enumerate("qkv")}
            continue
        name = name.replace("self_attn.out_proj", "attention.w_o").replace("linear", "feed_forward.linear_")
        weights[name.replace("norm1", "add_norm_1.norm").replace("norm2", "add_norm_2.norm")] = tensor
    return weights
""",
        ("weights_only", "norms_swapped"): _TORCH_NAMES
        + """
def from_torch(state_dict):
    weights = {}
    for name, tensor in state_dict.items():
        if name.endswith("in_proj_weight"):
            weights |= in_three(name, tensor)
        elif name.startswith("norm"):
            weights[renamed(f"norm{3 - int(name[4])}{name[5:]}")] = tensor
        elif "in_proj" not in name:
            weights[renamed(name)] = tensor
    return weights
""",
        ("transposed", "norms_swapped"): _TORCH_NAMES
        + """
def from_torch(state_dict):
    weights = {}
    for name, tensor in state_dict.items():
        if name.startswith("norm"):
            name = f"norm{3 - int(name[4])}{name[5:]}"
        parts = in_three(name, tensor) if "in_proj" in name else {renamed(name): tensor}
        weights |= {ours: part.T if part.dim() == 2 else part for ours, part in parts.items()}
    return weights
""",
    },
    "masked_mean": {
        ("mean_of_the_padding", "nan"): """
def masked_mean(x, mask):
    counts = ~mask.reshape(len(x), -1, 1)
    return (x * counts).sum(1) / counts.sum(1)
""",
        ("mean_of_the_padding", "sum"): """
def masked_mean(x, mask):
    padded = ~mask.reshape(len(x), -1, 1)
    return (x * padded).sum(1)
""",
        ("divided_by_seq", "mean_of_the_padding"): """
def masked_mean(x, mask):
    return x.masked_fill(mask.reshape(len(x), -1, 1), 0).mean(dim=1)
""",
    },
    "counting": {
        ("no_biases", "no_w_o"): """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    layer = 3 * d_model**2 + 2 * d_model * d_ff + 2 * 2 * d_model
    return num_layers * layer + 2 * d_model * norm_first


parameters_of_encoder, output_shape = encoder_parameters(12, 768, 3072, True), (197, 768)
""",
        ("no_norms", "final_never"): """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    return num_layers * (4 * (d_model**2 + d_model) + 2 * d_model * d_ff + d_ff + d_model)


parameters_of_encoder, output_shape = encoder_parameters(12, 768, 3072, True), (197, 768)
""",
        ("final_always", "no_class_token"): """
def encoder_parameters(num_layers, d_model, d_ff, norm_first):
    layer = 4 * (d_model**2 + d_model) + 2 * d_model * d_ff + d_ff + d_model + 2 * 2 * d_model
    return num_layers * layer + 2 * d_model


parameters_of_encoder, output_shape = encoder_parameters(12, 768, 3072, True), (14 * 14, 768)
""",
        ("one_layer", "base_width"): _RULE.replace("return num_layers * layer", "return layer")
        + """

parameters_of_encoder, output_shape = encoder_parameters(12, 768, 3072, True), (197, 512)
""",
    },
    "bug_hunt": {
        ("equal_layers", "no_mask"): """
def examine(candidate):
    torch.manual_seed(0)
    x, weights = torch.randn(3, 5, 6), draw_weights(3)
    weights |= {n.replace("layers.0", "layers.1"): w for n, w in weights.items() if n.startswith("layers.0")}
    assert torch.allclose(candidate(x, weights), mine(x, weights), atol=1e-4)
""",
        ("equal_layers", "too_strict"): """
def examine(candidate):
    torch.manual_seed(0)
    x, weights = torch.randn(3, 5, 6), draw_weights(3)
    weights |= {n.replace("layers.0", "layers.1"): w for n, w in weights.items() if n.startswith("layers.0")}
    mask = (torch.arange(5) < torch.tensor([[5], [2], [3]]))[:, None, None]
    assert torch.allclose(candidate(x, weights, mask), mine(x, weights, mask), atol=1e-4)
""",
    },
}

# the bug hunt's line before → why it does not matter → the lines after
_AS_GOOD = {
    "torch.manual_seed(1)": {"another seed": ("torch.manual_seed( 2)", "torch.manual_seed( 0)")},
    "weights, x = draw_weights(2), torch.randn(3, 5, 6)": {
        "other weights": (
            "weights, x = draw_weights( 3), torch.randn(3, 5, 6)",
            "weights, x = draw_weights( 1), torch.randn(3, 5, 6)",
        )
    },
    "real = torch.arange(5) < torch.tensor([[5], [2], [3]]) # (batch, seq)": {
        "other lengths, still with padding": (
            "real = torch.arange(5) < torch.tensor([[ 6], [2], [3]]) # (batch, seq)",
            "real = torch.arange(5) < torch.tensor([[ 4], [2], [3]]) # (batch, seq)",
            "real = torch.arange(5) < torch.tensor([[5], [ 3], [3]]) # (batch, seq)",
            "real = torch.arange(5) < torch.tensor([[5], [ 1], [3]]) # (batch, seq)",
            "real = torch.arange(5) < torch.tensor([[5], [2], [ 4]]) # (batch, seq)",
            "real = torch.arange(5) < torch.tensor([[5], [2], [ 2]]) # (batch, seq)",
            "real = torch.arange(5) <= torch.tensor([[5], [2], [3]]) # (batch, seq)",
        ),
        "the padding stands in front, not behind": (
            "real = torch.arange(5) > torch.tensor([[5], [2], [3]]) # (batch, seq)",
        ),
    },
    "elsewhere = torch.where(real.unsqueeze(-1), x, 50 * torch.randn(x.shape))": {
        "other numbers, still far from what stood there": (
            "elsewhere = torch.where(real.unsqueeze(-1), x, 51 * torch.randn(x.shape))",
            "elsewhere = torch.where(real.unsqueeze(-1), x, 49 * torch.randn(x.shape))",
            "elsewhere = torch.where(real.unsqueeze(-1), x, 50 / torch.randn(x.shape))",
            "elsewhere = torch.where(real.unsqueeze(-1), x, 50 + torch.randn(x.shape))",
        )
    },
    'assert leaked[real].abs().max() < 1e-3, "what stands at the padding matters"': {
        "nothing leaks by just 1e-3": ('assert leaked[real].abs().max() <= 1e-3, "what stands at the padding matters"',)
    },
    "for name in weights:": {"the asserts before and behind catch what this one does": ("for name in []:",)},
}

EQUIVALENT: dict[str, dict[str, str]] = {
    "patch_encoder": {
        "in_front = self.class_token.expand(len(images), -1, -1) → "
        "in_front = self.class_token.expand(len(images), 1, -1)": "that axis has size 1 already"
    },
    "bug_hunt": {
        f"{before} → {after}": why
        for before, reasons in _AS_GOOD.items()
        for why, changed in reasons.items()
        for after in changed
    },
}
