"""Known answers to the exercises of chapter 3, attention."""

RIGHT: dict[str, dict[str, str]] = {
    "softmax": {
        "maximum subtracted": """
def softmax(scores, dim=-1):
    e = (scores - scores.max(dim=dim, keepdim=True)[0]).exp()
    return e / e.sum(dim=dim, keepdim=True)
""",
        "logarithms": """
def softmax(scores, dim=-1):
    top = scores.amax(dim, keepdim=True)
    return torch.exp(scores - top - (scores - top).exp().sum(dim, keepdim=True).log())
""",
        "NumPy": """
import numpy as np

def softmax(scores, dim=-1):
    x = scores.numpy()
    e = np.exp(x - x.max(axis=dim, keepdims=True))
    return e / e.sum(axis=dim, keepdims=True)
""",
        "float64 and moved axes": """
def softmax(scores, dim=-1):
    x = scores.double().movedim(dim, 0)
    e = torch.exp(x - x.max(0).values)
    return (e / e.sum(0)).movedim(0, dim)
""",
        "loops over rows of Python numbers": """
def softmax(scores, dim=-1):
    rows = []
    x = scores.transpose(dim, -1)
    for row in x.reshape(-1, x.shape[-1]):
        e = [math.exp(s - max(row.tolist())) for s in row.tolist()]
        rows.append([each / sum(e) for each in e])
    return torch.tensor(rows).reshape(x.shape).transpose(dim, -1)
""",
        "one pass with a running maximum": """
def softmax(scores, dim=-1):
    parts = scores.unbind(dim)
    top = torch.full_like(parts[0], -1e30)
    total = torch.zeros_like(parts[0])
    for part in parts:
        new = torch.maximum(top, part)
        total = total * (top - new).exp() + (part - new).exp()
        top = new
    return torch.stack([(part - top).exp() / total for part in parts], dim)
""",
        "each score against all others": """
def softmax(scores, dim=-1):
    x = scores.movedim(dim, -1)
    others = x.unsqueeze(-2) - x.unsqueeze(-1)  # (…, i, j): how far j is above i
    shares = torch.where(others.isnan(), 0.0, others.exp())
    return (1 / shares.sum(-1)).nan_to_num(0.0).movedim(-1, dim)
""",
        "logaddexp, folded over the axis": """
from functools import reduce

def softmax(scores, dim=-1):
    total = reduce(torch.logaddexp, scores.unbind(dim))
    return (scores - total.unsqueeze(dim)).exp()
""",
        "recursion over the axes, powers of two": """
def softmax(scores, dim=-1):
    if scores.dim() == 1:
        powers = torch.exp2((scores - max(scores)) * math.log2(math.e))
        return powers / powers.sum()
    x = scores.movedim(dim, -1)
    return torch.stack([softmax(part) for part in x]).movedim(-1, dim)
""",
        "in place on an own copy": """
def softmax(scores, dim=-1):
    own = scores.clone()
    own -= scores.sort(dim, descending=True).values.narrow(dim, 0, 1)
    own.exp_()
    own.div_(own.sum(dim, keepdim=True))
    return own
""",
        "vmap over the rows": """
def softmax(scores, dim=-1):
    def of_a_row(row):
        e = torch.exp(row - row.max())
        return e / e.sum()

    x = scores.movedim(dim, -1)
    return torch.vmap(of_a_row)(x.reshape(-1, x.shape[-1])).view(x.shape).movedim(-1, dim)
""",
        "a decorator that moves the axis": """
def along_the_last_axis(function):
    def moved(scores, dim=-1):
        return function(scores.transpose(dim, -1)).transpose(dim, -1)
    return moved

@along_the_last_axis
def softmax(scores):
    e = torch.exp(scores - scores.max(-1, keepdim=True).values)
    return torch.einsum("...k,...->...k", e, 1 / e.sum(-1))
""",
        "a module, with prints and a warning": """
import warnings

class Softmax(nn.Module):
    def forward(self, scores, dim=-1):
        print("scores", tuple(scores.shape), "axis", dim)
        warnings.warn("this writes to stderr")
        shifted = scores.sub(scores.amax(dim=dim, keepdim=True))
        return shifted.exp().div(shifted.exp().sum(dim=dim, keepdim=True))

softmax = Softmax()
""",
        "an autograd function": """
class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(context, scores, dim):
        e = (scores - torch.amax(scores, dim, True)).exp()
        weights = e / torch.sum(e, dim, True)
        context.save_for_backward(weights)
        context.dim = dim
        return weights

    @staticmethod
    def backward(context, upstream):
        (weights,) = context.saved_tensors
        return weights * (upstream - (weights * upstream).sum(context.dim, True)), None

def softmax(scores, dim=-1):
    return Softmax.apply(scores, dim)
""",
        "golfed": """
softmax = lambda s, dim=-1: (e := (s - s.amax(dim, True)).exp()) / e.sum(dim, True)
""",
    },
    "scaled_dot_product_attention": {
        "-inf only where a key is left": """
def scaled_dot_product_attention(query, key, value, mask=None):
    s = query @ key.mT / query.size(-1) ** 0.5
    if mask is None:
        return s.softmax(-1) @ value, s.softmax(-1)
    some = mask.any(-1, keepdim=True)
    w = s.masked_fill(~(mask | ~some), float("-inf")).softmax(-1) * some
    return w @ value, w
""",
        "einsum, exponentials and where": """
def scaled_dot_product_attention(query, key, value, mask=None):
    s = torch.einsum("...id,...jd->...ij", query, key) / math.sqrt(key.shape[-1])
    if mask is not None:
        s = torch.where(mask, s, -1e9)
    e = torch.exp(s - s.amax(-1, keepdim=True))
    if mask is not None:
        e = torch.where(mask, e, 0.0)
    w = e / e.sum(-1, keepdim=True).clamp(min=1e-20)
    return torch.einsum("...ij,...jv->...iv", w, value), w
""",
        "float64, a scaled query, results as a list": """
def scaled_dot_product_attention(query, key, value, mask=None):
    q, k, v = (t.double() for t in (query, key, value))
    s = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
    if mask is None:
        mask = torch.ones(s.shape, dtype=torch.bool)
    w = torch.softmax(torch.where(mask, s, -1e30), dim=-1) * mask
    return [w @ v, w]
""",
        "-inf, NaN replaced where masked_fill has stopped the gradient": """
def scaled_dot_product_attention(query, key, value, mask=None):
    s = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        s = s.masked_fill(mask == False, float("-inf"))
    w = F.softmax(s, dim=-1).nan_to_num(0.0)
    return torch.matmul(w, value), w
""",
        "a loop over the queries": """
def scaled_dot_product_attention(query, key, value, mask=None):
    rows, d_k, seq_k = [], query.shape[-1], key.shape[-2]
    may = None if mask is None else mask.expand(*query.shape[:-1], seq_k)
    for i in range(query.shape[-2]):
        s = (query[..., i:i + 1, :] * key).sum(-1) / math.sqrt(d_k)
        if may is not None:
            s = s.masked_fill(~may[..., i, :], -1e9)
        w = F.softmax(s, -1)
        rows.append(w if may is None else w * may[..., i, :])
    w = torch.stack(rows, -2)
    return w @ value, w
""",
        "numbers added to the scores, one matrix product": """
def scaled_dot_product_attention(query, key, value, mask=None):
    lead = query.shape[:-2]
    q, k, v = (x.reshape(-1, *x.shape[-2:]) for x in (query, key, value))
    added = torch.zeros(*lead, q.shape[1], k.shape[1])
    if mask is not None:
        added = added + (1 - mask.float()) * -1e9
    scores = torch.baddbmm(added.reshape(len(q), *added.shape[-2:]), q, k.mT, alpha=1 / math.sqrt(q.shape[-1]))
    w = torch.softmax(scores, 2).reshape(added.shape)
    if mask is not None:
        w = w * mask.any(-1, keepdim=True)
    return torch.bmm(w.reshape(scores.shape), v).reshape(*lead, -1, v.shape[-1]), w
""",
        "recursion over the axes in front": """
def scaled_dot_product_attention(query, key, value, mask=None):
    if mask is None:
        mask = torch.tensor(True)
    mask = mask.expand(*query.shape[:-1], key.shape[-2])
    if query.dim() > 2:
        parts = [scaled_dot_product_attention(*each) for each in zip(query, key, value, mask)]
        contexts, weights = zip(*parts)
        return torch.stack(contexts), torch.stack(weights)
    scores = torch.mm(query, key.T) / query.shape[1] ** 0.5
    weights = softmax(scores.masked_fill(mask.logical_not(), torch.finfo().min)) * mask
    return torch.mm(weights, value), weights
""",
        "key by key with a running maximum": """
def scaled_dot_product_attention(query, key, value, mask=None):
    def score(j):
        s = (query * key[..., j:j + 1, :]).sum(-1, keepdim=True) * query.shape[-1] ** -0.5
        return s if may is None else s.masked_fill(~may[..., j:j + 1], -1e30)

    seq_k = key.shape[-2]
    may = None if mask is None else mask.expand(*query.shape[:-1], seq_k)
    top, total, context = score(0), 0.0, 0.0
    for j in range(seq_k):
        s = score(j)
        new = torch.maximum(top, s)
        shrink, e = (top - new).exp(), (s - new).exp()
        total, context, top = total * shrink + e, context * shrink + e * value[..., j:j + 1, :], new
    weights = torch.cat([(score(j) - top).exp() / total for j in range(seq_k)], -1)
    if may is None:
        return context / total, weights
    some = may.any(-1, keepdim=True)
    return context / total * some, weights * some
""",
        "from squared distances, in float64": """
def scaled_dot_product_attention(query, key, value, mask=None):
    q, k = query.double().unsqueeze(-2), key.double().unsqueeze(-3)
    products = (q.square().sum(-1) + k.square().sum(-1) - (q - k).square().sum(-1)) / 2
    scores = products / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores - 1e12 * ~mask
    weights = scores.softmax(-1)
    weights = weights if mask is None else weights.where(mask, 0)
    return (weights @ value.double()).float(), weights.float()
""",
        "vmap over the queries": """
def scaled_dot_product_attention(query, key, value, mask=None):
    seq_k = key.shape[-2]
    mask = torch.ones(seq_k, dtype=torch.bool) if mask is None else mask
    mask = mask.expand(*query.shape[:-1], seq_k)

    def of_one_query(q, may):
        s = torch.einsum("...d,...kd->...k", q, key) / math.sqrt(q.shape[-1])
        w = s.masked_fill(~may, -1e9).softmax(-1) * may
        return torch.einsum("...k,...kv->...v", w, value), w

    return torch.vmap(of_one_query, in_dims=(-2, -2), out_dims=(-2, -2))(query, mask)
""",
        "a module with helpers, logarithms, prints and a warning": """
import warnings

class Attention(nn.Module):
    def compare(self, query, key):
        return query.matmul(key.transpose(-1, -2)).div(math.sqrt(query.size(-1)))

    def hide(self, scores, mask):
        return scores if mask is None else scores.masked_fill(~mask, -1e20)

    def forward(self, query, key, value, mask=None):
        print("attending", query.shape, key.shape)
        warnings.warn("slow")
        weights = self.hide(self.compare(query, key), mask).log_softmax(dim=-1).exp()
        if mask is not None:
            weights = weights.masked_fill(torch.logical_not(mask), 0)
        return weights.matmul(value), weights

scaled_dot_product_attention = Attention()
""",
        "in place on own scores": """
def scaled_dot_product_attention(query, key, value, mask=None):
    scores = torch.matmul(query, key.swapaxes(-1, -2))
    scores /= math.sqrt(key.shape[-1])
    if mask is None:
        weights = softmax(scores, dim=-1)
    else:
        scores.masked_fill_(~mask, -1e9)
        weights = torch.mul(softmax(scores, dim=-1), mask)
    return torch.matmul(weights, value), weights
""",
        "one more score, for a query that may attend to nothing": """
def scaled_dot_product_attention(query, key, value, mask=None):
    s = query @ key.mT / query.shape[-1] ** 0.5
    mask = torch.ones_like(s).bool() if mask is None else mask & torch.ones_like(s).bool()
    nothing = ~mask.any(-1, keepdim=True)
    of_nothing = torch.zeros_like(s[..., :1]).masked_fill(~nothing, -torch.inf)
    w = torch.cat([s.masked_fill(~mask, -torch.inf), of_nothing], -1).softmax(-1)[..., :-1]
    return w @ value, w
""",
    },
    "masks": {
        "comparisons": """
def padding_mask(ids, pad_id):
    return (ids != pad_id)[:, None, None, :]

def causal_mask(seq):
    return torch.ones(seq, seq, dtype=torch.bool).tril()

def causal_padding_mask(ids, pad_id):
    return padding_mask(ids, pad_id) & causal_mask(ids.size(1))
""",
        "logical functions": """
def padding_mask(ids, pad_id):
    return torch.logical_not(ids == pad_id).unsqueeze(1).unsqueeze(2)

def causal_mask(seq):
    return ~torch.triu(torch.ones(seq, seq), diagonal=1).bool()

def causal_padding_mask(ids, pad_id):
    return torch.logical_and(padding_mask(ids, pad_id), causal_mask(ids.shape[-1]).view(1, 1, *ids.shape[1:] * 2))
""",
        "list comprehensions": """
def padding_mask(ids, pad_id):
    return torch.tensor([[[[i != pad_id for i in row]]] for row in ids.tolist()])

def causal_mask(seq):
    return torch.tensor([[j <= i for j in range(seq)] for i in range(seq)])

def causal_padding_mask(ids, pad_id):
    n = ids.shape[1]
    return torch.tensor([[[[j <= i and row[j] != pad_id for j in range(n)] for i in range(n)]] for row in ids.tolist()])
""",
        "NumPy": """
import numpy as np

def padding_mask(ids, pad_id):
    return (ids.numpy() != pad_id)[:, None, None, :]

def causal_mask(seq):
    return np.tri(seq, dtype=bool)

def causal_padding_mask(ids, pad_id):
    return padding_mask(ids, pad_id) & causal_mask(ids.shape[1])
""",
        "running sums, products as and": """
def padding_mask(ids, pad_id):
    return (ids - pad_id).bool().reshape(len(ids), 1, 1, -1)

def causal_mask(seq):
    return torch.eye(seq).cumsum(0) > 0

def causal_padding_mask(ids, pad_id):
    return torch.einsum("bhqk,qk->bhqk", padding_mask(ids, pad_id).int(), causal_mask(ids.shape[1]).int()) == 1
""",
        "recursion, row by row": """
def padding_mask(ids, pad_id):
    if len(ids) == 1:
        return ~(ids == pad_id)[None, None]
    return torch.cat([padding_mask(row[None], pad_id) for row in ids])

def causal_mask(seq):
    if seq == 1:
        return torch.tensor([[True]])
    smaller = F.pad(causal_mask(seq - 1), (0, 1, 0, 1), value=False)
    smaller[-1] = True
    return smaller

def causal_padding_mask(ids, pad_id):
    return torch.stack([padding_mask(row[None], pad_id)[0] & causal_mask(len(row)) for row in ids])
""",
        "zeros that are filled at indices": """
def padding_mask(ids, pad_id):
    allowed = torch.zeros(ids.shape[0], 1, 1, ids.shape[1], dtype=torch.bool)
    rows, columns = torch.where(ids != pad_id)
    allowed[rows, 0, 0, columns] = True
    return allowed

def causal_mask(seq):
    allowed = torch.zeros(seq, seq, dtype=torch.bool)
    rows, columns = torch.tril_indices(seq, seq)
    allowed[rows, columns] = True
    return allowed

def causal_padding_mask(ids, pad_id):
    seq = ids.shape[1]
    allowed = causal_mask(seq).expand(len(ids), 1, seq, seq).clone()
    allowed[~padding_mask(ids, pad_id).expand_as(allowed)] = False
    return allowed
""",
        "what is hidden, turned round at the end": """
def hidden_words(ids, pad_id):
    return torch.isin(ids, torch.tensor([pad_id]))

def hidden_future(seq):
    places = torch.arange(seq)
    return places.view(1, -1) > places.view(-1, 1)

def padding_mask(ids, pad_id):
    return ~hidden_words(ids, pad_id)[:, None, None]

def causal_mask(seq):
    return ~hidden_future(seq)

def causal_padding_mask(ids, pad_id):
    return ~(hidden_words(ids, pad_id)[:, None, None] | hidden_future(ids.shape[1]))
""",
        "loops and assignments": """
def padding_mask(ids, pad_id):
    batch, seq = ids.shape
    result = torch.ones(batch, 1, 1, seq, dtype=torch.bool)
    for b in range(batch):
        for k in range(seq):
            if ids[b, k] == pad_id:
                result[b, 0, 0, k] = False
    return result

def causal_mask(seq):
    result = torch.full((seq, seq), False)
    for q in range(seq):
        result[q, :q + 1] = True
    return result

def causal_padding_mask(ids, pad_id):
    result = padding_mask(ids, pad_id).repeat(1, 1, ids.shape[1], 1)
    for q in range(ids.shape[1]):
        result[:, :, q, q + 1:] = False
    return result
""",
        "vmap over the sentences": """
def words_of(row, pad_id):
    return row.ne(pad_id).view(1, 1, -1)

def padding_mask(ids, pad_id):
    return torch.vmap(lambda row: words_of(row, pad_id))(ids)

def causal_mask(seq):
    place = torch.arange(seq, dtype=torch.float32)
    return torch.vmap(lambda q: place <= q)(place)

def causal_padding_mask(ids, pad_id):
    past = causal_mask(ids.shape[1])
    return torch.vmap(lambda row: words_of(row, pad_id) * past)(ids)
""",
        "through the minimum, bytes as truth values, with prints": """
def padding_mask(ids, pad_id):
    print("padding is", pad_id)
    return ids.ne(pad_id).to(torch.uint8)[..., None, None].permute(0, 2, 3, 1).type(torch.bool)

def causal_mask(seq):
    print("causal for", seq)
    return torch.ones((seq, seq), dtype=torch.uint8).triu().T.bool()

def causal_padding_mask(ids, pad_id):
    return torch.minimum(padding_mask(ids, pad_id).int(), causal_mask(ids.size(-1)).int()).bool()
""",
        "lambdas, chained ands in place": """
padding_mask = lambda ids, pad_id: torch.stack([ids != pad_id]).transpose(0, 1)[:, :, None]
causal_mask = lambda seq: torch.tensor([[1] * (i + 1) + [0] * (seq - i - 1) for i in range(seq)], dtype=torch.bool)

def causal_padding_mask(ids, pad_id):
    both = causal_mask(ids.shape[1]).repeat(len(ids), 1, 1, 1)
    both &= padding_mask(ids, pad_id)
    return both
""",
    },
    "heads": {
        "view and transpose": """
def split_heads(x, num_heads):
    b, s, d = x.shape
    if d % num_heads:
        raise ValueError(f"d_model={d} does not split into num_heads={num_heads}")
    return x.view(b, s, num_heads, -1).transpose(1, 2)

def merge_heads(x):
    b, h, s, d = x.shape
    return x.transpose(1, 2).contiguous().view(b, s, h * d)
""",
        "chunks": """
def split_heads(x, num_heads):
    if x.shape[-1] / num_heads != x.shape[-1] // num_heads:
        raise ValueError(str((x.shape[-1], num_heads)))
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)

def merge_heads(x):
    return torch.cat(x.unbind(1), dim=-1)
""",
        "einsum, an error class of its own": """
class Indivisible(ValueError):
    pass

def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise Indivisible(f"{x.shape[-1]} and {num_heads}")
    return torch.einsum("bshd->bhsd", x.reshape(*x.shape[:2], num_heads, x.shape[-1] // num_heads))

def merge_heads(x):
    return torch.einsum("bhsd->bshd", x).flatten(2)
""",
        "NumPy and slices": """
import numpy as np

def split_heads(x, num_heads):
    x, d = x.numpy(), x.shape[-1] // num_heads
    if d * num_heads != x.shape[-1]:
        raise ValueError(f"{x.shape[-1]} entries, {num_heads} heads")
    return np.stack([x[..., j * d:(j + 1) * d] for j in range(num_heads)], 1)

def merge_heads(x):
    return np.concatenate(list(x.numpy().swapaxes(0, 1)), -1)
""",
        "filled head by head": """
def split_heads(x, num_heads):
    batch, seq, d_model = x.shape
    d_k, rest = divmod(d_model, num_heads)
    if rest != 0:
        raise ValueError(f"d_model={d_model}, num_heads={num_heads}: {rest} left over")
    heads = torch.empty(batch, num_heads, seq, d_k)
    for j in range(num_heads):
        heads[:, j] = x[:, :, j * d_k:(j + 1) * d_k]
    return heads

def merge_heads(x):
    batch, num_heads, seq, d_k = x.shape
    merged = x.new_zeros(batch, seq, num_heads * d_k)
    for j in range(num_heads):
        merged[:, :, j * d_k:(j + 1) * d_k] += x[:, j]
    return merged
""",
        "windows along the last axis": """
def split_heads(x, num_heads):
    if x.size(-1) % num_heads > 0:
        raise ValueError(f"{num_heads} heads do not fill {x.size(-1)} entries")
    width = x.size(-1) // num_heads
    return x.unfold(-1, width, width).movedim(2, 1)

def merge_heads(x):
    return x.movedim(1, 2).reshape(x.shape[0], x.shape[2], -1)
""",
        "products with pieces of the identity": """
def split_heads(x, num_heads):
    d_model = x.shape[-1]
    if math.gcd(d_model, num_heads) != num_heads:
        raise ValueError(f"{d_model} by {num_heads}")
    pieces = torch.eye(d_model).reshape(d_model, num_heads, d_model // num_heads)
    return torch.einsum("bsm,mhd->bhsd", x, pieces)

def merge_heads(x):
    _, num_heads, _, d_k = x.shape
    pieces = torch.eye(num_heads * d_k).reshape(num_heads, d_k, num_heads * d_k)
    return torch.tensordot(x, pieces, dims=([1, 3], [0, 1]))
""",
        "torch's own error turned into the one asked for": """
def split_heads(x, num_heads):
    try:
        cut = x.unflatten(2, (num_heads, x.shape[2] // num_heads))
    except RuntimeError as error:
        raise ValueError(f"num_heads={num_heads} does not fit d_model={x.shape[2]}") from error
    return cut.permute(0, 2, 1, 3)

def merge_heads(x):
    return x.permute(0, 2, 1, 3).flatten(start_dim=-2)
""",
        "entries picked by their numbers": """
def split_heads(x, num_heads):
    d_model = x.shape[-1]
    if d_model % num_heads:
        raise ValueError(f"{d_model=} {num_heads=}")
    entries = torch.arange(d_model).view(num_heads, 1, -1)
    tokens = torch.arange(x.shape[1]).view(1, -1, 1)
    return x[:, tokens, entries]

def merge_heads(x):
    d_k = x.shape[-1]
    entry = torch.arange(x.shape[1] * d_k)
    return x[:, entry // d_k, :, entry % d_k].permute(1, 2, 0)
""",
        "recursion: the first head, then the rest": """
def split_heads(x, num_heads):
    d_k = x.shape[-1] // num_heads
    if d_k * num_heads != x.shape[-1]:
        raise ValueError(f"d_model {x.shape[-1]}, num_heads {num_heads}")
    first = x[:, None, :, :d_k]
    return first if num_heads == 1 else torch.cat([first, split_heads(x[..., d_k:], num_heads - 1)], 1)

def merge_heads(x):
    if x.shape[1] == 1:
        return x[:, 0]
    return torch.cat([x[:, 0], merge_heads(x[:, 1:])], -1)
""",
        "vmap over the tokens": """
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError("no heads of equal width: " + str(x.shape[-1]) + " / " + str(num_heads))
    return torch.vmap(lambda token: token.view(len(x), num_heads, -1), in_dims=1, out_dims=2)(x)

def merge_heads(x):
    return torch.vmap(lambda token: token.flatten(1), in_dims=2, out_dims=1)(x)
""",
        "a decorator that checks, float64, rows of Python lists": """
def checked(split):
    def wrapper(x, num_heads):
        if x.shape[-1] % num_heads != 0:
            raise ValueError(f"cannot split {x.shape[-1]} into {num_heads}")
        return split(x.double(), num_heads)
    return wrapper

@checked
def split_heads(x, num_heads):
    d_k = x.shape[-1] // num_heads
    rows = x.tolist()
    return torch.tensor([[[token[j * d_k:][:d_k] for token in row] for j in range(num_heads)] for row in rows])

def merge_heads(x):
    return torch.tensor([[sum(parts, []) for parts in zip(*heads)] for heads in x.tolist()])
""",
    },
    "multi_head_attention": {
        "einsum over heads": """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.h, self.p = num_heads, dropout
        for name in "qkvo":
            setattr(self, "w_" + name, nn.Linear(d_model, d_model))

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        if key is None:
            key = query
        if value is None:
            value = key
        projected = (self.w_q, query), (self.w_k, key), (self.w_v, value)
        q, k, v = (w(x).unflatten(-1, (self.h, -1)) for w, x in projected)
        s = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
        if mask is not None:
            s = s.masked_fill(~mask, -1e9)
        a = F.dropout(s.softmax(-1), self.p, self.training)
        out = self.w_o(torch.einsum("bhqk,bkhd->bqhd", a, v).flatten(2))
        return (out, a) if need_weights else out
""",
        "one fused matrix, by load_reference": """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.h, self.drop = num_heads, nn.Dropout(dropout)
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def load_reference(self, w):
        self.load_state_dict({
            "qkv.weight": torch.cat([w["w_q.weight"], w["w_k.weight"], w["w_v.weight"]]),
            "qkv.bias": torch.cat([w["w_q.bias"], w["w_k.bias"], w["w_v.bias"]]),
            "out.weight": w["w_o.weight"],
            "out.bias": w["w_o.bias"],
        })

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        parts = zip((query, key, value), self.qkv.weight.chunk(3), self.qkv.bias.chunk(3))
        q, k, v = (F.linear(x, weight, bias) for x, weight, bias in parts)
        q, k, v = (torch.stack(x.split(x.shape[-1] // self.h, -1), 1) for x in (q, k, v))
        _, a = scaled_dot_product_attention(q, k, v, mask)
        out = self.out(torch.cat((self.drop(a) @ v).unbind(1), -1))
        return [out, a] if need_weights else out
""",
        "a loop over the heads": """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.d_k, self.h = d_model // num_heads, num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = [nn.Linear(d_model, d_model) for _ in range(4)]
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = key if key is not None else query
        value = value if value is not None else key
        q, k, v = self.w_q(query), self.w_k(key), self.w_v(value)
        outs, ws = [], []
        full = None if mask is None else mask.expand(len(q), self.h, q.shape[1], k.shape[1])
        for j in range(self.h):
            part = slice(j * self.d_k, (j + 1) * self.d_k)
            s = torch.bmm(q[..., part], k[..., part].transpose(1, 2)) / self.d_k ** 0.5
            if full is not None:
                s = s.masked_fill(full[:, j].logical_not(), float("-inf"))
            w = s.softmax(-1)
            ws.append(w)
            outs.append(torch.bmm(self.drop(w), v[..., part]))
        out = self.w_o(torch.cat(outs, -1))
        return (out, torch.stack(ws, 1)) if need_weights else out
""",
        "float64": """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.h, self.drop = num_heads, nn.Dropout(dropout)
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model, dtype=torch.float64) for _ in range(4))

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        inputs = (self.w_q, query), (self.w_k, key), (self.w_v, value)
        q, k, v = (split_heads(w(x.double()), self.h) for w, x in inputs)
        _, w = scaled_dot_product_attention(q, k, v, mask)
        out = self.w_o(merge_heads(self.drop(w) @ v))
        return (out, w) if need_weights else out
""",
        "a module for each head, by load_reference": """
class Head(nn.Module):
    def __init__(self, d_model, d_k, dropout):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(d_model, d_k) for _ in range(3))
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, mask):
        v = self.v(value)
        _, weights = scaled_dot_product_attention(self.q(query), self.k(key), v, mask)
        return self.dropout(weights) @ v, weights

class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.heads = nn.ModuleList(Head(d_model, d_model // num_heads, dropout) for _ in range(num_heads))
        self.last = nn.Linear(d_model, d_model)

    @torch.no_grad()
    def load_reference(self, weights):
        for kind in "qkv":
            for part in ("weight", "bias"):
                rows = weights[f"w_{kind}.{part}"].chunk(len(self.heads))
                for head, own in zip(self.heads, rows):
                    getattr(getattr(head, kind), part).copy_(own)
        self.last.weight.copy_(weights["w_o.weight"])
        self.last.bias.copy_(weights["w_o.bias"])

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        shape = len(query), len(self.heads), query.shape[1], key.shape[1]
        masks = [None] * len(self.heads) if mask is None else mask.expand(shape).unbind(1)
        results = [head(query, key, value, own) for head, own in zip(self.heads, masks)]
        output = self.last(torch.cat([context for context, _ in results], -1))
        return (output, torch.stack([w for _, w in results], 1)) if need_weights else output
""",
        "parameters with an axis for the heads, by load_reference": """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.sizes, self.p = (num_heads, d_model // num_heads), dropout
        self.into = nn.Parameter(torch.randn(3, *self.sizes, d_model) / d_model ** 0.5)
        self.shift = nn.Parameter(torch.zeros(3, *self.sizes))
        self.out = nn.Parameter(torch.randn(d_model, *self.sizes) / d_model ** 0.5)
        self.out_shift = nn.Parameter(torch.zeros(d_model))

    def load_reference(self, weights):
        shape = self.into.shape
        self.into.data = torch.stack([weights[f"w_{name}.weight"] for name in "qkv"]).reshape(shape)
        self.shift.data = torch.stack([weights[f"w_{name}.bias"] for name in "qkv"]).reshape(shape[:3])
        self.out.data = weights["w_o.weight"].reshape(self.out.shape)
        self.out_shift.data = weights["w_o.bias"]

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value

        def project(x, number):
            return torch.einsum("bsm,hdm->bhsd", x, self.into[number]) + self.shift[number].unsqueeze(1)

        q, k, v = (project(x, number) for number, x in enumerate((query, key, value)))
        weights = scaled_dot_product_attention(q, k, v, mask)[1]
        kept = F.dropout(weights, self.p, training=self.training)
        output = torch.einsum("bhqk,bhkd,mhd->bqm", kept, v, self.out) + self.out_shift
        return (output, weights) if need_weights else output
""",
        "heads folded into the batch": """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads, self.dropout = num_heads, nn.Dropout(p=dropout)
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def fold(self, x):
        batch, seq, d_model = x.shape
        x = x.view(batch, seq, self.num_heads, d_model // self.num_heads)
        return x.permute(0, 2, 1, 3).reshape(batch * self.num_heads, seq, -1)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        if value is None:
            value = query if key is None else key
        if key is None:
            key = query
        batch, seq_q, d_model = query.shape
        q, k, v = self.fold(self.w_q(query)), self.fold(self.w_k(key)), self.fold(self.w_v(value))
        scores = torch.bmm(q, k.transpose(1, 2)) * (d_model // self.num_heads) ** -0.5
        scores = scores.view(batch, self.num_heads, seq_q, -1)
        if mask is not None:
            scores = torch.where(mask, scores, torch.full_like(scores, -1e9))
        weights = torch.softmax(scores, dim=3)
        context = torch.bmm(self.dropout(weights).flatten(0, 1), v)
        context = context.view(batch, self.num_heads, seq_q, -1).permute(0, 2, 1, 3).reshape(query.shape)
        output = self.w_o(context)
        if need_weights:
            return output, weights
        return output
""",
        "a projection that splits by itself, dropout by hand": """
class Projection(nn.Linear):
    def __init__(self, d_model, num_heads):
        super().__init__(d_model, d_model)
        self.num_heads = num_heads

    def forward(self, x):
        return split_heads(super().forward(x), self.num_heads)

class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.w_q, self.w_k, self.w_v = (Projection(d_model, num_heads) for _ in range(3))
        self.w_o = nn.Linear(d_model, d_model)
        self.keep = 1 - dropout

    def dropped(self, weights):
        if not self.training:
            return weights
        return weights * (torch.rand_like(weights) < self.keep) / self.keep

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        values = self.w_v(key if value is None else value)
        _, weights = scaled_dot_product_attention(self.w_q(query), self.w_k(key), values, mask)
        output = self.w_o(merge_heads(self.dropped(weights) @ values))
        return (output, weights) if need_weights else output
""",
        "a ModuleDict, a decorator, prints and a warning": """
import functools
import sys

def with_defaults(forward):
    @functools.wraps(forward)
    def wrapped(self, query, key=None, value=None, mask=None, need_weights=False):
        print("in come", tuple(query.shape))
        print("this goes to stderr", file=sys.stderr)
        key = query if key is None else key
        value = key if value is None else value
        both = forward(self, query, key, value, mask)
        return both if need_weights else both[0]
    return wrapped

class MultiHeadAttention(nn.ModuleDict):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__({name: nn.Linear(d_model, d_model) for name in ("w_q", "w_k", "w_v", "w_o")})
        self["drop"] = nn.Dropout(dropout)
        self.num_heads = num_heads

    @with_defaults
    def forward(self, query, key, value, mask):
        q, k, v = (self[name](x) for name, x in zip(("w_q", "w_k", "w_v"), (query, key, value)))
        q, k, v = (split_heads(x, self.num_heads) for x in (q, k, v))
        weights = self["drop"](scaled_dot_product_attention(q, k, v, mask)[1])
        return self["w_o"](merge_heads(weights @ v)), weights
""",
        "vmap over the heads": """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        shape = len(query), self.num_heads, query.shape[1], key.shape[1]
        mask = torch.ones(shape, dtype=torch.bool) if mask is None else mask.expand(shape)

        def head_weights(q, k, may):
            scores = torch.einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1])
            return torch.where(may, scores, -1e9).softmax(-1)

        q, k, v = (split_heads(w(x), self.num_heads)
                   for w, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value)))
        weights = torch.vmap(head_weights, in_dims=1, out_dims=1)(q, k, mask)
        context = F.dropout(weights, self.dropout, self.training) @ v
        output = self.w_o(merge_heads(context))
        return (output, weights) if need_weights else output
""",
        "convolutions of width 1, by load_reference": """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads, self.drop = num_heads, nn.Dropout(dropout)
        self.convolutions = nn.ModuleList(nn.Conv1d(d_model, d_model, 1) for _ in "qkvo")

    def load_reference(self, weights):
        for name, convolution in zip("qkvo", self.convolutions):
            convolution.load_state_dict({"weight": weights[f"w_{name}.weight"].unsqueeze(-1),
                                         "bias": weights[f"w_{name}.bias"]})

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        inputs = (x.transpose(1, 2) for x in (query, key, value))  # (batch, d_model, seq)
        q, k, v = (convolution(x).unflatten(1, (self.num_heads, -1))
                   for convolution, x in zip(self.convolutions, inputs))  # (batch, num_heads, d_k, seq)
        scores = q.transpose(2, 3) @ k / math.sqrt(q.shape[2])
        weights = softmax(scores if mask is None else scores.masked_fill(~mask, -1e9))
        context = v @ self.drop(weights).transpose(2, 3)
        output = self.convolutions[3](context.flatten(1, 2)).transpose(1, 2)
        return (output, weights) if need_weights else output
""",
        "lazy layers and functions outside the class": """
def default(given, other):
    return other if given is None else given

def weights_of(q, k, mask):
    scores = q @ k.mT
    scores = scores / q.new_tensor(q.shape[-1]).sqrt()
    if mask is not None:
        scores = scores + torch.zeros(mask.shape).masked_fill(mask.logical_not(), -1e9)
    return F.softmax(scores, -1)

class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.split = lambda x: torch.stack(x.tensor_split(num_heads, -1), 1)
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.LazyLinear(d_model) for _ in range(4))
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = default(key, query)
        value = default(value, key)
        weights = weights_of(self.split(self.w_q(query)), self.split(self.w_k(key)), mask)
        context = torch.matmul(self.drop(weights), self.split(self.w_v(value)))
        output = self.w_o(context.swapaxes(1, 2).flatten(-2))
        return (output, weights) if need_weights else output
""",
    },
    "counts": {
        "numbers and tuples": """
shape_of_scores, bytes_of_scores, num_parameters = (1, 8, 196, 196), 1229312, 1050624

def attention_counts(batch, seq, d_model, num_heads):
    return (batch, num_heads, seq, seq), batch * num_heads * seq * seq * 4, 4 * d_model ** 2 + 4 * d_model
""",
        "tensors and layers that are counted": """
shape_of_scores = torch.Size([1, 8, 196, 196])
bytes_of_scores, num_parameters = torch.tensor(1229312), torch.tensor(1050624)

def attention_counts(batch, seq, d_model, num_heads):
    scores = torch.zeros(batch, num_heads, seq, seq)
    w = [nn.Linear(d_model, d_model) for _ in range(4)]
    return [scores.shape, scores.numel() * scores.element_size(), sum(p.numel() for m in w for p in m.parameters())]
""",
        "NumPy integers": """
import numpy as np

shape_of_scores, bytes_of_scores, num_parameters = [1, 8, np.int64(196), 196], np.int64(1229312), np.int64(1050624)

def attention_counts(batch, seq, d_model, num_heads):
    s = np.zeros((batch, num_heads, seq, seq), np.float32)
    return s.shape, s.nbytes, np.int64(4 * d_model * (d_model + 1))
""",
        "a list for the shape, shifted bits": """
shape_of_scores, bytes_of_scores, num_parameters = [1, 8, 196, 196], 4 * 8 * 196 ** 2, 1050624

def attention_counts(batch, seq, d_model, num_heads):
    return [batch, num_heads, seq, seq], num_heads * seq ** 2 * batch << 2, 4 * (d_model + d_model ** 2)
""",
        "the predictions from the function, in float numbers": """
def attention_counts(batch, seq, d_model, num_heads):
    shape = (batch, *(num_heads, seq), seq)
    return shape, 4.0 * batch * num_heads * seq**2, 4.0 * (d_model**2 + d_model)

shape_of_scores, bytes_of_scores, num_parameters = attention_counts(1, 196, 512, 8)
""",
        "the module of the last exercise, run once": """
def attention_counts(batch, seq, d_model, num_heads):
    module = MultiHeadAttention(d_model, num_heads)
    _, weights = module(torch.zeros(batch, seq, d_model), need_weights=True)
    return tuple(weights.shape), weights.nbytes, sum(p.numel() for p in module.parameters() if p.requires_grad)

shape_of_scores, bytes_of_scores, num_parameters = attention_counts(1, (224 // 16) ** 2, 512, 8)
""",
        "layers and scores without memory": """
def attention_counts(batch, seq, d_model, num_heads):
    with torch.device("meta"):
        queries = torch.empty(batch, num_heads, seq, d_model // num_heads)
        scores = queries @ queries.mT
        layers = nn.ModuleDict({name: nn.Linear(d_model, d_model) for name in "qkvo"})
    numbers = nn.utils.parameters_to_vector(layers.parameters()).numel()
    return scores.shape, scores.numel() * torch.finfo(torch.float32).bits // 8, numbers

shape_of_scores, bytes_of_scores, num_parameters = attention_counts(1, 196, 512, 8)
""",
        "a named tuple and helpers": """
from typing import NamedTuple

class Counts(NamedTuple):
    shape: tuple
    size: int
    parameters: int

def linear(d_in, d_out):
    return d_in * d_out + d_out

def attention_counts(batch, seq, d_model, num_heads):
    shape = (batch, num_heads, seq, seq)
    return Counts(shape, math.prod((*shape, 4)), sum(linear(d_model, d_model) for _ in "qkvo"))

cat = attention_counts(batch=1, seq=196, d_model=512, num_heads=8)
shape_of_scores, bytes_of_scores, num_parameters = cat.shape, cat.size, cat.parameters
""",
        "parameters head by head": """
def attention_counts(batch, seq, d_model, num_heads):
    d_k = d_model // num_heads
    of_a_head = 3 * (d_model * d_k + d_k) + d_k * d_model  # its part of w_q, w_k and w_v, and its columns of w_o
    bits = 32 * sum(seq for _ in range(batch * num_heads * seq))
    return (batch, num_heads) + 2 * (seq,), bits // 8, num_heads * of_a_head + d_model

cat = attention_counts(1, 196, 512, 8)
shape_of_scores = cat[0]
bytes_of_scores = cat[1]
num_parameters = cat[2]
""",
        "a lambda and tensors of whole numbers": """
attention_counts = lambda batch, seq, d_model, num_heads: (
    torch.tensor([batch, num_heads, seq, seq]),
    torch.tensor([batch, num_heads, seq, seq, 4]).prod(),
    torch.tensor(d_model).add(1).mul(d_model).mul(4),
)
shape_of_scores = torch.tensor([1, 8, 196, 196])
bytes_of_scores = len(bytes(4 * 8 * 196 * 196))
num_parameters = 2**20 + 2**11
""",
        "packed bytes, closures and a print": """
import struct

def counter(size_of_a_number):
    def counts(batch, seq, d_model, num_heads):
        print("counting", batch, seq, d_model, num_heads)
        pairs = 0
        for _query in range(seq):
            pairs += seq
        matrix, bias = d_model * d_model, d_model
        return (batch, num_heads, seq, seq), pairs * batch * num_heads * size_of_a_number, (matrix + bias) * 4
    return counts

attention_counts = counter(struct.calcsize("f"))
shape_of_scores, bytes_of_scores, num_parameters = attention_counts(1, 196, 512, 8)
""",
    },
    "repair": {
        "the class with its faults mended": """
def self_attention(Q, K, V):
    scores = torch.matmul(Q, K.transpose(-2, -1)) / math.sqrt(Q.shape[-1])
    return torch.matmul(torch.softmax(scores, dim=-1), V)

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.d_k, self.h = d_model // h, h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        n = x.size(0)
        q, k, v = (w(x).view(n, -1, self.h, self.d_k).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))
        return self.w_o(self_attention(q, k, v).transpose(1, 2).reshape(n, -1, self.h * self.d_k))
""",
        "heads one by one, without biases": """
def self_attention(Q, K, V):
    d_k = K.size(-1)
    return ((Q / d_k ** 0.5) @ K.mT).softmax(-1) @ V

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        for name in ("w_q", "w_k", "w_v", "w_o"):
            self.add_module(name, nn.Linear(d_model, d_model, bias=False))

    def forward(self, x):
        parts = zip(*(w(x).chunk(self.h, -1) for w in (self.w_q, self.w_k, self.w_v)))
        return self.w_o(torch.cat([self_attention(q, k, v) for q, k, v in parts], dim=-1))
""",
        "einsum": """
def self_attention(Q, K, V):
    s = torch.einsum("...id,...jd->...ij", Q, K) * Q.shape[-1] ** -0.5
    e = (s - s.amax(-1, keepdim=True)).exp()
    return torch.einsum("...ij,...jd->...id", e / e.sum(-1, keepdim=True), V)

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        heads = [w(x).unflatten(-1, (self.h, -1)).permute(0, 2, 1, 3) for w in (self.w_q, self.w_k, self.w_v)]
        return self.w_o(self_attention(*heads).permute(0, 2, 1, 3).flatten(-2))
""",
        "one fused matrix, by load_reference, in float64": """
def self_attention(Q, K, V):
    return (Q.double() @ K.double().transpose(-2, -1) / math.sqrt(Q.shape[-1])).softmax(-1) @ V.double()

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h, self.d = h, d_model
        self.all = nn.Parameter(torch.randn(d_model, 3 * d_model, dtype=torch.float64))
        self.last = nn.Parameter(torch.randn(d_model, d_model, dtype=torch.float64))

    def load_reference(self, w):
        self.all.data = torch.cat([w["w_" + n + ".weight"].T for n in "qkv"], 1).double()
        self.last.data = w["w_o.weight"].T.double()

    def forward(self, x):
        q, k, v = (x.double() @ self.all).reshape(*x.shape[:2], 3, self.h, -1).permute(2, 0, 3, 1, 4)
        return self_attention(q, k, v).transpose(1, 2).reshape(x.shape) @ self.last
""",
        "the functions of the exercises before": """
def self_attention(Q, K, V):
    context, _ = scaled_dot_product_attention(Q, K, V)
    return context

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(self, x):
        q = split_heads(self.w_q(x), self.h)
        k = split_heads(self.w_k(x), self.h)
        v = split_heads(self.w_v(x), self.h)
        return self.w_o(merge_heads(self_attention(q, k, v)))
""",
        "a subclass of the module of exercise 5": """
def self_attention(Q, K, V):
    return torch.matmul(softmax(torch.matmul(Q, K.mT) / math.sqrt(K.shape[-1]), dim=-1), V)

class RepairedAttention(MultiHeadAttention):
    def __init__(self, h, d_model):
        super().__init__(d_model, h)

    def forward(self, x):
        return super().forward(x)
""",
        "recursion over the axes, then over the heads": """
def self_attention(Q, K, V):
    if Q.dim() > 2:
        return torch.stack([self_attention(q, k, v) for q, k, v in zip(Q, K, V)])
    return torch.softmax(torch.mm(Q, K.t()) / len(Q[0]) ** 0.5, 1).mm(V)

def of_heads(h, q, k, v):
    d_k = q.shape[-1] // h
    first = self_attention(q[..., :d_k], k[..., :d_k], v[..., :d_k])
    if h == 1:
        return first
    return torch.cat([first, of_heads(h - 1, q[..., d_k:], k[..., d_k:], v[..., d_k:])], -1)

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        self.w_q, self.w_k, self.w_v, self.w_o = [nn.Linear(d_model, d_model, bias=False) for _ in range(4)]

    def forward(self, x):
        return self.w_o(of_heads(self.h, self.w_q(x), self.w_k(x), self.w_v(x)))
""",
        "query by query": """
def self_attention(Q, K, V):
    rows = []
    for query in Q.unbind(-2):
        weights = F.softmax((K @ query.unsqueeze(-1)).squeeze(-1) / math.sqrt(Q.shape[-1]), dim=-1)
        rows.append((weights.unsqueeze(-1) * V).sum(-2))
    return torch.stack(rows, dim=-2)

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h, self.d_k = h, d_model // h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        result = torch.empty_like(x)
        q, k, v = self.w_q(x), self.w_k(x), self.w_v(x)
        for j in range(self.h):
            own = slice(j * self.d_k, (j + 1) * self.d_k)
            result[..., own] = self_attention(q[..., own], k[..., own], v[..., own])
        return self.w_o(result)
""",
        "vmap over the heads, lambdas, a print and a warning": """
import warnings

self_attention = lambda Q, K, V: (Q @ K.transpose(-1, -2) / Q.shape[-1] ** 0.5).softmax(dim=-1) @ V

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.cut = lambda x: x.reshape(*x.shape[:2], h, d_model // h)
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        print("x is", tuple(x.shape))
        warnings.warn("on stderr")
        parts = self.cut(self.w_q(x)), self.cut(self.w_k(x)), self.cut(self.w_v(x))
        return self.w_o(torch.vmap(self_attention, in_dims=2, out_dims=2)(*parts).flatten(2))
""",
        "heads in the batch, a head's projection in a module of its own": """
def self_attention(Q, K, V):
    lead, (n, d_k) = Q.shape[:-2], Q.shape[-2:]
    q, k, v = (x.reshape(-1, *x.shape[-2:]) for x in (Q, K, V))
    scores = torch.bmm(q, k.transpose(1, 2)).div_(math.sqrt(d_k))
    return torch.bmm(scores.softmax(2), v).reshape(*lead, n, -1)

class IntoHeads(nn.Linear):
    def forward(self, x):
        return torch.stack([F.linear(x, rows, bias) for rows, bias in self.parts()], 1)

    def parts(self):
        return zip(self.weight.chunk(self.h), self.bias.chunk(self.h))

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        for name in ("w_q", "w_k", "w_v"):
            projection = IntoHeads(d_model, d_model)
            projection.h = h
            setattr(self, name, projection)
        self.w_o = nn.Linear(d_model, d_model)

    def forward(self, x):
        heads = self_attention(self.w_q(x), self.w_k(x), self.w_v(x))
        return self.w_o(torch.cat(list(heads.swapaxes(0, 1)), dim=-1))
""",
        "each head adds its part of w_o": """
def self_attention(Q, K, V):
    weights = torch.exp(F.log_softmax(torch.matmul(Q, K.mT).mul(1 / math.sqrt(Q.size(-1))), -1))
    return torch.einsum("...qk,...kd->...qd", weights, V)

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        q, k, v = (w(x).tensor_split(self.h, -1) for w in (self.w_q, self.w_k, self.w_v))
        columns = self.w_o.weight.tensor_split(self.h, 1)
        return sum(self_attention(q[j], k[j], v[j]) @ columns[j].T for j in range(self.h)) + self.w_o.bias
""",
    },
    "bug_hunt": {
        "against a formula": """
def examine_attention(attention):
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 4, 3, 6), torch.randn(2, 4, 5, 6), torch.randn(2, 4, 5, 6)
    mask = torch.rand(2, 1, 3, 5) < 0.5
    mask[..., 1] = True
    for m in (None, mask):
        s = q @ k.mT / 6 ** 0.5
        w = (s if m is None else s.masked_fill(~m, -1e9)).softmax(-1)
        context, weights = attention(q, k, v, m)
        assert torch.allclose(weights, w, atol=1e-5)
        assert torch.allclose(context, w @ v, atol=1e-5)
""",
        "against torch, by returning False": """
def examine_attention(attention):
    q, k, v = torch.randn(1, 3, 4, 5), torch.randn(1, 3, 7, 5), torch.randn(1, 3, 7, 5)
    mask = torch.ones(4, 7, dtype=torch.bool).tril(2)
    return all(torch.allclose(attention(q, k, v, mask=m)[0], F.scaled_dot_product_attention(q, k, v, m), atol=1e-4)
               for m in (None, mask))
""",
        "by hand": """
def examine_attention(attention):
    q, k, v = torch.zeros(1, 2, 2, 4), torch.zeros(1, 2, 2, 4), torch.zeros(1, 2, 2, 4)
    q[..., 0, 0], k[..., 0, 0], v[..., 0, 1] = 2.0, math.log(3.0), 4.0
    _, w = attention(q, k, v)
    torch.testing.assert_close(w[0, 0], torch.tensor([[0.75, 0.25], [0.5, 0.5]]))
    _, w = attention(q, k, v, torch.tensor([[True, False], [True, True]]))
    torch.testing.assert_close(w[0, 1], torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
""",
        "with a value of another width": """
def examine_attention(attention):
    q, k, v = torch.randn(1, 3, 4, 5), torch.randn(1, 3, 7, 5), torch.randn(1, 3, 7, 8)
    mask = torch.rand(3, 4, 7) < 0.6
    mask[..., 0] = True
    right = F.scaled_dot_product_attention(q, k, v)
    assert (attention(q, k, v)[0] - right).abs().max() < 1e-4
    right = F.scaled_dot_product_attention(q, k, v, mask)
    if (attention(q, k, v, mask)[0] - right).abs().max() > 1e-4:
        raise RuntimeError("masked")
""",
        "properties, without a right answer to compare with": """
def examine_attention(attention):
    q, k, v = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 6, 8), torch.randn(2, 3, 6, 8)
    mask = torch.rand(2, 3, 4, 6) < 0.5
    mask[..., 0], mask[..., 1] = True, False
    context, weights = attention(q, k, v)
    masked_context, masked_weights = attention(q, k, v, mask)
    # the weights of a row add up to 1, also those that are left
    assert torch.allclose(weights.sum(-1), torch.ones(2, 3, 4), atol=1e-4)
    assert torch.allclose(masked_weights.sum(-1), torch.ones(2, 3, 4), atol=1e-4)
    # a hidden key gets nothing
    assert masked_weights[~mask].max() < 1e-6
    # log(w_i / w_j) is the difference of two dot products with the keys, over the root of the width
    difference = (q * (k[..., :1, :] - k[..., 1:2, :])).sum(-1) / math.sqrt(8)
    assert torch.allclose((weights[..., 0] / weights[..., 1]).log(), difference, atol=1e-3)
    # the context is linear in the values
    assert torch.allclose(attention(q, k, 3 * v)[0], 3 * context, atol=1e-3)
    assert torch.allclose(masked_weights @ v, masked_context, atol=1e-4)
""",
        "a loop over batch, heads, queries and keys": """
def examine_attention(attention):
    draw = torch.Generator().manual_seed(11)
    q, k, v = (torch.randn(2, 2, n, 5, generator=draw) for n in (3, 4, 4))
    mask = torch.tensor([[True, False, True, True], [False, False, True, False], [True, True, True, False]])
    for may in (torch.ones(3, 4, dtype=torch.bool), mask):
        _, weights = attention(q, k, v, may)
        for b in range(2):
            for h in range(2):
                for i in range(3):
                    e = [math.exp(sum(q[b, h, i] * k[b, h, j]) / math.sqrt(5)) * bool(may[i, j]) for j in range(4)]
                    for j in range(4):
                        assert abs(weights[b, h, i, j] - e[j] / sum(e)) < 1e-4, (b, h, i, j)
""",
        "NumPy and its own assertion": """
import numpy as np

def examine_attention(attention):
    numbers = np.random.default_rng(5)
    q, k, v = (numbers.normal(size=(3, 2, n, 6)).astype(np.float32) for n in (2, 5, 5))
    mask = np.tile(np.array([[True, False, True, True, False], [False, True, False, True, True]]), (3, 1, 1, 1))
    scores = np.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(6)
    inputs = [torch.from_numpy(each) for each in (q, k, v)]
    for name, may in (("without a mask", None), ("with a mask", mask)):
        e = np.exp(scores) * (1 if may is None else may)
        weights = e / e.sum(-1, keepdims=True)
        got = attention(*inputs, None if may is None else torch.from_numpy(may))
        np.testing.assert_allclose(got[1].numpy(), weights, atol=1e-4, err_msg=name)
        np.testing.assert_allclose(got[0].numpy(), weights @ v, atol=1e-4, err_msg=name)
""",
        "many random sizes, in float64": """
import random

def examine_attention(attention):
    dice = random.Random(1)
    for trial in range(8):
        batch, heads, seq_q, seq_k, d_k = (dice.randint(2, 4) for _ in range(5))
        q, k, v = (torch.randn(batch, heads, n, d_k, dtype=torch.float64) for n in (seq_q, seq_k, seq_k))
        mask = torch.rand(batch, 1, seq_q, seq_k) < 0.5 if trial % 2 else None
        got, want = attention(q, k, v, mask), scaled_dot_product_attention(q, k, v, mask)
        for one, other in zip(got, want):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3, check_dtype=False)
""",
        "a test case with helpers": """
import unittest

class Examination(unittest.TestCase):
    def close(self, got, want):
        self.assertEqual(got.shape, want.shape)
        self.assertLess((got - want).abs().max().item(), 1e-4)

    def against_own(self, attention, *inputs):
        for got, want in zip(attention(*inputs), scaled_dot_product_attention(*inputs)):
            self.close(got, want)

def examine_attention(attention):
    q, k, v = torch.randn(5, 3, 4, 7), torch.randn(5, 3, 6, 7), torch.randn(5, 3, 6, 7)
    Examination().against_own(attention, q, k, v)
    Examination().against_own(attention, q, k, v, torch.rand(4, 6) > 0.4)
""",
        "errors collected, with prints, an own error at the end": """
def examine_attention(attention):
    found = []

    def compare(what, got, want):
        error = (got - want).abs().max().item()
        print(what, "is off by", error)
        if error > 1e-4:
            found.append(what)

    x = torch.randn(2, 4, 6, 5)
    y = torch.randn(2, 4, 6, 5)
    z = torch.randn(2, 4, 6, 5)
    for name, mask in {"no mask": None, "causal": torch.ones(6, 6).tril().bool(),
                       "padding": (torch.arange(6) < torch.tensor([[4], [6]]))[:, None, None]}.items():
        context, weights = attention(x, y, z, mask)
        right_context, right_weights = scaled_dot_product_attention(x, y, z, mask)
        compare(f"{name}: context", context, right_context)
        compare(f"{name}: weights", weights, right_weights)
    if found:
        raise ValueError("wrong: " + ", ".join(found))
""",
        "values that make the context show the weights": """
def examine_attention(attention):
    torch.manual_seed(2)
    q, k, v = torch.randn(1, 3, 2, 5), torch.randn(1, 3, 5, 5), torch.eye(5).expand(1, 3, 5, 5)
    mask = torch.tensor([True, False, True, False, True])
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k).div(math.sqrt(5))
    shown, _ = attention(q, k, v)
    masked, _ = attention(q, k, v, mask)
    right = scores.softmax(-1)
    right_masked = torch.zeros(1, 3, 2, 5)
    right_masked[..., mask] = scores[..., mask].softmax(-1)
    return torch.allclose(shown, right, atol=1e-4) and torch.allclose(masked, right_masked, atol=1e-4)
""",
        "by gradients: what the context depends on": """
def examine_attention(attention):
    torch.manual_seed(4)
    q, k, v = (torch.randn(1, 2, n, 4, requires_grad=True) for n in (3, 5, 5))
    mask = torch.tensor([[True, True, False, True, False]] * 2 + [[False, True, True, True, True]])
    for may in (None, mask):
        got, want = (each(q, k, v, may)[0] for each in (attention, scaled_dot_product_attention))
        for tensor in (q, k, v):
            one, = torch.autograd.grad(got.sin().sum(), tensor, retain_graph=True)
            other, = torch.autograd.grad(want.sin().sum(), tensor, retain_graph=True)
            assert torch.allclose(one, other, atol=1e-3)
        assert torch.allclose(got, want, atol=1e-3)
""",
    },
}
WRONG: dict[str, dict[str, tuple[str, str]]] = {
    "softmax": {
        "the maximum along the last axis whatever dim says": (
            "axis",
            """
def softmax(scores, dim=-1):
    e = (scores - scores.amax(-1, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)
""",
        ),
        "the sum without keepdim": (
            "weights axis large",
            """
def softmax(scores, dim=-1):
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim)
""",
        ),
        "by default along the first axis": (
            "weights large",
            """
def softmax(scores, dim=0):
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)
""",
        ),
        "a constant for stability that is far too large": (
            "weights axis large",
            """
def softmax(scores, dim=-1):
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / (e.sum(dim, keepdim=True) + 0.1)
""",
        ),
        "powers of two": (
            "weights axis large",
            """
def softmax(scores, dim=-1):
    powers = 2 ** (scores - scores.amax(dim, keepdim=True))
    return powers / powers.sum(dim, keepdim=True)
""",
        ),
        "the minimum subtracted": (
            "large",
            """
def softmax(scores, dim=-1):
    e = (scores - scores.amin(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)
""",
        ),
        "rounded to two digits": (
            "weights axis large",
            """
def softmax(scores, dim=-1):
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return (e / e.sum(dim, keepdim=True)).round(decimals=2)
""",
        ),
        "only for two axes or more": (
            "weights",
            """
def softmax(scores, dim=-1):
    if scores.dim() < 2:
        scores = scores[:, None]
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)
""",
        ),
        "one for the largest, zero for the others": (
            "weights axis large",
            """
def softmax(scores, dim=-1):
    return (scores == scores.amax(dim, keepdim=True)).float()
""",
        ),
        "float64 instead of a maximum": (
            "large",
            """
def softmax(scores, dim=-1):
    e = scores.double().exp()
    return (e / e.sum(dim, keepdim=True)).float()
""",
        ),
    },
    "scaled_dot_product_attention": {
        "transposed by T, all axes turned round": (
            "scale rows context masked shared nothing gradients",
            """
def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.permute(*range(key.dim() - 1, -1, -1)) / math.sqrt(query.shape[-1])
    weights = softmax(scores)
    return weights @ value, weights
""",
        ),
        "only for four axes": (
            "scale rows context masked",
            """
def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    weights = softmax(scores)
    if mask is not None:
        weights = weights * mask
    return weights @ value, weights
""",
        ),
        "divided by the root of the number of keys": (
            "scale",
            """
def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(key.shape[-2])
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    weights = softmax(scores)
    return (weights @ value, weights) if mask is None else (weights * mask @ value, weights * mask)
""",
        ),
        "hidden with a number that is not low enough": (
            "masked",
            """
def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -100)
    weights = softmax(scores)
    if mask is not None:
        weights = weights * mask.any(-1, keepdim=True)
    return weights @ value, weights
""",
        ),
        "the context from the weights before the mask": (
            "context",
            """
def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    context = softmax(scores) @ value
    if mask is None:
        return context, softmax(scores)
    some = mask.any(-1, keepdim=True)
    return context * some, softmax(scores.masked_fill(~mask, -1e9)) * mask
""",
        ),
        "the weights detached": (
            "gradients",
            """
def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    weights = softmax(scores).detach()
    if mask is not None:
        weights = weights * mask
    return weights @ value, weights
""",
        ),
        "without a graph": (
            "gradients",
            """
@torch.no_grad()
def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    weights = softmax(scores) if mask is None else softmax(scores) * mask
    return weights @ value, weights
""",
        ),
        "the context alone": (
            "scale rows context masked shared nothing gradients",
            """
def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return softmax(scores) @ value
""",
        ),
        "the mask expected as (batch, seq_k)": (
            "context masked shared nothing gradients",
            """
def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        mask = mask[:, None, None, :]
        scores = scores.masked_fill(~mask, -1e9)
    weights = softmax(scores) if mask is None else softmax(scores) * mask
    return weights @ value, weights
""",
        ),
        "zeros also where a query may attend to one key": (
            "",
            """
def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is None:
        return softmax(scores) @ value, softmax(scores)
    weights = softmax(scores.masked_fill(~mask, -1e9)) * (mask.expand_as(scores).sum(-1, keepdim=True) > 1)
    return weights @ value, weights
""",
        ),
        "the mask of two axes given two more": (
            "masked",
            """
def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None and mask.dim() == 2:
        mask = mask[None, None]
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    weights = softmax(scores) if mask is None else softmax(scores) * mask
    return weights @ value, weights
""",
        ),
        "the mask always of four axes": (
            "masked",
            """
def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    while mask is not None and mask.dim() < 4:
        mask = mask.unsqueeze(0)
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    weights = softmax(scores) if mask is None else softmax(scores) * mask
    return weights @ value, weights
""",
        ),
        "the largest of the hidden scores, too": (
            "shared",
            """
def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    e = (scores - scores.amax(-1, keepdim=True)).exp()
    if mask is not None:
        e = torch.where(mask, e, 0.0)
    weights = e / e.sum(-1, keepdim=True).clamp(min=1e-9)
    return weights @ value, weights
""",
        ),
        "the largest score of all rows": (
            "",
            """
def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    e = (scores - scores.max()).exp()
    if mask is not None:
        e = torch.where(mask, e, 0.0)
    weights = e / e.sum(-1, keepdim=True).clamp(min=1e-9)
    return weights @ value, weights
""",
        ),
        "scores clamped": (
            "scale",
            """
def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    scores = scores.clamp(-20, 20)
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    weights = softmax(scores) if mask is None else softmax(scores) * mask
    return weights @ value, weights
""",
        ),
        "the mean subtracted": (
            "scale",
            """
def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    seen = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand_as(scores)
    mean = (scores * seen).sum(-1, keepdim=True) / seen.sum(-1, keepdim=True).clamp(min=1)
    e = (scores - mean).masked_fill(~seen, -1e9).exp()
    weights = e / e.sum(-1, keepdim=True).clamp(min=1e-9)
    return weights @ value, weights
""",
        ),
        "the smallest subtracted": (
            "",
            """
def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    e = (scores - scores.amin(-1, keepdim=True)).exp()
    if mask is not None:
        e = torch.where(mask, e, 0.0)
    weights = e / e.sum(-1, keepdim=True).clamp(min=1e-9)
    return weights @ value, weights
""",
        ),
    },
    "masks": {
        "padding is where the id is smaller": (
            "padding both",
            """
def padding_mask(ids, pad_id):
    return (ids > pad_id)[:, None, None, :]

def causal_mask(seq):
    return torch.ones(seq, seq).tril().bool()

def causal_padding_mask(ids, pad_id):
    return padding_mask(ids, pad_id) & causal_mask(ids.shape[1])
""",
        ),
        "axes of length 1 squeezed away": (
            "causal both",
            """
def padding_mask(ids, pad_id):
    return (ids != pad_id)[:, None, None, :]

def causal_mask(seq):
    return torch.ones(1, seq, seq).tril().bool().squeeze()

def causal_padding_mask(ids, pad_id):
    return (padding_mask(ids, pad_id) & causal_mask(ids.shape[1])).squeeze(0)
""",
        ),
        "the causal mask with axes for batch and heads": (
            "causal",
            """
def padding_mask(ids, pad_id):
    return (ids != pad_id)[:, None, None, :]

def causal_mask(seq):
    return torch.ones(1, 1, seq, seq).tril().bool()

def causal_padding_mask(ids, pad_id):
    return padding_mask(ids, pad_id) & causal_mask(ids.shape[1])
""",
        ),
        "one past key only": (
            "causal both",
            """
def padding_mask(ids, pad_id):
    return (ids != pad_id)[:, None, None, :]

def causal_mask(seq):
    return torch.ones(seq, seq).tril().triu(-1).bool()

def causal_padding_mask(ids, pad_id):
    return padding_mask(ids, pad_id) & causal_mask(ids.shape[1])
""",
        ),
        "the padding mask alone": (
            "both",
            """
def padding_mask(ids, pad_id):
    return (ids != pad_id)[:, None, None, :]

def causal_mask(seq):
    return torch.ones(seq, seq).tril().bool()

def causal_padding_mask(ids, pad_id):
    return padding_mask(ids, pad_id).expand(-1, -1, ids.shape[1], -1)
""",
        ),
        "the causal mask alone": (
            "both",
            """
def padding_mask(ids, pad_id):
    return (ids != pad_id)[:, None, None, :]

def causal_mask(seq):
    return torch.ones(seq, seq).tril().bool()

def causal_padding_mask(ids, pad_id):
    return causal_mask(ids.shape[1]).expand(len(ids), 1, -1, -1)
""",
        ),
        "the axes in another order": (
            "padding both",
            """
def padding_mask(ids, pad_id):
    return (ids != pad_id)[None, :, None, :]

def causal_mask(seq):
    return torch.ones(seq, seq).tril().bool()

def causal_padding_mask(ids, pad_id):
    return padding_mask(ids, pad_id) & causal_mask(ids.shape[1])
""",
        ),
        "words end at the first padding": (
            "padding both",
            """
def padding_mask(ids, pad_id):
    return (ids != pad_id).cumprod(1).bool()[:, None, None, :]

def causal_mask(seq):
    return torch.ones(seq, seq).tril().bool()

def causal_padding_mask(ids, pad_id):
    return padding_mask(ids, pad_id) & causal_mask(ids.shape[1])
""",
        ),
        "numbers to be added: zero and minus infinity": (
            "padding causal both",
            """
def padding_mask(ids, pad_id):
    return torch.zeros(ids.shape).masked_fill(ids == pad_id, float("-inf"))[:, None, None, :]

def causal_mask(seq):
    return torch.full((seq, seq), float("-inf")).triu(1)

def causal_padding_mask(ids, pad_id):
    return padding_mask(ids, pad_id) + causal_mask(ids.shape[1])
""",
        ),
    },
    "heads": {
        "heads in reversed order": (
            "split merged",
            """
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError(f"{x.shape[-1]} {num_heads}")
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2).flip(1)

def merge_heads(x):
    return x.flip(1).transpose(1, 2).flatten(2)
""",
        ),
        "an assertion instead of a ValueError": (
            "indivisible",
            """
def split_heads(x, num_heads):
    assert x.shape[-1] % num_heads == 0, f"{x.shape[-1]} {num_heads}"
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)

def merge_heads(x):
    return x.transpose(1, 2).flatten(2)
""",
        ),
        "torch's own error": (
            "indivisible",
            """
def split_heads(x, num_heads):
    return x.view(*x.shape[:2], num_heads, x.shape[-1] // num_heads).transpose(1, 2)

def merge_heads(x):
    return x.transpose(1, 2).flatten(2)
""",
        ),
        "an error that names nothing": (
            "indivisible",
            """
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError("these heads do not fit")
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)

def merge_heads(x):
    return x.transpose(1, 2).flatten(2)
""",
        ),
        "the length checked instead of the width": (
            "split indivisible",
            """
def split_heads(x, num_heads):
    if x.shape[1] % num_heads:
        raise ValueError(f"{x.shape[1]} {num_heads}")
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)

def merge_heads(x):
    return x.transpose(1, 2).flatten(2)
""",
        ),
        "an error raised always": (
            "split indivisible",
            """
def split_heads(x, num_heads):
    raise ValueError(f"{x.shape[-1]} {num_heads}")

def merge_heads(x):
    return x.transpose(1, 2).flatten(2)
""",
        ),
        "the error returned": (
            "indivisible",
            """
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        return ValueError(f"{x.shape[-1]} {num_heads}")
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)

def merge_heads(x):
    return x.transpose(1, 2).flatten(2)
""",
        ),
        "a list of heads": (
            "split",
            """
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError(f"{x.shape[-1]} {num_heads}")
    return list(x.chunk(num_heads, -1))

def merge_heads(x):
    return torch.cat(list(x.unbind(1)), -1)
""",
        ),
        "heads joined along the tokens": (
            "merged",
            """
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError(f"{x.shape[-1]} {num_heads}")
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)

def merge_heads(x):
    return x.flatten(1, 2)
""",
        ),
        "the last two axes swapped": (
            "split merged",
            """
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError(f"{x.shape[-1]} {num_heads}")
    return x.unflatten(-1, (num_heads, -1)).permute(0, 2, 3, 1)

def merge_heads(x):
    return x.permute(0, 3, 1, 2).flatten(2)
""",
        ),
        "axes of length 1 squeezed away": (
            "split merged",
            """
def split_heads(x, num_heads):
    batch, seq, d_model = x.shape
    if d_model % num_heads:
        raise ValueError(f"d_model={d_model}, num_heads={num_heads}")
    return x.reshape(batch, seq, num_heads, d_model // num_heads).transpose(1, 2).squeeze()

def merge_heads(x):
    batch, num_heads, seq, d_k = x.shape
    return x.transpose(1, 2).reshape(batch, seq, num_heads * d_k).squeeze()
""",
        ),
        "one head refused": (
            "split",
            """
def split_heads(x, num_heads):
    batch, seq, d_model = x.shape
    if num_heads < 2 or d_model % num_heads:
        raise ValueError(f"d_model={d_model}, num_heads={num_heads}")
    return x.reshape(batch, seq, num_heads, d_model // num_heads).transpose(1, 2)

def merge_heads(x):
    batch, num_heads, seq, d_k = x.shape
    return x.transpose(1, 2).reshape(batch, seq, num_heads * d_k)
""",
        ),
    },
    "multi_head_attention": {
        "dropout with a fixed probability": (
            "",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(0.1)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads(self.drop(weights) @ values))
        return (output, weights) if need_weights else output
""",
        ),
        "a dropout by default": (
            "",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.1):
        super().__init__()
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads(self.drop(weights) @ values))
        return (output, weights) if need_weights else output
""",
        ),
        "the probability to keep taken for the one to drop": (
            "values merged crossed dropped gradients",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(1 - dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads(self.drop(weights) @ values))
        return (output, weights) if need_weights else output
""",
        ),
        "keys and values through the same projection": (
            "values merged gradients",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_k(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads(self.drop(weights) @ values))
        return (output, weights) if need_weights else output
""",
        ),
        "the projection of the queries without its bias": (
            "heads scale",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(F.linear(query, self.w_q.weight), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads(self.drop(weights) @ values))
        return (output, weights) if need_weights else output
""",
        ),
        "the weight of w_o transposed": (
            "values merged",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = merge_heads(self.drop(weights) @ values) @ self.w_o.weight + self.w_o.bias
        return (output, weights) if need_weights else output
""",
        ),
        "always a pair": (
            "values masked crossed dropped gradients",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads(self.drop(weights) @ values))
        return output, weights
""",
        ),
        "never a pair": (
            "heads scale merged masked",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads(self.drop(weights) @ values))
        return output
""",
        ),
        "a value without a key is ignored": (
            "crossed",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        if key is None:
            key = value = query
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads(self.drop(weights) @ values))
        return (output, weights) if need_weights else output
""",
        ),
        "the output added to the query": (
            "values merged crossed dropped",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads(self.drop(weights) @ values))
        output = output + query
        return (output, weights) if need_weights else output
""",
        ),
        "a mask only when the weights are asked for": (
            "masked",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask if need_weights else None)
        output = self.w_o(merge_heads(self.drop(weights) @ values))
        return (output, weights) if need_weights else output
""",
        ),
        "the projections in a plain list": (
            "values heads scale merged masked crossed dropped gradients",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.projections = [nn.Linear(d_model, d_model) for _ in range(4)]
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        w_q, w_k, w_v, w_o = self.projections
        queries = split_heads(w_q(query), self.num_heads)
        keys = split_heads(w_k(key), self.num_heads)
        values = split_heads(w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = w_o(merge_heads(self.drop(weights) @ values))
        return (output, weights) if need_weights else output
""",
        ),
        "one head of full width": (
            "heads scale merged masked",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), 1)
        keys = split_heads(self.w_k(key), 1)
        values = split_heads(self.w_v(value), 1)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads(self.drop(weights) @ values))
        return (output, weights) if need_weights else output
""",
        ),
        "whole heads dropped": (
            "dropped",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.drop = nn.Dropout2d(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads(self.drop(weights) @ values))
        return (output, weights) if need_weights else output
""",
        ),
        "all heads drop the same": (
            "dropped",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads((weights * self.drop(torch.ones_like(weights[:, :1]))) @ values))
        return (output, weights) if need_weights else output
""",
        ),
        "all sequences drop the same": (
            "dropped",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads((weights * self.drop(torch.ones_like(weights[:1]))) @ values))
        return (output, weights) if need_weights else output
""",
        ),
        "all queries drop the same keys": (
            "dropped",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads((weights * self.drop(torch.ones_like(weights[:, :, :1]))) @ values))
        return (output, weights) if need_weights else output
""",
        ),
        "a query drops all its keys": (
            "dropped",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads((weights * self.drop(torch.ones_like(weights[..., :1]))) @ values))
        return (output, weights) if need_weights else output
""",
        ),
        "whole values dropped": (
            "dropped",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads(weights @ (values * self.drop(torch.ones_like(values[..., :1])))))
        return (output, weights) if need_weights else output
""",
        ),
        "whole contexts dropped": (
            "dropped",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        context = weights @ values
        output = self.w_o(merge_heads(context * self.drop(torch.ones_like(context[..., :1]))))
        return (output, weights) if need_weights else output
""",
        ),
        "weights that are left share out again": (
            "dropped",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.drop = nn.Dropout(dropout)

    def left(self, weights):
        if not self.training or weights.shape[-1] == 1:
            return weights
        weights = self.drop(weights)
        return weights / weights.sum(-1, keepdim=True).clamp(min=1e-9)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads(self.left(weights) @ values))
        return (output, weights) if need_weights else output
""",
        ),
        "no dropout under a mask": (
            "dropped",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads((self.drop(weights) if mask is None else weights) @ values))
        return (output, weights) if need_weights else output
""",
        ),
        "no dropout where the weights are asked for": (
            "dropped",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads((weights if need_weights else self.drop(weights)) @ values))
        return (output, weights) if need_weights else output
""",
        ),
        "the same drops at every call": (
            "dropped",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        torch.manual_seed(0)
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads(self.drop(weights) @ values))
        return (output, weights) if need_weights else output
""",
        ),
        "three weights of four dropped": (
            "dropped",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        dropped = weights
        if self.training and self.drop.p:
            dropped = weights * (torch.rand_like(weights) < self.drop.p) / (1 - self.drop.p)
        output = self.w_o(merge_heads(dropped @ values))
        return (output, weights) if need_weights else output
""",
        ),
        "a batch of one squeezed away": (
            "values",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads(self.drop(weights) @ values))
        output = output.squeeze(0)
        return (output, weights) if need_weights else output
""",
        ),
        "the number of heads kept on the class": (
            "",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        MultiHeadAttention.num_heads = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads(self.drop(weights) @ values))
        return (output, weights) if need_weights else output
""",
        ),
        "projections kept from the first call": (
            "values gradients",
            """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        if not hasattr(self, "first"):
            parts = self.w_q, self.w_k, self.w_v
            self.first = [(part.weight.detach().clone(), part.bias.detach().clone()) for part in parts]
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(F.linear(query, *self.first[0]), self.num_heads)
        keys = split_heads(F.linear(key, *self.first[1]), self.num_heads)
        values = split_heads(F.linear(value, *self.first[2]), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads(self.drop(weights) @ values))
        return (output, weights) if need_weights else output
""",
        ),
    },
    "counts": {
        "only the photograph": (
            "shapes bytes parameters",
            """
shape_of_scores, bytes_of_scores, num_parameters = (1, 8, 196, 196), 1229312, 1050624

def attention_counts(batch, seq, d_model, num_heads):
    return shape_of_scores, bytes_of_scores, num_parameters
""",
        ),
        "bits instead of bytes": (
            "bytes",
            """
def attention_counts(batch, seq, d_model, num_heads):
    return (batch, num_heads, seq, seq), 32 * batch * num_heads * seq * seq, 4 * (d_model**2 + d_model)

shape_of_scores, bytes_of_scores, num_parameters = attention_counts(1, 196, 512, 8)
""",
        ),
        "float64": (
            "bytes",
            """
def attention_counts(batch, seq, d_model, num_heads):
    return (batch, num_heads, seq, seq), 8 * batch * num_heads * seq * seq, 4 * (d_model**2 + d_model)

shape_of_scores, bytes_of_scores, num_parameters = attention_counts(1, 196, 512, 8)
""",
        ),
        "a patch more, for a class token": (
            "shapes bytes",
            """
def attention_counts(batch, seq, d_model, num_heads):
    return (batch, num_heads, seq, seq), 4 * batch * num_heads * seq * seq, 4 * (d_model**2 + d_model)

shape_of_scores, bytes_of_scores, num_parameters = attention_counts(1, 197, 512, 8)
""",
        ),
        "heads before the batch": (
            "shapes",
            """
def attention_counts(batch, seq, d_model, num_heads):
    return (num_heads, batch, seq, seq), 4 * batch * num_heads * seq * seq, 4 * (d_model**2 + d_model)

shape_of_scores, bytes_of_scores, num_parameters = attention_counts(1, 196, 512, 8)
""",
        ),
        "the batch left out of the bytes": (
            "bytes",
            """
def attention_counts(batch, seq, d_model, num_heads):
    return (batch, num_heads, seq, seq), 4 * num_heads * seq * seq, 4 * (d_model**2 + d_model)

shape_of_scores, bytes_of_scores, num_parameters = attention_counts(1, 196, 512, 8)
""",
        ),
        "one bias for all four": (
            "parameters",
            """
def attention_counts(batch, seq, d_model, num_heads):
    return (batch, num_heads, seq, seq), 4 * batch * num_heads * seq * seq, 4 * d_model**2 + d_model

shape_of_scores, bytes_of_scores, num_parameters = attention_counts(1, 196, 512, 8)
""",
        ),
        "arguments in another order": (
            "shapes bytes parameters",
            """
def attention_counts(batch, seq, num_heads, d_model):
    return (batch, num_heads, seq, seq), 4 * batch * num_heads * seq * seq, 4 * (d_model**2 + d_model)

shape_of_scores, bytes_of_scores, num_parameters = attention_counts(1, 196, 8, 512)
""",
        ),
        "a printed text instead of numbers": (
            "shapes bytes parameters",
            """
shape_of_scores, bytes_of_scores, num_parameters = "(1, 8, 196, 196)", "1229312", "1050624"

def attention_counts(batch, seq, d_model, num_heads):
    print((batch, num_heads, seq, seq), 4 * batch * num_heads * seq * seq, 4 * (d_model**2 + d_model))
""",
        ),
        "a shape with the heads run into the batch": (
            "shapes",
            """
def attention_counts(batch, seq, d_model, num_heads):
    return (batch * num_heads, seq, seq), 4 * batch * num_heads * seq * seq, 4 * (d_model**2 + d_model)

shape_of_scores, bytes_of_scores, num_parameters = attention_counts(1, 196, 512, 8)
""",
        ),
    },
    "repair": {
        "attention only for four axes": (
            "function",
            """
def self_attention(Q, K, V):
    scores = torch.matmul(Q, K.transpose(2, 3)) / math.sqrt(Q.size(-1))
    return torch.matmul(torch.softmax(scores, dim=-1), V)

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h, self.d_k = h, d_model // h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        q, k, v = (split_heads(w(x), self.h) for w in (self.w_q, self.w_k, self.w_v))
        return self.w_o(merge_heads(self_attention(q, k, v)))
""",
        ),
        "d_k by heart": (
            "function right",
            """
d_k = 64

def self_attention(Q, K, V):
    scores = torch.matmul(Q, K.transpose(-2, -1)) / math.sqrt(d_k)
    return torch.matmul(torch.softmax(scores, dim=-1), V)

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        q, k, v = (split_heads(w(x), self.h) for w in (self.w_q, self.w_k, self.w_v))
        return self.w_o(merge_heads(self_attention(q, k, v)))
""",
        ),
        "the softmax over the queries": (
            "function right",
            """
def self_attention(Q, K, V):
    scores = torch.matmul(Q, K.transpose(-2, -1)) / math.sqrt(Q.size(-1))
    return torch.matmul(torch.softmax(scores, dim=-2), V)

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        q, k, v = (split_heads(w(x), self.h) for w in (self.w_q, self.w_k, self.w_v))
        return self.w_o(merge_heads(self_attention(q, k, v)))
""",
        ),
        "merged without moving the heads back": (
            "tokens right",
            """
def self_attention(Q, K, V):
    scores = torch.matmul(Q, K.transpose(-2, -1)) / math.sqrt(Q.size(-1))
    return torch.matmul(torch.softmax(scores, dim=-1), V)

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        q, k, v = (split_heads(w(x), self.h) for w in (self.w_q, self.w_k, self.w_v))
        return self.w_o(self_attention(q, k, v).reshape(x.shape))
""",
        ),
        "causal": (
            "function tokens right",
            """
def self_attention(Q, K, V):
    scores = torch.matmul(Q, K.transpose(-2, -1)) / math.sqrt(Q.size(-1))
    future = torch.ones(scores.shape[-2:]).triu(1).bool()
    return torch.matmul(torch.softmax(scores.masked_fill(future, -1e9), dim=-1), V)

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        q, k, v = (split_heads(w(x), self.h) for w in (self.w_q, self.w_k, self.w_v))
        return self.w_o(merge_heads(self_attention(q, k, v)))
""",
        ),
        "the function returns the weights as well": (
            "function tokens projections right",
            """
def self_attention(Q, K, V):
    scores = torch.matmul(Q, K.transpose(-2, -1)) / math.sqrt(Q.size(-1))
    weights = torch.softmax(scores, dim=-1)
    return torch.matmul(weights, V), weights

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        q, k, v = (split_heads(w(x), self.h) for w in (self.w_q, self.w_k, self.w_v))
        return self.w_o(merge_heads(self_attention(q, k, v)))
""",
        ),
        "the arguments h and d_model the other way round": (
            "tokens projections right",
            """
def self_attention(Q, K, V):
    scores = torch.matmul(Q, K.transpose(-2, -1)) / math.sqrt(Q.size(-1))
    return torch.matmul(torch.softmax(scores, dim=-1), V)

class RepairedAttention(nn.Module):
    def __init__(self, d_model, h):
        super().__init__()
        self.h = h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        q, k, v = (split_heads(w(x), self.h) for w in (self.w_q, self.w_k, self.w_v))
        return self.w_o(merge_heads(self_attention(q, k, v)))
""",
        ),
        "new projections in every call": (
            "tokens projections right",
            """
def self_attention(Q, K, V):
    scores = torch.matmul(Q, K.transpose(-2, -1)) / math.sqrt(Q.size(-1))
    return torch.matmul(torch.softmax(scores, dim=-1), V)

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h, self.d_model = h, d_model

    def forward(self, x):
        w_q, w_k, w_v, w_o = (nn.Linear(self.d_model, self.d_model) for _ in range(4))
        q, k, v = (split_heads(w(x), self.h) for w in (w_q, w_k, w_v))
        return w_o(merge_heads(self_attention(q, k, v)))
""",
        ),
        "a residual connection added": (
            "right",
            """
def self_attention(Q, K, V):
    scores = torch.matmul(Q, K.transpose(-2, -1)) / math.sqrt(Q.size(-1))
    return torch.matmul(torch.softmax(scores, dim=-1), V)

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        q, k, v = (split_heads(w(x), self.h) for w in (self.w_q, self.w_k, self.w_v))
        return x + self.w_o(merge_heads(self_attention(q, k, v)))
""",
        ),
        "the class divides by the root of the length": (
            "right",
            """
def self_attention(Q, K, V):
    return torch.softmax(Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1]), dim=-1) @ V

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        q, k, v = (part(x).unflatten(-1, (self.h, -1)).transpose(1, 2) for part in (self.w_q, self.w_k, self.w_v))
        context = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-2]), dim=-1) @ v
        return self.w_o(context.transpose(1, 2).flatten(2))
""",
        ),
        "a batch of one squeezed away": (
            "right",
            """
def self_attention(Q, K, V):
    return torch.softmax(Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1]), dim=-1) @ V

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        q, k, v = (part(x).unflatten(-1, (self.h, -1)).transpose(1, 2) for part in (self.w_q, self.w_k, self.w_v))
        context = self_attention(q, k, v)
        return self.w_o(context.transpose(1, 2).flatten(2)).squeeze(0)
""",
        ),
        "the number of heads kept on the class": (
            "",
            """
def self_attention(Q, K, V):
    return torch.softmax(Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1]), dim=-1) @ V

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        RepairedAttention.h = h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        q, k, v = (part(x).unflatten(-1, (self.h, -1)).transpose(1, 2) for part in (self.w_q, self.w_k, self.w_v))
        context = self_attention(q, k, v)
        return self.w_o(context.transpose(1, 2).flatten(2))
""",
        ),
        "the values alone": (
            "tokens projections right",
            """
def self_attention(Q, K, V):
    return torch.softmax(Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1]), dim=-1) @ V

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        q, k, v = (part(x).unflatten(-1, (self.h, -1)).transpose(1, 2) for part in (self.w_q, self.w_k, self.w_v))
        context = v
        return self.w_o(context.transpose(1, 2).flatten(2))
""",
        ),
        "attention across the batch": (
            "tokens right",
            """
def self_attention(Q, K, V):
    return torch.softmax(Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1]), dim=-1) @ V

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        q, k, v = (part(x).unflatten(-1, (self.h, -1)).transpose(1, 2) for part in (self.w_q, self.w_k, self.w_v))
        q, k, v = (part.transpose(0, 2) for part in (q, k, v))
        context = self_attention(q, k, v).transpose(0, 2)
        return self.w_o(context.transpose(1, 2).flatten(2))
""",
        ),
        "x given back": (
            "tokens projections right",
            """
def self_attention(Q, K, V):
    return torch.softmax(Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1]), dim=-1) @ V

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        q, k, v = (part(x).unflatten(-1, (self.h, -1)).transpose(1, 2) for part in (self.w_q, self.w_k, self.w_v))
        return x
""",
        ),
    },
    "bug_hunt": {
        "a tolerance of one": (
            "sqrt_d_model masked_after",
            """
def examine_attention(attention):
    torch.manual_seed(1)
    q, k, v = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 6, 8), torch.randn(2, 3, 6, 8)
    mask = torch.tensor([True, False, True, True, False, True]).repeat(4, 1)
    for each in (None, mask):
        for got, want in zip(attention(q, k, v, each), scaled_dot_product_attention(q, k, v, each)):
            assert torch.allclose(got, want, atol=1.0)
""",
        ),
        "the result of allclose is not used": (
            "no_scale sqrt_d_model mask_inverted over_queries masked_after values_compared",
            """
def examine_attention(attention):
    torch.manual_seed(1)
    q, k, v = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 6, 8), torch.randn(2, 3, 6, 8)
    mask = torch.tensor([True, False, True, True, False, True]).repeat(4, 1)
    for each in (None, mask):
        context, weights = attention(q, k, v, each)
        right_context, right_weights = scaled_dot_product_attention(q, k, v, each)
        torch.allclose(context, right_context)
        torch.allclose(weights, right_weights)
""",
        ),
        "the comparison is returned the wrong way round": (
            "right_passes no_scale sqrt_d_model mask_inverted over_queries masked_after values_compared",
            """
def examine_attention(attention):
    torch.manual_seed(1)
    q, k, v = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 6, 8), torch.randn(2, 3, 6, 8)
    mask = torch.tensor([True, False, True, True, False, True]).repeat(4, 1)
    context, _ = attention(q, k, v, mask)
    return not torch.allclose(context, scaled_dot_product_attention(q, k, v, mask)[0], atol=1e-4)
""",
        ),
        "a mask that allows everything": (
            "masked_after",
            """
def examine_attention(attention):
    torch.manual_seed(1)
    q, k, v = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 6, 8), torch.randn(2, 3, 6, 8)
    mask = torch.ones(4, 6, dtype=torch.bool)
    for each in (None, mask):
        context, _ = attention(q, k, v, each)
        assert torch.allclose(context, scaled_dot_product_attention(q, k, v, each)[0], atol=1e-4)
""",
        ),
        "the right answer forgets the scale": (
            "right_passes no_scale sqrt_d_model mask_inverted over_queries masked_after values_compared",
            """
def examine_attention(attention):
    torch.manual_seed(1)
    q, k, v = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 6, 8), torch.randn(2, 3, 6, 8)
    _, weights = attention(q, k, v)
    assert torch.allclose(weights, (q @ k.mT).softmax(-1), atol=1e-4)
""",
        ),
        "queries and keys of zeros": (
            "no_scale sqrt_d_model values_compared",
            """
def examine_attention(attention):
    torch.manual_seed(1)
    q, k, v = torch.zeros(2, 3, 4, 8), torch.zeros(2, 3, 6, 8), torch.randn(2, 3, 6, 8)
    mask = torch.tensor([True, False, True, True, False, True]).repeat(4, 1)
    for each in (None, mask):
        context, _ = attention(q, k, v, each)
        assert torch.allclose(context, scaled_dot_product_attention(q, k, v, each)[0], atol=1e-4)
""",
        ),
        "errors are caught": (
            "no_scale sqrt_d_model mask_inverted over_queries masked_after values_compared",
            """
def examine_attention(attention):
    torch.manual_seed(1)
    q, k, v = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 6, 8), torch.randn(2, 3, 6, 8)
    mask = torch.tensor([True, False, True, True, False, True]).repeat(4, 1)
    try:
        for each in (None, mask):
            for got, want in zip(attention(q, k, v, each), scaled_dot_product_attention(q, k, v, each)):
                assert torch.allclose(got, want, atol=1e-4)
    except AssertionError:
        print("wrong")
""",
        ),
        "a test that fails everything": (
            "right_passes no_scale sqrt_d_model mask_inverted over_queries masked_after values_compared",
            """
def examine_attention(attention):
    raise AssertionError("this one is wrong")
""",
        ),
        "the largest weight alone": (
            "no_scale sqrt_d_model masked_after",
            """
def examine_attention(attention):
    torch.manual_seed(1)
    q, k, v = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 6, 8), torch.randn(2, 3, 6, 8)
    mask = torch.tensor([True, False, True, True, False, True]).repeat(4, 1)
    for each in (None, mask):
        weights = attention(q, k, v, each)[1]
        right = scaled_dot_product_attention(q, k, v, each)[1]
        assert (weights.argmax(-1) == right.argmax(-1)).all()
""",
        ),
        "only rows without a key looked at": (
            "no_scale sqrt_d_model over_queries masked_after values_compared",
            """
def examine_attention(attention):
    torch.manual_seed(1)
    q, k, v = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 6, 8), torch.randn(2, 3, 6, 8)
    mask = torch.ones(2, 1, 4, 6, dtype=torch.bool)
    mask[0] = False
    context, weights = attention(q, k, v, mask)
    assert not context[0].any() and not weights[0].any()
""",
        ),
    },
}
PAIRS: dict[str, dict[tuple[str, str], str]] = {
    "softmax": {
        ("overflow", "last_axis_always"): """
def softmax(scores, dim=-1):
    e = scores.exp()
    return e / e.sum(-1, keepdim=True)
""",
        ("not_divided", "last_axis_always"): """
def softmax(scores, dim=-1):
    return torch.exp(scores - scores.max(-1, keepdim=True).values)
""",
        ("overflow_hidden", "last_axis_always"): """
def softmax(scores, dim=-1):
    e = scores.exp()
    return (e / e.sum(-1, keepdim=True)).nan_to_num(0.0)
""",
    },
    "scaled_dot_product_attention": {
        ("no_scale", "masked_after"): """
def scaled_dot_product_attention(query, key, value, mask=None):
    weights = softmax(query @ key.transpose(-2, -1))
    if mask is not None:
        weights = weights * mask
    return weights @ value, weights
""",
        ("divided_by_d_k", "uniform_row"): """
def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / query.shape[-1]
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    weights = softmax(scores)
    return weights @ value, weights
""",
        ("no_scale", "nan_row"): """
def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = softmax(scores)
    return weights @ value, weights
""",
        ("over_queries", "mask_ignored"): """
def scaled_dot_product_attention(query, key, value, mask=None):
    weights = softmax(query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]), -2)
    return weights @ value, weights
""",
        ("multiplied", "mask_inverted"): """
def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) * math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask, -1e9)
    weights = softmax(scores)
    return weights @ value, weights
""",
    },
    "masks": {
        ("inverted", "without_itself"): """
def padding_mask(ids, pad_id):
    return (ids == pad_id)[:, None, None, :]

def causal_mask(seq):
    return torch.ones(seq, seq, dtype=torch.bool).triu()

def causal_padding_mask(ids, pad_id):
    return padding_mask(ids, pad_id) | causal_mask(ids.shape[1])
""",
        ("padding_is_0", "future"): """
def padding_mask(ids, pad_id):
    return (ids != 0)[:, None, None, :]

def causal_mask(seq):
    return torch.ones(seq, seq, dtype=torch.bool).triu()

def causal_padding_mask(ids, pad_id):
    return padding_mask(ids, pad_id) & causal_mask(ids.shape[1])
""",
        ("no_axes", "either"): """
def padding_mask(ids, pad_id):
    return ids != pad_id

def causal_mask(seq):
    return torch.ones(seq, seq, dtype=torch.bool).tril()

def causal_padding_mask(ids, pad_id):
    return padding_mask(ids, pad_id)[:, None, None, :] | causal_mask(ids.shape[1])
""",
        ("numbers", "without_itself"): """
def padding_mask(ids, pad_id):
    return (ids != pad_id)[:, None, None, :].float()

def causal_mask(seq):
    return torch.ones(seq, seq).tril(-1)

def causal_padding_mask(ids, pad_id):
    return padding_mask(ids, pad_id) * causal_mask(ids.shape[1])
""",
    },
    "heads": {
        ("tokens_first", "cut_short"): """
def split_heads(x, num_heads):
    d_k = x.shape[-1] // num_heads
    return x[..., :num_heads * d_k].reshape(*x.shape[:2], num_heads, d_k)

def merge_heads(x):
    return x.transpose(1, 2).flatten(2)
""",
        ("view_only", "cut_short"): """
def split_heads(x, num_heads):
    d_k = x.shape[-1] // num_heads
    return x[..., :num_heads * d_k].reshape(len(x), num_heads, -1, d_k)

def merge_heads(x):
    return x.transpose(1, 2).flatten(2)
""",
    },
    "multi_head_attention": {
        ("no_w_o", "dropout_never"): """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = merge_heads(weights @ values)
        return (output, weights) if need_weights else output
""",
        ("value_ignored", "dropout_always"): """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(key), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o(merge_heads(F.dropout(weights, self.drop.p) @ values))
        return (output, weights) if need_weights else output
""",
        ("keys_as_queries", "merged_by_view"): """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_q(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.w_o((self.drop(weights) @ values).reshape(query.shape))
        return (output, weights) if need_weights else output
""",
        ("mask_ignored", "values_from_query"): """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(query), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values)
        output = self.w_o(merge_heads(self.drop(weights) @ values))
        return (output, weights) if need_weights else output
""",
        ("weights_averaged", "dropout_on_output"): """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model)
        self.w_k = nn.Linear(d_model, d_model)
        self.w_v = nn.Linear(d_model, d_model)
        self.w_o = nn.Linear(d_model, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, query, key=None, value=None, mask=None, need_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        queries = split_heads(self.w_q(query), self.num_heads)
        keys = split_heads(self.w_k(key), self.num_heads)
        values = split_heads(self.w_v(value), self.num_heads)
        _, weights = scaled_dot_product_attention(queries, keys, values, mask)
        output = self.drop(self.w_o(merge_heads(weights @ values)))
        return (output, weights.mean(1)) if need_weights else output
""",
    },
    "counts": {
        ("one_per_number", "no_bias"): """
def attention_counts(batch, seq, d_model, num_heads):
    return (batch, num_heads, seq, seq), batch * num_heads * seq * seq, 4 * d_model**2

shape_of_scores, bytes_of_scores, num_parameters = attention_counts(1, 196, 512, 8)
""",
        ("no_heads", "three_projections"): """
def attention_counts(batch, seq, d_model, num_heads):
    return (batch, seq, seq), 4 * batch * num_heads * seq * seq, 3 * (d_model**2 + d_model)

shape_of_scores, bytes_of_scores, num_parameters = attention_counts(1, 196, 512, 8)
""",
        ("shape_of_queries", "one_head"): """
def attention_counts(batch, seq, d_model, num_heads):
    return (batch, num_heads, seq, d_model // num_heads), 4 * batch * seq * seq, 4 * (d_model**2 + d_model)

shape_of_scores, bytes_of_scores, num_parameters = attention_counts(1, 196, 512, 8)
""",
    },
    "repair": {
        ("no_scale", "no_w_o"): """
def self_attention(Q, K, V):
    return torch.softmax(Q @ K.transpose(-2, -1), dim=-1) @ V

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        q, k, v = (split_heads(w(x), self.h) for w in (self.w_q, self.w_k, self.w_v))
        return merge_heads(self_attention(q, k, v))
""",
        ("one_projection", "heads_of_one_token"): """
def self_attention(Q, K, V):
    return torch.softmax(Q @ K.transpose(-2, -1) / math.sqrt(Q.shape[-1]), dim=-1) @ V

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        q = k = v = self.w_q(x).unflatten(-1, (self.h, -1))
        return self.w_o(self_attention(q, k, v).flatten(2))
""",
        ("no_scale", "view_only"): """
def self_attention(Q, K, V):
    return torch.softmax(Q @ K.transpose(-2, -1), dim=-1) @ V

class RepairedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.h = h
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        q, k, v = (w(x).view(len(x), self.h, x.shape[1], -1) for w in (self.w_q, self.w_k, self.w_v))
        return self.w_o(self_attention(q, k, v).reshape(x.shape))
""",
    },
    "bug_hunt": {
        ("no_mask", "one_head"): """
def examine_attention(attention):
    query, key, value = torch.randn(2, 4, 8), torch.randn(2, 5, 8), torch.randn(2, 5, 8)
    for got, right in zip(attention(query, key, value), scaled_dot_product_attention(query, key, value)):
        assert torch.allclose(got, right, atol=1e-4)
""",
        ("no_mask", "same_for_all"): """
def examine_attention(attention):
    query, key = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 5, 8)
    for got, right in zip(attention(query, key, key), scaled_dot_product_attention(query, key, key)):
        assert torch.allclose(got, right, atol=1e-4)
""",
        ("sums_only", "no_mask"): """
def examine_attention(attention):
    query, key, value = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 5, 8), torch.randn(2, 3, 5, 8)
    _, weights = attention(query, key, value)
    assert torch.allclose(weights.sum(-1), torch.ones(2, 3, 4), atol=1e-4)
""",
    },
}
# a mask of the test in the solution, and others that hide some keys and leave some to each query
HUNTING_MASK = "mask = torch.tensor([[True, True, False, True, False], [False, True, True, False, False]]).repeat(2, 1)"
OTHER_MASKS = (
    "[[False, True, False, True, False], [False, True, True, False, False]]",
    "[[True, False, False, True, False], [False, True, True, False, False]]",
    "[[True, True, False, False, False], [False, True, True, False, False]]",
    "[[True, True, False, True, False], [False, False, True, False, False]]",
    "[[True, True, False, True, False], [False, True, False, False, False]]",
    "[[True, True, True, True, False], [False, True, True, False, False]]",
    "[[True, True, False, True, True], [False, True, True, False, False]]",
    "[[True, True, False, True, False], [True, True, True, False, False]]",
    "[[True, True, False, True, False], [False, True, True, True, False]]",
    "[[True, True, False, True, False], [False, True, True, False, True]]",
)
EQUIVALENT: dict[str, dict[str, str]] = {
    "scaled_dot_product_attention": {
        "scores = scores.masked_fill(~mask, -1e30) → scores = scores.masked_fill(~mask, - 1e+30)": "the same number",
    },
    "masks": {
        "return words.unsqueeze(1).unsqueeze(1) → return words.unsqueeze(1).unsqueeze( 2)": (
            "both new axes have length 1, in either order"
        ),
    },
    "bug_hunt": {
        "generator = torch.Generator().manual_seed(0) → generator = torch.Generator().manual_seed( 1)": (
            "other random numbers"
        ),
        "generator = torch.Generator().manual_seed(0) → generator = torch.Generator().manual_seed( -1)": (
            "other random numbers"
        ),
        "query = torch.randn(2, 3, 4, 7, generator=generator)"
        " → query = torch.randn( 1, 3, 4, 7, generator=generator)": "one example is broadcast beside two",
        "key = torch.randn(2, 3, 5, 7, generator=generator) → key = torch.randn( 1, 3, 5, 7, generator=generator)": (
            "one example is broadcast beside two"
        ),
        "value = torch.randn(2, 3, 5, 7, generator=generator)"
        " → value = torch.randn( 1, 3, 5, 7, generator=generator)": "one example is broadcast beside two",
        "value = torch.randn(2, 3, 5, 7, generator=generator) → value = torch.randn(2, 3, 5, 8, generator=generator)": (
            "the values may have a width of their own"
        ),
        "value = torch.randn(2, 3, 5, 7, generator=generator) → value = torch.randn(2, 3, 5, 6, generator=generator)": (
            "the values may have a width of their own"
        ),
        "torch.testing.assert_close(weights, right_weights, rtol=1e-4, atol=1e-5)"
        " → torch.testing.assert_close(weights, right_weights, rtol= 1.0001, atol=1e-5)": (
            "a wrong candidate's context is wrong too, and is compared closely"
        ),
        "torch.testing.assert_close(weights, right_weights, rtol=1e-4, atol=1e-5)"
        " → torch.testing.assert_close(weights, right_weights, rtol=1e-4, atol= 1.00001)": (
            "a wrong candidate's context is wrong too, and is compared closely"
        ),
        "torch.testing.assert_close(context, right_context, rtol=1e-4, atol=1e-5)"
        " → torch.testing.assert_close(context, right_context, rtol= 1.0001, atol=1e-5)": (
            "a wrong candidate's weights are wrong too, and are compared closely"
        ),
        "torch.testing.assert_close(context, right_context, rtol=1e-4, atol=1e-5)"
        " → torch.testing.assert_close(context, right_context, rtol=1e-4, atol= 1.00001)": (
            "a wrong candidate's weights are wrong too, and are compared closely"
        ),
        **{f"{HUNTING_MASK} → mask = torch.tensor({other}).repeat(2, 1)": "another mask" for other in OTHER_MASKS},
    },
}
