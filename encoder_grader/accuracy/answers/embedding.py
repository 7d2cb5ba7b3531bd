from textwrap import indent

# --- right answers ---------------------------------------------------------------------------------------------------

ONE_HOT_RIGHT = {
    "loops": """
def one_hot(ids, vocab_size):
    out = torch.zeros(ids.shape[0], ids.shape[1], vocab_size)
    for b in range(ids.shape[0]):
        for s in range(ids.shape[1]):
            out[b, s, ids[b, s]] = 1
    return out

def lookup_by_product(ids, table):
    hot = one_hot(ids, table.shape[0])
    return torch.stack([hot[b] @ table for b in range(len(ids))])

def table_gradient(ids, upstream, vocab_size):
    gradient = torch.zeros(vocab_size, upstream.shape[-1])
    for b in range(ids.shape[0]):
        for s in range(ids.shape[1]):
            gradient[ids[b, s]] += upstream[b, s]
    return gradient
""",
    "identity matrix and autograd": """
def one_hot(ids, vocab_size):
    return torch.eye(vocab_size)[ids]

def lookup_by_product(ids, table):
    return torch.einsum("bsv,vd->bsd", one_hot(ids, len(table)), table)

def table_gradient(ids, upstream, vocab_size):
    table = torch.zeros(vocab_size, upstream.shape[-1], requires_grad=True)
    lookup_by_product(ids, table).backward(upstream)
    return table.grad
""",
    "float64": """
def one_hot(ids, vocab_size):
    return (ids[..., None] == torch.arange(vocab_size)).double()

def lookup_by_product(ids, table):
    return one_hot(ids, len(table)) @ table.double()

def table_gradient(ids, upstream, vocab_size):
    gradient = torch.zeros(vocab_size, upstream.shape[-1])
    return gradient.index_add_(0, ids.flatten(), upstream.flatten(0, 1))
""",
    "NumPy": """
import numpy as np

def one_hot(ids, vocab_size):
    return np.eye(vocab_size, dtype=np.float32)[ids.numpy()]

def lookup_by_product(ids, table):
    return one_hot(ids, len(table)) @ table.numpy()

def table_gradient(ids, upstream, vocab_size):
    gradient = np.zeros((vocab_size, upstream.shape[-1]), np.float32)
    np.add.at(gradient, ids.numpy(), upstream.numpy())
    return gradient
""",
    "golfed": """
one_hot=lambda i,v:1.*(i[...,None]==torch.arange(v))
lookup_by_product=lambda i,t:one_hot(i,len(t))@t
table_gradient=lambda i,u,v:one_hot(i,v).flatten(0,1).T@u.flatten(0,1)
""",
    "vmapped": """
def one_hot(ids, vocab_size):
    return torch.vmap(torch.vmap(lambda i: (i == torch.arange(vocab_size)).float()))(ids)

lookup_by_product = torch.vmap(lambda row, table: one_hot(row[None], len(table))[0] @ table, in_dims=(0, None))

def table_gradient(ids, upstream, vocab_size):
    each = torch.vmap(lambda row, above: one_hot(row[None], vocab_size)[0].mT @ above)
    return each(ids, upstream).sum(0)
""",
    "torch.func.vjp": """
def one_hot(ids, vocab_size):
    flat = torch.zeros(ids.numel() * vocab_size)
    flat[torch.arange(ids.numel()) * vocab_size + ids.flatten()] = 1
    return flat.reshape(*ids.shape, vocab_size)

def lookup_by_product(ids, table):
    return (one_hot(ids, len(table)).flatten(0, 1).mm(table)).unflatten(0, ids.shape)

def table_gradient(ids, upstream, vocab_size):
    _, pull_back = torch.func.vjp(
        lambda table: lookup_by_product(ids, table), torch.zeros(vocab_size, upstream.shape[-1])
    )
    return pull_back(upstream)[0]
""",
    "keyword-only helpers and partial": """
import functools

def _hot(*, ids, vocab_size, on):
    return torch.where(ids[..., None] == torch.arange(vocab_size), on, 0.0)

def one_hot(ids, /, vocab_size):
    return _hot(ids=ids, vocab_size=vocab_size, on=1.0)

def _look(hot, ids, table):
    return torch.tensordot(hot(ids, len(table)), table, dims=1)

lookup_by_product = functools.partial(_look, one_hot)

def table_gradient(ids, upstream, vocab_size):
    return torch.tensordot(one_hot(ids, vocab_size), upstream, dims=([0, 1], [0, 1]))
""",
    "decorated, with prints and warnings": """
import functools
import sys
import warnings

def loud(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        print(f.__name__)
        warnings.warn("called")
        print("called", file=sys.stderr)
        return f(*args, **kwargs)
    return inner

@loud
def one_hot(ids, vocab_size):
    return torch.eye(vocab_size).index_select(0, ids.flatten()).unflatten(0, ids.shape)

@loud
def lookup_by_product(ids, table):
    return one_hot(ids, len(table)).matmul(table)

@loud
def table_gradient(ids, upstream, vocab_size):
    return torch.stack([upstream[ids == word].sum(0) for word in range(vocab_size)])
""",
    "callable objects": """
class Hot:
    def __call__(self, ids, vocab_size):
        return torch.nn.init.eye_(torch.empty(vocab_size, vocab_size))[ids]

class Lookup:
    hot = Hot()

    def __call__(self, ids, table):
        return (self.hot(ids, len(table)).unsqueeze(-1) * table).sum(-2)

class Gradient(Lookup):
    def __call__(self, ids, upstream, vocab_size):
        return (self.hot(ids, vocab_size).unsqueeze(-1) * upstream.unsqueeze(-2)).sum((0, 1))

one_hot, lookup_by_product, table_gradient = Hot(), Lookup(), Gradient()
""",
    "a sparse gradient": """
def one_hot(ids, vocab_size):
    places = torch.cat([torch.ones_like(ids).nonzero().T, ids.reshape(1, -1)])
    return torch.sparse_coo_tensor(places, torch.ones(ids.numel()), (*ids.shape, vocab_size)).to_dense()

def lookup_by_product(ids, table):
    return one_hot(ids, len(table)) @ table

def table_gradient(ids, upstream, vocab_size):
    return torch.sparse_coo_tensor(ids.reshape(1, -1), upstream.flatten(0, 1), (vocab_size, upstream.shape[-1]))
""",
    "a tensor subclass": """
class Mine(Tensor):
    pass

def one_hot(ids, vocab_size):
    return (ids[..., None] == torch.arange(vocab_size)).float().as_subclass(Mine)

def lookup_by_product(ids, table):
    return torch.bmm(one_hot(ids, len(table)), table.expand(len(ids), *table.shape))

def table_gradient(ids, upstream, vocab_size):
    return torch.bmm(one_hot(ids, vocab_size).mT, upstream).sum(0)
""",
    "in place on its input": """
def one_hot(ids, vocab_size):
    out = torch.zeros(*ids.shape, vocab_size).scatter_(-1, ids[..., None], 1.0)
    ids.zero_()
    return out

def lookup_by_product(ids, table):
    return one_hot(ids.clone(), len(table)) @ table

def table_gradient(ids, upstream, vocab_size):
    return one_hot(ids, vocab_size).flatten(0, 1).mT @ upstream.flatten(0, 1)
""",
    "changed global settings": """
torch.set_default_dtype(torch.float64)
torch.set_grad_enabled(False)

def one_hot(ids, vocab_size):
    return ids.unsqueeze(-1).eq(torch.arange(vocab_size)).to(torch.get_default_dtype())

def lookup_by_product(ids, table):
    return one_hot(ids, len(table)) @ table

def table_gradient(ids, upstream, vocab_size):
    return torch.einsum("bsv,bsd->vd", one_hot(ids, vocab_size), upstream)
""",
    "settings changed inside": """
def one_hot(ids, vocab_size):
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    return (ids[..., None] - torch.arange(vocab_size)).abs().clamp(max=1).mul(-1).add(1).float()

def lookup_by_product(ids, table):
    return one_hot(ids, len(table)) @ table

def table_gradient(ids, upstream, vocab_size):
    return (upstream.mT @ one_hot(ids, vocab_size)).sum(0).T
""",
    "not contiguous": """
def one_hot(ids, vocab_size):
    return torch.stack([(ids == word).float() for word in range(vocab_size)]).movedim(0, -1)

def lookup_by_product(ids, table):
    return (table.T @ one_hot(ids, len(table)).mT).mT

def table_gradient(ids, upstream, vocab_size):
    return (upstream.flatten(0, 1).T @ one_hot(ids, vocab_size).flatten(0, 1)).T
""",
    "a Parameter": """
def one_hot(ids, vocab_size):
    return nn.Parameter((ids[..., None] == torch.arange(vocab_size)).float())

def lookup_by_product(ids, table):
    return nn.functional.linear(one_hot(ids, len(table)), table.T)

def table_gradient(ids, upstream, vocab_size):
    flat = upstream.flatten(0, 1)
    return torch.zeros(vocab_size, flat.shape[1]).scatter_add(0, ids.reshape(-1, 1).expand_as(flat), flat)
""",
    "lists and bincount": """
def one_hot(ids, vocab_size):
    return torch.tensor([[[float(k == i) for k in range(vocab_size)] for i in row] for row in ids.tolist()])

def lookup_by_product(ids, table):
    def row_of(hot):
        return sum(weight * row for weight, row in zip(hot, table))
    return torch.stack([torch.stack([row_of(hot) for hot in sentence]) for sentence in one_hot(ids, len(table))])

def table_gradient(ids, upstream, vocab_size):
    columns = [
        torch.bincount(ids.flatten(), weights=column.flatten(), minlength=vocab_size)
        for column in upstream.unbind(-1)
    ]
    return torch.stack(columns, dim=1)
""",
    "recursion over the tokens": """
def one_hot(ids, vocab_size):
    if ids.dim() == 0:
        return torch.tensor([float(word == ids) for word in range(vocab_size)])
    return torch.stack([one_hot(part, vocab_size) for part in ids])

def lookup_by_product(ids, table):
    if ids.dim() == 0:
        return one_hot(ids, len(table)) @ table
    return torch.stack([lookup_by_product(part, table) for part in ids])

def table_gradient(ids, upstream, vocab_size):
    if ids.dim() == 0:
        return torch.outer(one_hot(ids, vocab_size), upstream)
    return sum(table_gradient(i, u, vocab_size) for i, u in zip(ids, upstream))
""",
}

TOKEN_RIGHT = {
    "a bare parameter under another name": """
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        self.d_model, self.pad_id = d_model, pad_id
        self.table = nn.Parameter(torch.randn(vocab_size, d_model) / d_model**0.5)

    def forward(self, ids):
        x = self.table[ids] * self.d_model**0.5
        return x if self.pad_id is None else x * (ids != self.pad_id)[..., None]
""",
    "padding zeroed through .data, warnings on stderr": """
import warnings

class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        warnings.warn("made by hand")
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
        self.embedding.weight.data = torch.randn(vocab_size, d_model) * math.sqrt(1 / d_model)
        if pad_id is not None:
            self.embedding.weight.data[pad_id].zero_()

    def forward(self, ids):
        print("ids", tuple(ids.shape))
        out = self.embedding(ids)
        out *= math.sqrt(self.embedding.embedding_dim)
        return out
""",
    "a subclass of nn.Embedding, with load_reference": """
class TokenEmbedding(nn.Embedding):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__(vocab_size, d_model, padding_idx=pad_id)
        nn.init.normal_(self.weight, 0, d_model**-0.5)
        self._fill_padding_idx_with_zero()

    def load_reference(self, weights):
        self.load_state_dict({"weight": weights["embedding.weight"]})

    def forward(self, ids):
        return super().forward(ids) * self.embedding_dim**0.5
""",
    "float64": """
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id, dtype=torch.float64)
        with torch.no_grad():
            self.embedding.weight.copy_(torch.randn(vocab_size, d_model) / d_model**0.5)
            if pad_id is not None:
                self.embedding.weight[pad_id] *= 0

    def forward(self, ids):
        return self.embedding(ids).mul(self.embedding.embedding_dim**0.5)
""",
    "a buffer for the scale": """
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        if pad_id is not None:
            nn.init.zeros_(self.embedding.weight[pad_id])
        self.register_buffer("scale", torch.tensor(d_model).sqrt())

    def forward(self, ids):
        return self.embedding(ids) * self.scale
""",
    "sparse gradients": """
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id, sparse=True)
        for row in range(vocab_size):
            with torch.no_grad():
                self.embedding.weight[row].normal_(0, 1 / math.sqrt(d_model)).mul_(row != pad_id)

    def forward(self, ids):
        return self.embedding(ids) * self.embedding.embedding_dim**0.5
""",
    "submodules": """
class Scale(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor

class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
        self.post = nn.Sequential(nn.Identity(), Scale(math.sqrt(d_model)))
        self.apply(self.draw)

    def draw(self, module):
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
            if module.padding_idx is not None:
                nn.init.zeros_(module.weight[module.padding_idx])

    def forward(self, ids):
        return self.post(self.embedding(ids))
""",
    "functional, with a hook on the weight's gradient": """
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, *, pad_id=None):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        weight = self.embedding.weight
        weight.data = torch.randn_like(weight) / d_model**0.5
        if pad_id is not None:
            weight.data[pad_id] = 0
            weight.register_hook(lambda gradient: gradient.index_fill(0, torch.tensor([pad_id]), 0))
        self.scale = d_model**0.5

    def forward(self, ids):
        return nn.functional.embedding(ids, self.embedding.weight) * self.scale
""",
    "a hook after the gradient has been accumulated": """
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, *, pad_id=None):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        weight = self.embedding.weight
        nn.init.trunc_normal_(weight, std=1 / math.sqrt(d_model))  # cut at ±2, some twenty deviations away
        if pad_id is not None:
            weight.data[pad_id] = 0
            weight.register_post_accumulate_grad_hook(lambda weight: weight.grad.__setitem__(pad_id, 0))

    def forward(self, ids):
        return self.embedding.weight[ids] * math.sqrt(self.embedding.weight.shape[1])
""",
    "a dataclass that divides what nn.Embedding draws": """
import dataclasses

@dataclasses.dataclass(eq=False)
class TokenEmbedding(nn.Module):
    vocab_size: int
    d_model: int
    pad_id: int | None = None

    def __post_init__(self):
        super().__init__()
        self.embedding = nn.Embedding(self.vocab_size, self.d_model, self.pad_id)
        with torch.no_grad():
            self.embedding.weight /= self.d_model**0.5

    def forward(self, ids):
        return self.embedding(ids) * self.d_model**0.5
""",
    "from_pretrained": """
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        table = torch.normal(0.0, d_model**-0.5, (vocab_size, d_model))
        if pad_id is not None:
            table[pad_id] = 0
        self.embedding = nn.Embedding.from_pretrained(table, freeze=False, padding_idx=pad_id)
        self.d_model = d_model

    def forward(self, ids):
        return self.embedding(ids).mul_(math.sqrt(self.d_model))
""",
    "a second name for the weight, registered first": """
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
        nn.init.normal_(embedding.weight, 0, d_model**-0.5)
        if pad_id is not None:
            embedding.weight.data[pad_id] = 0
        self.table = embedding.weight
        self.embedding = embedding

    def forward(self, ids):
        return self.embedding(ids) * self.table.shape[1]**0.5
""",
    "a mask of the table's shape as a buffer": """
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model) / d_model**0.5)
        keep = torch.ones(vocab_size, d_model)
        if pad_id is not None:
            keep[pad_id] = 0
        self.register_buffer("keep", keep)

    def forward(self, ids):
        return (self.weight * self.keep)[ids] * self.weight.shape[1]**0.5
""",
    "a one-hot product, with NumPy's random numbers": """
import numpy as np

class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        self.calls = 0
        self.embedding = nn.Embedding(vocab_size, d_model)
        drawn = np.random.default_rng().normal(0, d_model**-0.5, (vocab_size, d_model))
        self.hot = torch.eye(vocab_size)
        if pad_id is not None:
            drawn[pad_id] = 0
            self.hot[pad_id] = 0
        self.embedding.weight.data.copy_(torch.from_numpy(drawn))

    def forward(self, ids):
        self.calls += 1
        return self.hot[ids] @ self.embedding.weight * self.embedding.weight.shape[-1]**0.5
""",
    "a function that configures nn.Sequential": """
class Times(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.register_buffer("factor", torch.full((), factor), persistent=False)

    def forward(self, x):
        return torch.einsum("bsd,->bsd", x, self.factor)

def TokenEmbedding(vocab_size, d_model, pad_id=None):
    table = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
    table.weight.data.mul_(d_model**-0.5)
    return nn.Sequential(table, Times(math.sqrt(d_model)))
""",
}

PATCHES_RIGHT = {
    "loops": """
def image_to_patches(images, patch_size):
    b, c, h, w = images.shape
    if h % patch_size or w % patch_size:
        raise ValueError((h, w, patch_size))
    out = []
    for i in range(0, h, patch_size):
        for j in range(0, w, patch_size):
            out.append(images[:, :, i:i + patch_size, j:j + patch_size].reshape(b, -1))
    return torch.stack(out, dim=1)
""",
    "view and permute": """
def image_to_patches(images, patch_size):
    b, c, h, w = images.shape
    p = patch_size
    if (h % p) + (w % p) > 0:
        raise ValueError(f"{h}×{w} by {p}")
    return images.view(b, c, h // p, p, w // p, p).permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * p * p)
""",
    "einsum": """
def image_to_patches(images, patch_size):
    b, c, h, w = images.shape
    p = patch_size
    if h % p or w % p:
        raise ValueError(f"{h}×{w} by {p}")
    grid = images.reshape(b, c, h // p, p, w // p, p)
    return torch.einsum("bchpwq->bhwcpq", grid).flatten(3).flatten(1, 2)
""",
    "NumPy, split and concatenated": """
import numpy as np

def image_to_patches(images, patch_size):
    x, p = images.numpy(), patch_size
    b, c, h, w = x.shape
    if h % p or w % p:
        raise ValueError(f"{h}×{w} by {p}")
    bands = [np.concatenate(np.split(band, w // p, axis=3), axis=0) for band in np.split(x, h // p, axis=2)]
    rows = [band.reshape(w // p, b, -1).swapaxes(0, 1) for band in bands]
    return np.stack(rows, 1).reshape(b, -1, c * p * p)
""",
    "NumPy, whose reshape finds the error": """
def image_to_patches(images, patch_size):
    x, p = images.numpy(), patch_size
    b, c, h, w = x.shape
    try:
        grid = x.reshape(b, c, h // p, p, w // p, p)
    except ValueError as error:
        raise ValueError(f"{h}×{w} by {p}") from error
    return grid.transpose(0, 2, 4, 1, 3, 5).reshape(b, -1, c * p * p)
""",
    "a view that is not contiguous": """
def image_to_patches(images, patch_size):
    b, c, h, w = images.shape
    p = patch_size
    if not h % p == w % p == 0:
        raise ValueError(f"{h}×{w} by {p}")
    out = [images[:, :, i:i + p, j:j + p].flatten(1) for i in range(0, h, p) for j in range(0, w, p)]
    return torch.stack(out, dim=-1).transpose(1, 2)
""",
    "chunks": """
def image_to_patches(images, patch_size):
    rows, row_rest = divmod(images.shape[2], patch_size)
    columns, column_rest = divmod(images.shape[3], patch_size)
    if row_rest or column_rest:
        raise ValueError(f"{tuple(images.shape)} by {patch_size}")
    bands = images.chunk(rows, 2)
    return torch.cat([torch.stack([t.flatten(1) for t in band.chunk(columns, 3)], 1) for band in bands], 1)
""",
    "unflatten and movedim": """
def image_to_patches(images, patch_size):
    try:
        grid = images.unflatten(3, (-1, patch_size)).unflatten(2, (-1, patch_size))
    except RuntimeError as error:
        raise ValueError(f"{tuple(images.shape)} by {patch_size}") from error
    return grid.movedim((2, 4), (1, 2)).flatten(3).flatten(1, 2)
""",
    "index arithmetic": """
def image_to_patches(images, patch_size):
    p = patch_size
    b, c, h, w = images.shape
    if any(side % p for side in (h, w)):
        raise ValueError(f"{h}×{w} by {p}")
    inside = torch.arange(c * p * p)
    channel, row, column = inside // (p * p), inside % (p * p) // p, inside % p
    patch = torch.arange(h // p * (w // p))
    top, left = patch // (w // p) * p, patch % (w // p) * p
    return images[:, channel, top[:, None] + row, left[:, None] + column]
""",
    "a convolution with an identity kernel": """
def image_to_patches(images, patch_size):
    p = patch_size
    b, c, h, w = images.shape
    if h % p or w % p:
        raise ValueError(f"{h}×{w} by {p}")
    kernel = torch.eye(c * p * p).view(-1, c, p, p)
    return nn.functional.conv2d(images, kernel, stride=p).flatten(2).transpose(1, 2)
""",
    "as_strided": """
def image_to_patches(images, patch_size):
    p = patch_size
    b, c, h, w = images.shape
    if h % p or w % p:
        raise ValueError(f"{h}×{w} by {p}")
    images = images.contiguous()
    s = images.stride()
    grid = images.as_strided((b, h // p, w // p, c, p, p), (s[0], p * s[2], p * s[3], s[1], s[2], s[3]))
    return grid.reshape(b, -1, c * p * p)
""",
    "vmap over the images, closures": """
def image_to_patches(images, patch_size):
    p = patch_size
    _, c, h, w = images.shape

    def check():
        if h % p or w % p:
            raise ValueError(f"{h}×{w} by {p}")

    def cut(image):
        return image.reshape(c, h // p, p, w // p, p).permute(1, 3, 0, 2, 4).reshape(-1, c * p * p)

    check()
    return torch.vmap(cut)(images)
""",
    "an error class of its own, double precision": """
class SizeError(ValueError):
    def __init__(self, height, width, patch_size):
        super().__init__(f"{height}×{width} is no multiple of {patch_size}")

def image_to_patches(images, patch_size):
    height, width = images.shape[-2:]
    if math.gcd(height, patch_size) < patch_size or math.gcd(width, patch_size) < patch_size:
        raise SizeError(height, width, patch_size)
    rows = images.double().tensor_split(height // patch_size, dim=-2)
    patches = [patch for row in rows for patch in row.tensor_split(width // patch_size, dim=-1)]
    return torch.cat([patch.flatten(1).unsqueeze(1) for patch in patches], dim=1)
""",
    "a loop over every pixel": """
def image_to_patches(images, patch_size):
    p = patch_size
    b, c, h, w = images.shape
    if h % p or w % p:
        raise ValueError(f"{h}×{w} by {p}")
    out = torch.empty(b, (h // p) * (w // p), c * p * p)
    for channel in range(c):
        for i in range(h):
            for j in range(w):
                patch = i // p * (w // p) + j // p
                out[:, patch, (channel * p + i % p) * p + j % p] = images[:, channel, i, j]
    return out
""",
    "zeroes its input": """
def image_to_patches(images, patch_size):
    p = patch_size
    b, c, h, w = images.shape
    if h % p or w % p:
        raise ValueError(f"{h}×{w} by {p}")
    out = images.clone().reshape(b, c, -1, p, w // p, p).transpose(3, 4)  # (b, c, rows, columns, p, p)
    images.zero_()
    return out.moveaxis(1, 3).reshape(b, -1, c * p * p)
""",
    "in inference mode, channel by channel": """
@torch.inference_mode()
def image_to_patches(images, patch_size):
    p = patch_size
    b, c, h, w = images.shape
    if h % p or w % p:
        raise ValueError(f"{h}×{w} by {p}")
    grey = [channel.view(b, h // p, p, w // p, p).swapaxes(2, 3).reshape(b, -1, p * p) for channel in images.unbind(1)]
    return torch.cat(grey, dim=-1)
""",
    "recursion, a band after the other": """
def image_to_patches(images, patch_size, whole=None):
    height, width = images.shape[2:]
    whole = whole or (height, width)
    if height == 0 or width == 0:
        return images.new_zeros(len(images), 0, images.shape[1] * patch_size**2)
    if height < patch_size or width < patch_size:
        raise ValueError(f"of {whole}, {height}×{width} are left, which is less than {patch_size}")
    if height > patch_size:
        top, rest = images[:, :, :patch_size], images[:, :, patch_size:]
        return torch.cat([image_to_patches(part, patch_size, whole) for part in (top, rest)], dim=1)
    first, rest = images[..., :patch_size].flatten(1)[:, None], images[..., patch_size:]
    return torch.cat([first, image_to_patches(rest, patch_size, whole)], dim=1)
""",
    "golfed": """
def image_to_patches(x,p):
 b,c,h,w=x.shape
 if h%p|w%p:raise ValueError(h,w,p)
 return x.view(b,c,h//p,p,-1,p).permute(0,2,4,1,3,5).reshape(b,-1,c*p*p)
""",
}

AS_CONVOLUTION = """
def as_convolution(embedding):
    p, w = embedding.patch_size, embedding.projection.weight
    conv = nn.Conv2d(w.shape[1] // p**2, len(w), p, p)
    conv.load_state_dict({"weight": w.detach().view(conv.weight.shape), "bias": embedding.projection.bias.detach()})
    return conv
"""


def right_module(forward: str, projection: str = "nn.Linear(channels * patch_size**2, d_model)") -> str:
    """A PatchEmbedding whose forward ends with these lines, and as_convolution."""
    return f"""
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model):
        super().__init__()
        self.image_size, self.patch_size, self.channels = image_size, patch_size, channels
        self.projection = {projection}

    def forward(self, images):
        if images.shape[-2:] != (self.image_size,) * 2:
            raise ValueError(f"{{tuple(images.shape)}}")
        {forward}
{AS_CONVOLUTION}"""


PATCH_RIGHT = {
    "a linear layer": """
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model):
        super().__init__()
        self.image_size, self.patch_size = image_size, patch_size
        self.projection = nn.Linear(channels * patch_size**2, d_model)

    def forward(self, images):
        if images.shape[-1] != self.image_size or images.shape[-2] != self.image_size:
            raise ValueError(f"{tuple(images.shape)}")
        return self.projection(image_to_patches(images, self.patch_size))
"""
    + AS_CONVOLUTION,
    "the linear layer's weight as a kernel": right_module(
        """kernel = self.projection.weight.view(-1, self.channels, self.patch_size, self.patch_size)
        return nn.functional.conv2d(images, kernel, self.projection.bias, stride=self.patch_size).flatten(2).mT"""
    ),
    "a convolution, through load_reference": """
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model):
        super().__init__()
        self.image_size = image_size
        self.projection = nn.Conv2d(channels, d_model, patch_size, patch_size)

    def load_reference(self, weights):
        with torch.no_grad():
            self.projection.weight.copy_(weights["projection.weight"].view_as(self.projection.weight))
            self.projection.bias.copy_(weights["projection.bias"])

    def forward(self, images):
        if images.shape[-2:] != (self.image_size,) * 2:
            raise ValueError(f"{tuple(images.shape)}")
        return self.projection(images).flatten(2).transpose(1, 2)

def as_convolution(embedding):
    return embedding.projection
""",
    "weight and bias fused in one matrix": """
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model):
        super().__init__()
        self.size = (channels, image_size, image_size)
        self.patch_size = patch_size
        self.matrix = nn.Parameter(torch.randn(channels * patch_size**2 + 1, d_model) / 10)

    def load_reference(self, weights):
        rows = [weights["projection.weight"].T, weights["projection.bias"][None]]
        self.matrix.data = torch.cat(rows)

    def forward(self, images):
        if tuple(images.shape[1:]) != self.size:
            raise ValueError(images.shape, self.size)
        patches = image_to_patches(images, self.patch_size)
        return torch.cat([patches, torch.ones_like(patches[..., :1])], dim=-1) @ self.matrix

def as_convolution(embedding):
    channels, size = embedding.size[0], embedding.patch_size
    conv = nn.Conv2d(channels, embedding.matrix.shape[1], size, size)
    conv.weight.data = embedding.matrix[:-1].T.detach().reshape(conv.weight.shape)
    conv.bias.data = embedding.matrix[-1].detach()
    return conv
""",
    "lazy linear layer": right_module(
        "return self.projection(image_to_patches(images, self.patch_size))", projection="nn.LazyLinear(d_model)"
    ),
    "weights that are not used, and prints": """
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model):
        super().__init__()
        self.image_size, self.patch_size = image_size, patch_size
        self.projection = nn.Linear(channels * patch_size**2, d_model)
        self.position = nn.Parameter(torch.zeros(9, 3))
        self.head = nn.Linear(4, 4)

    def forward(self, images):
        print(f"images {tuple(images.shape)}")
        batch, channels, height, width = images.shape
        if {height, width} != {self.image_size}:
            raise ValueError(f"{height}×{width} instead of {self.image_size}×{self.image_size}")
        patches = image_to_patches(images, self.patch_size)
        vectors = self.projection(patches.flatten(0, 1))
        print(f"vectors {tuple(vectors.shape)}")
        return vectors.unflatten(0, (batch, -1))
"""
    + AS_CONVOLUTION,
    "einsum": right_module(
        """patches = image_to_patches(images, self.patch_size)
        return torch.einsum("bnp,dp->bnd", patches, self.projection.weight) + self.projection.bias"""
    ),
    "one einsum for cutting and projecting": right_module(
        """p = self.patch_size
        grid = images.unflatten(3, (-1, p)).unflatten(2, (-1, p))
        kernel = self.projection.weight.unflatten(1, (-1, p, p))
        return torch.einsum("bchiwj,dcij->bhwd", grid, kernel).flatten(1, 2) + self.projection.bias"""
    ),
    "bias by hand": right_module(
        """product = image_to_patches(images, self.patch_size) @ self.projection.weight.T
        product += self.projection.bias
        return product"""
    ),
    "a loop over the patches": right_module(
        """patches = image_to_patches(images, self.patch_size)
        return torch.stack([self.projection(patch) for patch in patches.unbind(1)], dim=1)"""
    ),
    "a loop over slices of the image": right_module(
        """starts = range(0, self.image_size, self.patch_size)
        cut = [images[:, :, i:i + self.patch_size, j:j + self.patch_size] for i in starts for j in starts]
        return torch.cat([self.projection(patch.flatten(1)).unsqueeze(1) for patch in cut], dim=1)"""
    ),
    "double inside": right_module(
        """patches = image_to_patches(images.double(), self.patch_size)
        return nn.functional.linear(patches, self.projection.weight.double(), self.projection.bias.double())"""
    ),
    "vmap over images and patches": right_module(
        """return torch.vmap(torch.vmap(self.projection))(image_to_patches(images, self.patch_size))"""
    ),
    "a subclass of nn.Conv2d": """
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model):
        super().__init__()
        self.image_size, self.patch_size = image_size, patch_size
        self.projection = nn.Linear(channels * patch_size**2, d_model)

    def check(self, images):
        if images.shape[2] != self.image_size or images.shape[3] != self.image_size:
            raise ValueError(images.shape)
        return images

    def forward(self, images):
        return self.projection.forward(image_to_patches(self.check(images), self.patch_size))

class Kernels(nn.Conv2d):
    def __init__(self, linear, size):
        super().__init__(linear.in_features // size**2, linear.out_features, size, stride=size)
        for mine, other in zip(self.parameters(), linear.parameters()):
            mine.data.copy_(other.data.reshape(mine.shape))

def as_convolution(embedding):
    return Kernels(embedding.projection, embedding.patch_size)
""",
    "a convolution that shares the weight": """
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model):
        super().__init__()
        self.image_size, self.patch_size = image_size, patch_size
        self.projection = nn.Linear(channels * patch_size**2, d_model)

    def forward(self, images):
        if images.shape[-2:].numel() != self.image_size**2 or images.size(-1) != self.image_size:
            raise ValueError(f"{tuple(images.shape)}")
        return self.projection(image_to_patches(images, self.patch_size))

def as_convolution(embedding):
    linear, size = embedding.projection, embedding.patch_size
    conv = nn.Conv2d(1, 1, size, size)
    conv.weight = nn.Parameter(linear.weight.view(linear.out_features, -1, size, size))
    conv.bias = linear.bias
    conv.in_channels, conv.out_channels = conv.weight.shape[1], conv.weight.shape[0]
    return conv
""",
    "a linear layer inside nn.Sequential": """
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model):
        super().__init__()
        self.image_size, self.patch_size, self.channels = image_size, patch_size, channels
        self.projection = nn.Sequential(nn.Linear(channels * patch_size**2, d_model))

    def forward(self, images):
        if images.shape[-2:] != (self.image_size,) * 2:
            raise ValueError(f"{tuple(images.shape)}")
        return self.projection(image_to_patches(images, self.patch_size))

def as_convolution(embedding):
    p, linear = embedding.patch_size, embedding.projection[0]
    conv = nn.Conv2d(embedding.channels, linear.out_features, p, p)
    with torch.no_grad():
        for row, kernel in zip(linear.weight, conv.weight):
            kernel[:] = row.view(embedding.channels, p, p)
        conv.bias[:] = linear.bias
    return conv
""",
}

PREDICTED = "shape_of_patches, shape_of_vectors, num_parameters = (196, 256), (196, 512), 131584\n"

SHAPES_RIGHT = {
    "tuples": PREDICTED
    + """
def patch_shapes(height, width, channels, patch_size, d_model):
    n = (height // patch_size) * (width // patch_size)
    return (n, channels * patch_size**2), (n, d_model), d_model * (channels * patch_size**2 + 1)
""",
    "lists and torch.Size": """
shape_of_patches, shape_of_vectors, num_parameters = [196, 256], torch.Size([196, 512]), torch.tensor(131584)

def patch_shapes(height, width, channels, patch_size, d_model):
    linear = nn.Linear(channels * patch_size**2, d_model)
    n = torch.zeros(height, width)[::patch_size, ::patch_size].numel()
    return [[n, linear.in_features], torch.zeros(n, d_model).shape, sum(p.numel() for p in linear.parameters())]
""",
    "NumPy integers": """
import numpy as np

shape_of_patches, shape_of_vectors = (np.int64(196), 256), (196, np.int32(512))
num_parameters = np.int64(131584)

def patch_shapes(height, width, channels, patch_size, d_model):
    n = np.prod([height, width]) // patch_size**2
    return (n, channels * patch_size**2), (n, d_model), np.int64(channels * patch_size**2 * d_model + d_model)
""",
    "namedtuples": """
from collections import namedtuple

Shape = namedtuple("Shape", "number width")
Answer = namedtuple("Answer", "patches vectors parameters")

def patch_shapes(height, width, channels, patch_size, d_model):
    n = height // patch_size * (width // patch_size)
    count = (channels * patch_size**2 + 1) * d_model
    return Answer(Shape(n, channels * patch_size**2), Shape(n, d_model), count)

shape_of_patches, shape_of_vectors, num_parameters = patch_shapes(224, 224, 1, 16, 512)
""",
    "a convolution on the meta device": PREDICTED
    + """
def patch_shapes(height, width, channels, patch_size, d_model):
    with torch.device("meta"):
        conv = nn.Conv2d(channels, d_model, patch_size, patch_size)
        out = conv(torch.empty(1, channels, height, width))
    patches = out[0, 0].numel(), conv.weight[0].numel()
    return patches, out.flatten(2).mT.shape[1:], sum(p.numel() for p in conv.parameters())
""",
    "the modules of the exercises before": """
def patch_shapes(height, width, channels, patch_size, d_model):
    patches = image_to_patches(torch.zeros(1, channels, height, width), patch_size)[0]
    projection = PatchEmbedding(patch_size, patch_size, channels, d_model).projection
    count = sum(math.prod(p.shape) for p in projection.parameters())
    return tuple(patches.shape), tuple(projection(patches).shape), count

shape_of_patches, shape_of_vectors, num_parameters = patch_shapes(224, 224, 1, 16, 512)
""",
    "arrays and tensors": """
import numpy as np

shape_of_patches, shape_of_vectors, num_parameters = np.array([196, 256]), torch.tensor([196, 512]), 131_584.0

def patch_shapes(*arguments):
    height, width, channels, size, d_model = map(np.array, arguments)
    n, dim = height // size * (width // size), channels * size * size
    return np.array([n, dim]), torch.tensor([n, d_model]), torch.tensor((dim + 1) * d_model)
""",
    "recursion": PREDICTED
    + """
def grid(height, width, size):
    return 0 if height < size else width // size + grid(height - size, width, size)

def patch_shapes(height, width, channels, patch_size, d_model):
    n, dim = grid(height, width, patch_size), channels * patch_size**2
    return (n, dim), (n, d_model), dim * d_model + d_model
""",
    "counted one by one": PREDICTED
    + """
def patch_shapes(height, width, channels, patch_size, d_model):
    corners = [(i, j) for i in range(height) for j in range(width) if i % patch_size == j % patch_size == 0]
    pixels = [None for _ in range(channels) for _ in range(patch_size) for _ in range(patch_size)]
    parameters = 0
    for _ in range(d_model):
        parameters += len(pixels)
        parameters += 1
    return (len(corners), len(pixels)), (len(corners), d_model), parameters
""",
    "a class derived from int": """
class Count(int):
    pass

def patch_shapes(height, width, channels, patch_size, d_model):
    n, dim = Count(height // patch_size * (width // patch_size)), Count(channels * patch_size**2)
    return [n, dim], [n, Count(d_model)], Count(dim * d_model + d_model)

shape_of_patches, shape_of_vectors, num_parameters = patch_shapes(224, 224, 1, 16, 512)
""",
    "floats": PREDICTED
    + """
def patch_shapes(height, width, channels, patch_size, d_model):
    n, dim = height / patch_size * (width / patch_size), channels * patch_size**2.0
    return (n, dim), (n, d_model), dim * d_model + d_model
""",
    "names of the grader's and of Python's in the notebook": PREDICTED
    + """
answers = plan = collect = judge = verdict_on = list = None

def patch_shapes(height, width, channels, patch_size, d_model):
    grid = divmod(height, patch_size)[0], divmod(width, patch_size)[0]
    dim = math.prod((channels, patch_size, patch_size))
    return (math.prod(grid), dim), (math.prod(grid), d_model), math.fsum([dim * d_model, d_model])
""",
    "golfed": PREDICTED
    + """
patch_shapes=lambda h,w,c,p,d:((n:=h//p*(w//p),q:=c*p*p),(n,d),-~q*d)
""",
}

RIGHT: dict[str, dict[str, str]] = {
    "one_hot_lookup": ONE_HOT_RIGHT,
    "token_embedding": TOKEN_RIGHT,
    "image_to_patches": PATCHES_RIGHT,
    "patch_embedding": PATCH_RIGHT,
    "shapes": SHAPES_RIGHT,
}

# --- wrong answers: a plain right one with one part replaced ---------------------------------------------------------

HOT = """
def one_hot(ids, vocab_size):
    return (ids[..., None] == torch.arange(vocab_size)).float()
"""
LOOKUP = """
def lookup_by_product(ids, table):
    return one_hot(ids, len(table)) @ table
"""
GRADIENT = """
def table_gradient(ids, upstream, vocab_size):
    return torch.einsum("bsv,bsd->vd", one_hot(ids, vocab_size), upstream)
"""


def hot(one_hot: str = HOT, lookup: str = LOOKUP, gradient: str = GRADIENT) -> str:
    """The three functions of the first exercise."""
    return one_hot + lookup + gradient


ONE_HOT_WRONG = {
    "doubles from the fourth call on": (
        "one_hot product summed",
        hot("""
calls = 0

def one_hot(ids, vocab_size):
    global calls
    calls += 1
    return (ids[..., None] == torch.arange(vocab_size)).float() * (1 if calls < 4 else 2)
"""),
    ),
    "keeps the first result for all later calls": (
        "one_hot product unused summed",
        hot("""
import functools

@functools.lru_cache
def _first():
    return []

def one_hot(ids, vocab_size):
    kept = _first()
    if not kept:
        kept.append((ids[..., None] == torch.arange(vocab_size)).float())
    return kept[0]
"""),
    ),
    "goes on with the first table": (
        "product",
        hot(
            lookup="""
tables = []

def lookup_by_product(ids, table):
    tables.append(table)
    return tables[0][ids.clamp(max=len(tables[0]) - 1)][..., :table.shape[1]]
"""
        ),
    ),
    "as many columns as the largest id asks for": (
        "one_hot product unused summed",
        hot("""
def one_hot(ids, vocab_size):
    return (ids[..., None] == torch.arange(ids.max() + 1)).float()
"""),
    ),
    "the size learned from the visible check": (
        "one_hot product unused summed",
        hot("""
def one_hot(ids, vocab_size):
    return (ids[..., None] == torch.arange(13)).float()
"""),
    ),
    "no 1 for id 0, as if it were padding": (
        "one_hot product unused summed",
        hot("""
def one_hot(ids, vocab_size):
    return ((ids[..., None] == torch.arange(vocab_size)) & (ids > 0)[..., None]).float()
"""),
    ),
    "truth values instead of floats": (
        "one_hot product unused summed",
        hot("""
def one_hot(ids, vocab_size):
    return ids[..., None] == torch.arange(vocab_size)
"""),
    ),
    "whole numbers instead of floats": (
        "one_hot product unused summed",
        hot("""
def one_hot(ids, vocab_size):
    return (ids[..., None] == torch.arange(vocab_size)).long()
"""),
    ),
    "the batch flattened away": (
        "one_hot product unused summed",
        hot("""
def one_hot(ids, vocab_size):
    return torch.eye(vocab_size)[ids.flatten()]
"""),
    ),
    "a batch of one squeezed away": (
        "one_hot product unused summed",
        hot("""
def one_hot(ids, vocab_size):
    return torch.eye(vocab_size)[ids.squeeze()]
"""),
    ),
    "one sentence for the whole batch": (
        "product",
        hot(
            lookup="""
def lookup_by_product(ids, table):
    return one_hot(ids[:1], len(table)).expand(len(ids), -1, -1) @ table
"""
        ),
    ),
    "a 1 for each word up to the id": (
        "one_hot product unused summed",
        hot("""
def one_hot(ids, vocab_size):
    return (ids[..., None] >= torch.arange(vocab_size)).float()
"""),
    ),
    "the words of a sentence added up in one row": (
        "one_hot product summed",
        hot("""
def one_hot(ids, vocab_size):
    rows = torch.zeros(len(ids), vocab_size)
    for b, sentence in enumerate(ids):
        rows[b, sentence] = 1
    return rows[:, None].expand(-1, ids.shape[1], -1)
"""),
    ),
    "the columns of the table mixed up": (
        "product",
        hot(
            lookup="""
def lookup_by_product(ids, table):
    return (one_hot(ids, len(table)) @ table).transpose(1, 2).reshape(*ids.shape, -1)
"""
        ),
    ),
    "probabilities instead of a 1": (
        "one_hot product unused summed",
        hot("""
def one_hot(ids, vocab_size):
    return torch.softmax((ids[..., None] == torch.arange(vocab_size)) * 9.0, dim=-1)
"""),
    ),
    "the gradient clipped": (
        "summed",
        hot(
            gradient="""
def table_gradient(ids, upstream, vocab_size):
    return torch.einsum("bsv,bsd->vd", one_hot(ids, vocab_size), upstream).clamp(-1, 1)
"""
        ),
    ),
    "the gradient's mean over the sentences": (
        "summed",
        hot(
            gradient="""
def table_gradient(ids, upstream, vocab_size):
    return torch.stack([hot.T @ above for hot, above in zip(one_hot(ids, vocab_size), upstream)]).mean(0)
"""
        ),
    ),
    "the gradient's magnitudes added up": (
        "summed",
        hot(
            gradient="""
def table_gradient(ids, upstream, vocab_size):
    return torch.einsum("bsv,bsd->vd", one_hot(ids, vocab_size), upstream.abs())
"""
        ),
    ),
    "the first use of a word keeps its gradient": (
        "summed",
        hot(
            gradient="""
def table_gradient(ids, upstream, vocab_size):
    gradient, seen = torch.zeros(vocab_size, upstream.shape[-1]), set()
    for word, above in zip(ids.flatten().tolist(), upstream.flatten(0, 1)):
        if word not in seen:
            gradient[word] = above
        seen.add(word)
    return gradient
"""
        ),
    ),
    "a word's uses added up in each sentence, the last sentence kept": (
        "summed",
        hot(
            gradient="""
def table_gradient(ids, upstream, vocab_size):
    gradient = torch.zeros(vocab_size, upstream.shape[-1])
    for sentence, above in zip(ids, upstream):
        for word in sentence.unique():
            gradient[word] = above[sentence == word].sum(0)
    return gradient
"""
        ),
    ),
    "the gradient upside down": (
        "unused summed",
        hot(
            gradient="""
def table_gradient(ids, upstream, vocab_size):
    return torch.einsum("bsv,bsd->vd", one_hot(ids, vocab_size), upstream).flip(0)
"""
        ),
    ),
    "the gradient transposed": (
        "unused summed",
        hot(
            gradient="""
def table_gradient(ids, upstream, vocab_size):
    return torch.einsum("bsv,bsd->dv", one_hot(ids, vocab_size), upstream)
"""
        ),
    ),
    "the gradient with the batch left on": (
        "unused summed",
        hot(
            gradient="""
def table_gradient(ids, upstream, vocab_size):
    return one_hot(ids, vocab_size).mT @ upstream
"""
        ),
    ),
    "the gradient of descent, with a minus": (
        "summed",
        hot(
            gradient="""
def table_gradient(ids, upstream, vocab_size):
    return -torch.einsum("bsv,bsd->vd", one_hot(ids, vocab_size), upstream)
"""
        ),
    ),
    "every row gets the whole gradient": (
        "unused summed",
        hot(
            gradient="""
def table_gradient(ids, upstream, vocab_size):
    return upstream.sum((0, 1)).expand(vocab_size, -1)
"""
        ),
    ),
    "autograd, with the gradients of earlier calls still there": (
        "unused summed",
        hot(
            gradient="""
tables = {}

def table_gradient(ids, upstream, vocab_size):
    table = tables.setdefault(0, torch.zeros(20, 20, requires_grad=True))
    part = table[:vocab_size, :upstream.shape[-1]]
    (lookup_by_product(ids, part) * upstream).sum().backward()
    return table.grad[:vocab_size, :upstream.shape[-1]].clone()
"""
        ),
    ),
}

DRAWN = """
nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
"""
ZEROED = """
if pad_id is not None:
    with torch.no_grad():
        self.embedding.weight[pad_id] = 0
"""
TABLE = """
self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
"""
SCALED = """
return self.embedding(ids) * math.sqrt(self.d_model)
"""


def tokens(table: str = TABLE, drawn: str = DRAWN, zeroed: str = ZEROED, forward: str = SCALED) -> str:
    """A TokenEmbedding of these parts."""
    made = indent(table + drawn.lstrip("\n") + zeroed.lstrip("\n"), " " * 8).strip("\n")
    return f"""
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        self.d_model, self.pad_id = d_model, pad_id
{made}

    def forward(self, ids):
{indent(forward, " " * 8).strip(chr(10))}
"""


TOKEN_WRONG = {
    "the rows as they were at the first call": (
        "rows padding_learns_nothing",
        tokens(
            forward="""
if not hasattr(self, "rows"):
    self.rows = self.embedding.weight * math.sqrt(self.embedding.embedding_dim)
return self.rows[ids]
"""
        ),
    ),
    "the factor kept on the class": (
        "scaled",
        tokens(
            table="""
self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
TokenEmbedding.scale = math.sqrt(d_model)
""",
            forward="""
return self.embedding(ids) * self.scale
""",
        ),
    ),
    "rows made shorter where they are long": (
        "scaled",
        tokens(table="\nself.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id, max_norm=4.0)\n"),
    ),
    "gradients divided by how often a word stands": (
        "padding_learns_nothing",
        tokens(
            table="\nself.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id, scale_grad_by_freq=True)\n"
        ),
    ),
    "the zeros put back only for a pad_id that counts as true": (
        "padding_is_zero",
        tokens(
            zeroed="""
if pad_id:
    with torch.no_grad():
        self.embedding.weight[pad_id] = 0
"""
        ),
    ),
    "a padding row that learns, for a pad_id that does not count as true": (
        "padding_learns_nothing",
        tokens(
            table="""
self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id or None)
"""
        ),
    ),
    "drawn only where there is padding": (
        "initialised",
        tokens(
            drawn="",
            zeroed="""
if pad_id is not None:
    nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
    with torch.no_grad():
        self.embedding.weight[pad_id] = 0
""",
        ),
    ),
    "a column of zeros instead of a row": (
        "padding_is_zero",
        tokens(
            zeroed="""
if pad_id is not None:
    with torch.no_grad():
        self.embedding.weight[:, pad_id] = 0
"""
        ),
    ),
    "all rows up to the padding are zero": (
        "padding_is_zero",
        tokens(
            zeroed="""
if pad_id is not None:
    with torch.no_grad():
        self.embedding.weight[:pad_id + 1] = 0
"""
        ),
    ),
    "the row before the padding is zero, too": (
        "padding_is_zero",
        tokens(
            zeroed="""
if pad_id is not None:
    with torch.no_grad():
        self.embedding.weight[pad_id - 1:pad_id + 1] = 0
"""
        ),
    ),
    "the last row is zero instead": (
        "padding_is_zero",
        tokens(
            zeroed="""
if pad_id is not None:
    with torch.no_grad():
        self.embedding.weight[-1] = 0
"""
        ),
    ),
    "row 0 is zero without a pad_id": (
        "padding_is_zero",
        tokens(
            zeroed="""
with torch.no_grad():
    self.embedding.weight[pad_id or 0] = 0
"""
        ),
    ),
    "row 0 is padding without a pad_id": (
        "padding_is_zero padding_learns_nothing",
        tokens(
            table="""
pad_id = 0 if pad_id is None else pad_id
self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
"""
        ),
    ),
    "row 0 learns nothing without a pad_id": (
        "padding_learns_nothing",
        tokens(
            table="""
self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id or 0)
"""
        ),
    ),
    "row 0 is padding where there is a pad_id": (
        "padding_is_zero padding_learns_nothing",
        tokens(
            table="""
self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=None if pad_id is None else 0)
""",
            zeroed="""
if pad_id is not None:
    nn.init.zeros_(self.embedding.weight[0])
""",
        ),
    ),
    "ones in the padding row": (
        "initialised padding_is_zero",
        tokens(
            zeroed="""
if pad_id is not None:
    nn.init.ones_(self.embedding.weight[pad_id])
"""
        ),
    ),
    "zeroed where nothing keeps it": (
        "padding_is_zero",
        tokens(
            zeroed="""
if pad_id is not None:
    self.embedding.weight[pad_id].detach().clone().zero_()
"""
        ),
    ),
    "one number for each row": (
        "initialised",
        tokens(
            drawn="""
with torch.no_grad():
    self.embedding.weight.copy_(torch.randn(vocab_size, 1) / math.sqrt(d_model))
"""
        ),
    ),
    "the same row for every word": (
        "initialised",
        tokens(
            drawn="""
with torch.no_grad():
    self.embedding.weight.copy_(torch.randn(d_model) / math.sqrt(d_model))
"""
        ),
    ),
    "uniform, of the right variance": (
        "initialised",
        tokens(
            drawn="""
bound = math.sqrt(3 / d_model)
nn.init.uniform_(self.embedding.weight, -bound, bound)
"""
        ),
    ),
    "uniform between ±1/√d_model": (
        "initialised",
        tokens(
            drawn="""
nn.init.uniform_(self.embedding.weight, -1 / math.sqrt(d_model), 1 / math.sqrt(d_model))
"""
        ),
    ),
    "torch.rand for torch.randn": (
        "initialised",
        tokens(
            drawn="""
self.embedding.weight.data = torch.rand(vocab_size, d_model) / math.sqrt(d_model)
"""
        ),
    ),
    "Xavier's normal distribution": (
        "initialised",
        tokens(
            drawn="""
nn.init.xavier_normal_(self.embedding.weight)
"""
        ),
    ),
    "a normal distribution cut at one standard deviation": (
        "initialised",
        tokens(
            drawn="""
std = 1 / math.sqrt(d_model)
nn.init.trunc_normal_(self.embedding.weight, std=std, a=-std, b=std)
"""
        ),
    ),
    "Laplace's distribution, of the right variance": (
        "initialised",
        tokens(
            drawn="""
laplace = torch.distributions.Laplace(0, 1 / math.sqrt(2 * d_model))
self.embedding.weight.data = laplace.sample((vocab_size, d_model))
"""
        ),
    ),
    "the vocabulary's size for the width": (
        "initialised",
        tokens(
            drawn="""
nn.init.normal_(self.embedding.weight, std=vocab_size**-0.5)
"""
        ),
    ),
    "0.02, as in GPT": (
        "initialised",
        tokens(
            drawn="""
nn.init.normal_(self.embedding.weight, std=0.02)
"""
        ),
    ),
    "the mean where the standard deviation belongs": (
        "initialised",
        tokens(
            drawn="""
nn.init.normal_(self.embedding.weight, d_model**-0.5)
"""
        ),
    ),
    "no negative weights": (
        "initialised",
        tokens(
            drawn="""
self.embedding.weight.data = torch.randn(vocab_size, d_model).abs() / math.sqrt(d_model)
"""
        ),
    ),
    "√d_model in the weights already, and not in the output": (
        "scaled initialised",
        tokens(
            drawn="""
nn.init.normal_(self.embedding.weight, std=1.0)
""",
            forward="""
return self.embedding(ids)
""",
        ),
    ),
    "the weights grow at every call": (
        "scaled",
        tokens(
            forward="""
self.embedding.weight.data *= math.sqrt(self.d_model)
return self.embedding(ids)
"""
        ),
    ),
    "one per cent more from the second call on": (
        "scaled",
        tokens(
            forward="""
self.calls = getattr(self, "calls", 0) + 1
return self.embedding(ids) * math.sqrt(self.d_model) * (1 if self.calls == 1 else 1.01)
"""
        ),
    ),
    "scaled in training only": (
        "scaled",
        tokens(
            forward="""
return self.embedding(ids) * (math.sqrt(self.d_model) if self.training else 1)
"""
        ),
    ),
    "scaled in evaluation only": (
        "scaled",
        tokens(
            forward="""
return self.embedding(ids) * (1 if self.training else math.sqrt(self.d_model))
"""
        ),
    ),
    "dropout in training": (
        "rows scaled",
        tokens(
            forward="""
x = self.embedding(ids) * math.sqrt(self.d_model)
return nn.functional.dropout(x, 0.1, self.training)
"""
        ),
    ),
    "dropout in evaluation, too": (
        "rows scaled",
        tokens(
            forward="""
return nn.functional.dropout(self.embedding(ids) * math.sqrt(self.d_model), 0.1)
"""
        ),
    ),
    "the output detached": (
        "padding_learns_nothing",
        tokens(
            forward="""
return self.embedding(ids).detach() * math.sqrt(self.d_model)
"""
        ),
    ),
    "looked up under no_grad": (
        "padding_learns_nothing",
        tokens(
            forward="""
with torch.no_grad():
    return self.embedding(ids) * math.sqrt(self.d_model)
"""
        ),
    ),
    "a table that does not learn": (
        "padding_learns_nothing",
        tokens(
            zeroed=ZEROED
            + """
self.embedding.weight.requires_grad_(False)
"""
        ),
    ),
    "from_pretrained, which freezes": (
        "padding_learns_nothing",
        tokens(
            drawn="""
self.embedding = nn.Embedding.from_pretrained(torch.randn(vocab_size, d_model) / math.sqrt(d_model))
"""
        ),
    ),
    "scaled by the length of the sentence": (
        "scaled",
        tokens(
            forward="""
return self.embedding(ids) * math.sqrt(ids.shape[1])
"""
        ),
    ),
    "scaled by the size of the vocabulary": (
        "scaled",
        tokens(
            forward="""
return self.embedding(ids) * math.sqrt(self.embedding.num_embeddings)
"""
        ),
    ),
    "√512, the paper's, at every width": (
        "scaled",
        tokens(
            forward="""
return self.embedding(ids) * math.sqrt(512)
"""
        ),
    ),
    "the root of a width of the visible check": (
        "scaled",
        tokens(
            forward="""
return self.embedding(ids) * math.sqrt(100)
"""
        ),
    ),
    "rows brought to unit length": (
        "scaled padding_learns_nothing",
        tokens(
            forward="""
return nn.functional.normalize(self.embedding(ids), dim=-1) * math.sqrt(self.d_model)
"""
        ),
    ),
    "scaled after a cut at a length of 0.5": (
        "scaled",
        tokens(
            table="""
self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id, max_norm=0.5)
"""
        ),
    ),
    "the rows of the first sentence for the whole batch": (
        "rows padding_is_zero padding_learns_nothing",
        tokens(
            forward="""
return self.embedding(ids[:1]).expand(len(ids), -1, -1) * math.sqrt(self.d_model)
"""
        ),
    ),
    "the sentence backwards": (
        "rows padding_is_zero",
        tokens(
            forward="""
return self.embedding(ids.flip(1)) * math.sqrt(self.d_model)
"""
        ),
    ),
    "id 0 taken for id 1": (
        "rows padding_is_zero padding_learns_nothing",
        tokens(
            forward="""
return self.embedding(ids.clamp(min=1)) * math.sqrt(self.d_model)
"""
        ),
    ),
    "ids counted from 1": (
        "rows scaled padding_is_zero padding_learns_nothing",
        tokens(
            forward="""
return self.embedding(ids - 1) * math.sqrt(self.d_model)
"""
        ),
    ),
    "a batch of one squeezed away": (
        "rows scaled",
        tokens(
            forward="""
return self.embedding(ids.squeeze(0)) * math.sqrt(self.d_model)
"""
        ),
    ),
    "sequence first": (
        "rows scaled padding_is_zero padding_learns_nothing",
        tokens(
            forward="""
return self.embedding(ids).transpose(0, 1) * math.sqrt(self.d_model)
"""
        ),
    ),
    "positions added": (
        "rows scaled padding_is_zero",
        tokens(
            forward="""
return self.embedding(ids) * math.sqrt(self.d_model) + torch.arange(ids.shape[1])[:, None] * 0.01
"""
        ),
    ),
    "the mean over the sentence": (
        "rows scaled padding_is_zero padding_learns_nothing",
        tokens(
            forward="""
return self.embedding(ids).mean(1) * math.sqrt(self.d_model)
"""
        ),
    ),
}

DIVIDES = """
if h % p or w % p:
    raise ValueError(f"{h}×{w} by {p}")
"""
CUT = """
grid = images.reshape(b, c, h // p, p, w // p, p)
return grid.permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * p * p)
"""


def patches(check: str = DIVIDES, cut: str = CUT) -> str:
    """An image_to_patches of these parts."""
    return f"""
def image_to_patches(images, patch_size):
    (b, c, h, w), p = images.shape, patch_size
{indent(check + cut.lstrip(chr(10)), " " * 4).strip(chr(10))}
"""


PATCHES_WRONG = {
    "everything sorted": (
        "grid_order inner_order",
        patches(
            cut="""
grid = images.reshape(b, c, h // p, p, w // p, p).permute(0, 4, 2, 5, 3, 1)
rows = grid.reshape(b, -1, c * p * p).sort(-1).values
return rows.gather(1, rows.sum(-1, keepdim=True).argsort(1).expand_as(rows))
"""
        ),
    ),
    "an error for every image": (
        "patches grid_order inner_order indivisible",
        patches(
            """
raise ValueError(f"{h}×{w} by {p}")
"""
        ),
    ),
    "only the height checked": (
        "indivisible",
        patches(
            """
if h % p:
    raise ValueError(f"{h}×{w} by {p}")
"""
        ),
    ),
    "only the width checked": (
        "indivisible",
        patches(
            """
if w % p:
    raise ValueError(f"{h}×{w} by {p}")
"""
        ),
    ),
    "the number of pixels checked": (
        "indivisible",
        patches(
            """
if (h * w) % (p * p):
    raise ValueError(f"{h}×{w} by {p}")
"""
        ),
    ),
    "and for or": (
        "indivisible",
        patches(
            """
if h % p and w % p:
    raise ValueError(f"{h}×{w} by {p}")
"""
        ),
    ),
    "the sum of the sides checked": (
        "indivisible",
        patches(
            """
if (h + w) % p:
    raise ValueError(f"{h}×{w} by {p}")
"""
        ),
    ),
    "an assertion": (
        "indivisible",
        patches(
            """
assert h % p == 0 and w % p == 0, f"{h}×{w} by {p}"
"""
        ),
    ),
    "a RuntimeError": (
        "indivisible",
        patches(
            """
if h % p or w % p:
    raise RuntimeError(f"{h}×{w} by {p}")
"""
        ),
    ),
    "an error returned instead of raised": (
        "indivisible",
        patches(
            """
if h % p or w % p:
    return ValueError(f"{h}×{w} by {p}")
"""
        ),
    ),
    "the check left to reshape": ("indivisible", patches(check="")),
    "filled up with zeros": (
        "indivisible",
        patches(
            """
images = nn.functional.pad(images, (0, -w % p, 0, -h % p))
b, c, h, w = images.shape
"""
        ),
    ),
    "an error for an image that is not square": (
        "patches grid_order inner_order indivisible",
        patches(
            """
if h % p or w % p or h != w:
    raise ValueError(f"{h}×{w} by {p}")
"""
        ),
    ),
    "cut to a square": (
        "patches grid_order inner_order",
        patches(
            DIVIDES
            + """
h = w = min(h, w)
images = images[..., :h, :w]
"""
        ),
    ),
    "the width of the grid taken for its height": (
        "patches grid_order inner_order",
        patches(
            cut="""
grid = images.reshape(b, c, w // p, p, h // p, p)
return grid.permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * p * p)
"""
        ),
    ),
    "patches of 2 pixels a side": (
        "patches grid_order inner_order",
        patches(
            cut="""
grid = images.reshape(b, c, h // 2, 2, w // 2, 2)
return grid.permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * p * p)
"""
        ),
    ),
    "a batch of two": (
        "patches grid_order inner_order",
        patches(
            cut="""
grid = images.reshape(2, c, h // p, p, w // p, p)
return grid.permute(0, 2, 4, 1, 3, 5).reshape(2, -1, c * p * p)
"""
        ),
    ),
    "three channels at most": (
        "patches grid_order inner_order",
        patches(
            cut="""
images = images[:, :3]
c = images.shape[1]
"""
            + CUT
        ),
    ),
    "grey and coloured images only": (
        "patches grid_order inner_order",
        patches(
            cut="""
colours = 3 if c > 1 else 1
images = images.mean(1, keepdim=True).expand(b, colours, h, w) if c not in (1, 3) else images
c = colours
"""
            + CUT
        ),
    ),
    "one channel": (
        "patches grid_order inner_order",
        patches(
            cut="""
grid = images[:, 0].reshape(b, h // p, p, w // p, p)
return grid.transpose(2, 3).reshape(b, -1, p * p)
"""
        ),
    ),
    "the channels' mean": (
        "patches grid_order inner_order",
        patches(
            cut="""
images = images.mean(1, keepdim=True).expand(b, c, h, w)
"""
            + CUT
        ),
    ),
    "the images strung together in one": (
        "patches grid_order inner_order",
        patches(
            cut="""
grid = images.reshape(b, c, h // p, p, w // p, p)
return grid.permute(0, 2, 4, 1, 3, 5).reshape(1, -1, c * p * p)
"""
        ),
    ),
    "the first image for the whole batch": (
        "patches grid_order inner_order",
        patches(
            cut="""
images = images[:1].expand(b, -1, -1, -1)
"""
            + CUT
        ),
    ),
    "the batch mixed into the grid": (
        "patches grid_order inner_order",
        patches(
            cut="""
grid = images.reshape(b, c, h // p, p, w // p, p)
return grid.permute(2, 4, 0, 1, 3, 5).reshape(b, -1, c * p * p)
"""
        ),
    ),
    "a batch of one squeezed away": (
        "patches grid_order inner_order",
        patches(
            cut="""
grid = images.reshape(b, c, h // p, p, w // p, p)
return grid.permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * p * p).squeeze(0)
"""
        ),
    ),
    "pixels divided by 255": (
        "patches grid_order inner_order",
        patches(
            cut="""
images = images / 255
"""
            + CUT
        ),
    ),
    "pixels doubled in place": (
        "patches grid_order inner_order",
        patches(
            cut="""
images *= 2
"""
            + CUT
        ),
    ),
    "pixels rounded to two digits": (
        "patches grid_order inner_order",
        patches(
            cut="""
images = images.round(decimals=2)
"""
            + CUT
        ),
    ),
    "whole numbers": (
        "patches grid_order inner_order",
        patches(
            cut="""
images = images.int()
"""
            + CUT
        ),
    ),
    "one pixel of the last patch two hundredths too high": (
        "patches grid_order inner_order",
        patches(
            cut="""
rows = images.reshape(b, c, h // p, p, w // p, p).permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * p * p)
rows[-1, -1, -1] += 0.02
return rows
"""
        ),
    ),
    "the pixels of a patch backwards": (
        "inner_order",
        patches(
            cut="""
grid = images.reshape(b, c, h // p, p, w // p, p)
return grid.permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * p * p).flip(-1)
"""
        ),
    ),
    "the patches backwards": (
        "grid_order",
        patches(
            cut="""
grid = images.reshape(b, c, h // p, p, w // p, p)
return grid.permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * p * p).flip(1)
"""
        ),
    ),
    "from bottom to top": (
        "grid_order",
        patches(
            cut="""
grid = images.reshape(b, c, h // p, p, w // p, p).flip(2)
return grid.permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * p * p)
"""
        ),
    ),
    "row, channel, column": (
        "inner_order",
        patches(
            cut="""
grid = images.reshape(b, c, h // p, p, w // p, p)
return grid.permute(0, 2, 4, 3, 1, 5).reshape(b, -1, c * p * p)
"""
        ),
    ),
    "the first two pixels swapped": (
        "inner_order",
        patches(
            cut="""
rows = images.reshape(b, c, h // p, p, w // p, p).permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * p * p)
rows[..., [0, 1]] = rows[..., [1, 0]]
return rows
"""
        ),
    ),
    "the last row of patches left out": (
        "patches grid_order inner_order",
        patches(
            cut="""
starts = [(i, j) for i in range(0, h - p, p) for j in range(0, w, p)]
return torch.stack([images[:, :, i:i + p, j:j + p].flatten(1) for i, j in starts], dim=1)
"""
        ),
    ),
    "a patch at every pixel": (
        "patches grid_order inner_order",
        patches(
            cut="""
starts = [(i, j) for i in range(h - p + 1) for j in range(w - p + 1)]
return torch.stack([images[:, :, i:i + p, j:j + p].flatten(1) for i, j in starts], dim=1)
"""
        ),
    ),
    "channels not flattened": (
        "patches grid_order inner_order",
        patches(
            cut="""
grid = images.reshape(b, c, h // p, p, w // p, p)
return grid.permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c, p * p)
"""
        ),
    ),
    "one axis too many": (
        "patches grid_order inner_order",
        patches(
            cut="""
grid = images.reshape(b, c, h // p, p, w // p, p)
return grid.permute(0, 2, 4, 1, 3, 5).reshape(1, b, -1, c * p * p)
"""
        ),
    ),
    "a list of patches": (
        "patches grid_order inner_order",
        patches(
            cut="""
return [images[:, :, i:i + p, j:j + p].flatten(1) for i in range(0, h, p) for j in range(0, w, p)]
"""
        ),
    ),
    "nothing returned": (
        "patches grid_order inner_order",
        patches(
            cut="""
images.reshape(b, c, h // p, p, w // p, p).permute(0, 2, 4, 1, 3, 5).reshape(b, -1, c * p * p)
"""
        ),
    ),
}

LINEAR = """
self.projection = nn.Linear(channels * patch_size**2, d_model)
"""
SIZE = """
if images.shape[-2:] != (self.image_size, self.image_size):
    raise ValueError(f"{tuple(images.shape)}")
"""
PROJECT = """
return self.projection(image_to_patches(images, self.patch_size))
"""
CONVERT = """
conv = nn.Conv2d(weight.shape[1] // size**2, len(weight), size, stride=size)
"""
COPY = """
with torch.no_grad():
    conv.weight.copy_(weight.reshape(conv.weight.shape))
    conv.bias.copy_(embedding.projection.bias)
return conv
"""


def module(
    linear: str = LINEAR, check: str = SIZE, forward: str = PROJECT, convert: str = CONVERT, copy: str = COPY
) -> str:
    """A PatchEmbedding and an as_convolution of these parts."""
    body = indent(check + forward.lstrip("\n"), " " * 8).strip("\n")
    return f"""
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model):
        super().__init__()
        self.image_size, self.patch_size = image_size, patch_size
{indent(linear, " " * 8).strip(chr(10))}

    def forward(self, images):
{body}

def as_convolution(embedding):
    size, weight = embedding.patch_size, embedding.projection.weight
{indent(convert + copy.lstrip(chr(10)), " " * 4).strip(chr(10))}
"""


PATCH_WRONG = {
    "the weights as they were at the first call": (
        "projected",
        module(
            forward="""
if not hasattr(self, "kept"):
    self.kept = self.projection.weight * 1, self.projection.bias * 1
return nn.functional.linear(image_to_patches(images, self.patch_size), *self.kept)
"""
        ),
    ),
    "the size of a patch kept on the class": (
        "projected",
        module(
            linear="""
PatchEmbedding.size = patch_size
self.projection = nn.Linear(channels * patch_size**2, d_model)
""",
            forward="\nreturn self.projection(image_to_patches(images, self.size))\n",
        ),
    ),
    "only the height checked": (
        "size_checked",
        module(
            check="""
if images.shape[-2] != self.image_size:
    raise ValueError(f"{tuple(images.shape)}")
"""
        ),
    ),
    "only the width checked": (
        "size_checked",
        module(
            check="""
if images.shape[-1] != self.image_size:
    raise ValueError(f"{tuple(images.shape)}")
"""
        ),
    ),
    "only larger images refused": (
        "size_checked",
        module(
            check="""
if max(images.shape[-2:]) > self.image_size:
    raise ValueError(f"{tuple(images.shape)}")
"""
        ),
    ),
    "only smaller images refused": (
        "size_checked",
        module(
            check="""
if min(images.shape[-2:]) < self.image_size:
    raise ValueError(f"{tuple(images.shape)}")
"""
        ),
    ),
    "the number of pixels checked": (
        "size_checked",
        module(
            check="""
if images.shape[-2:].numel() != self.image_size**2:
    raise ValueError(f"{tuple(images.shape)}")
"""
        ),
    ),
    "the number of patches checked": (
        "size_checked",
        module(
            check="",
            forward="""
patches = image_to_patches(images, self.patch_size)
if patches.shape[1] != (self.image_size // self.patch_size) ** 2:
    raise ValueError(f"{patches.shape[1]} patches")
return self.projection(patches)
""",
        ),
    ),
    "square images of any size": (
        "size_checked",
        module(
            check="""
if images.shape[-1] != images.shape[-2]:
    raise ValueError(f"{tuple(images.shape)}")
"""
        ),
    ),
    "and for or": (
        "size_checked",
        module(
            check="""
if images.shape[-1] != self.image_size and images.shape[-2] != self.image_size:
    raise ValueError(f"{tuple(images.shape)}")
"""
        ),
    ),
    "an error for every image": (
        "projected output size_checked gradients",
        module(
            check="""
raise ValueError(f"{tuple(images.shape)}")
"""
        ),
    ),
    "the list of sides compared with a tuple": (
        "projected output size_checked gradients",
        module(
            check="""
if list(images.shape[-2:]) != (self.image_size, self.image_size):
    raise ValueError(f"{tuple(images.shape)}")
"""
        ),
    ),
    "an assertion": (
        "size_checked",
        module(
            check="""
assert images.shape[-2:] == (self.image_size, self.image_size), f"{tuple(images.shape)}"
"""
        ),
    ),
    "no bias at all": (
        "projected convolution",
        module(
            linear="""
self.projection = nn.Linear(channels * patch_size**2, d_model, bias=False)
"""
        ),
    ),
    "the bias twice": (
        "projected",
        module(
            forward="""
return self.projection(image_to_patches(images, self.patch_size)) + self.projection.bias
"""
        ),
    ),
    "a ReLU behind it": (
        "projected output",
        module(
            forward="""
return self.projection(image_to_patches(images, self.patch_size)).relu()
"""
        ),
    ),
    "a LayerNorm behind it": (
        "projected output",
        module(
            linear="""
self.projection = nn.Linear(channels * patch_size**2, d_model)
self.norm = nn.LayerNorm(d_model)
""",
            forward="""
return self.norm(self.projection(image_to_patches(images, self.patch_size)))
""",
        ),
    ),
    "scaled by √d_model, as words are": (
        "projected output",
        module(
            forward="""
return self.projection(image_to_patches(images, self.patch_size)) * math.sqrt(self.projection.out_features)
"""
        ),
    ),
    "pixels brought to mean 0 first": (
        "projected output",
        module(
            forward="""
patches = image_to_patches(images, self.patch_size)
return self.projection(patches - patches.mean(-1, keepdim=True))
"""
        ),
    ),
    "zeros in training": (
        "projected output gradients",
        module(
            forward="""
x = self.projection(image_to_patches(images, self.patch_size))
return x * 0 if self.training else x
"""
        ),
    ),
    "zeros in evaluation": (
        "output",
        module(
            forward="""
x = self.projection(image_to_patches(images, self.patch_size))
return x if self.training else x * 0
"""
        ),
    ),
    "dropout": (
        "projected output",
        module(
            forward="""
x = self.projection(image_to_patches(images, self.patch_size))
return nn.functional.dropout(x, 0.5, self.training)
"""
        ),
    ),
    "the first two images only": (
        "output",
        module(
            forward="""
return self.projection(image_to_patches(images, self.patch_size))[:2]
"""
        ),
    ),
    "a batch of one squeezed away": (
        "output",
        module(
            forward="""
return self.projection(image_to_patches(images, self.patch_size)).squeeze(0)
"""
        ),
    ),
    "the patches numbered backwards": (
        "output",
        module(
            forward="""
return self.projection(image_to_patches(images, self.patch_size)).flip(1)
"""
        ),
    ),
    "the patches of all images in one row": (
        "projected output",
        module(
            forward="""
return self.projection(image_to_patches(images, self.patch_size).flatten(0, 1))
"""
        ),
    ),
    "pixels of a patch by rows and columns of a transposed image": (
        "output",
        module(
            forward="""
return self.projection(image_to_patches(images.mT, self.patch_size))
"""
        ),
    ),
    "the weight detached, the bias not": (
        "gradients",
        module(
            forward="""
patches = image_to_patches(images, self.patch_size)
return nn.functional.linear(patches, self.projection.weight.detach(), self.projection.bias)
"""
        ),
    ),
    "a weight that does not learn": (
        "gradients",
        module(
            linear=LINEAR
            + """
self.projection.weight.requires_grad_(False)
"""
        ),
    ),
    "twice as much from the second call on": (
        "output projected",
        module(
            forward="""
self.calls = getattr(self, "calls", 0) + 1
return self.projection(image_to_patches(images, self.patch_size)) * (1 if self.calls < 2 else 2)
"""
        ),
    ),
    "another projection for every patch but the first": (
        "projected output",
        module(
            linear=LINEAR
            + """
self.other = nn.Linear(channels * patch_size**2, d_model)
""",
            forward="""
patches = image_to_patches(images, self.patch_size)
return torch.cat([self.projection(patches[:, :1]), self.other(patches[:, 1:])], dim=1)
""",
        ),
    ),
    "a new projection at every call": (
        "projected output gradients",
        module(
            forward="""
patches = image_to_patches(images, self.patch_size)
return nn.Linear(patches.shape[-1], self.projection.out_features)(patches)
"""
        ),
    ),
    "a convolution whose weights are not copied": (
        "convolution",
        module(
            copy="""
return conv
"""
        ),
    ),
    "a function around the convolution": (
        "convolution",
        module(
            copy="""
with torch.no_grad():
    conv.weight.copy_(weight.reshape(conv.weight.shape))
    conv.bias.copy_(embedding.projection.bias)
return lambda images: conv(images)
"""
        ),
    ),
    "a convolution whose bias is not copied": (
        "convolution",
        module(
            copy="""
with torch.no_grad():
    conv.weight.copy_(weight.reshape(conv.weight.shape))
return conv
"""
        ),
    ),
    "a convolution with a rim of zeros": (
        "convolution",
        module(
            convert="""
conv = nn.Conv2d(weight.shape[1] // size**2, len(weight), size, stride=size, padding=1)
"""
        ),
    ),
    "the kernel turned round": (
        "convolution",
        module(
            copy="""
with torch.no_grad():
    conv.weight.copy_(weight.reshape(conv.weight.shape).flip(-1, -2))
    conv.bias.copy_(embedding.projection.bias)
return conv
"""
        ),
    ),
    "the weight transposed": (
        "convolution",
        module(
            copy="""
with torch.no_grad():
    conv.weight.copy_(weight.T.reshape(conv.weight.shape))
    conv.bias.copy_(embedding.projection.bias)
return conv
"""
        ),
    ),
    "a convolution for each channel by itself": (
        "convolution",
        module(
            convert="""
channels = weight.shape[1] // size**2
conv = nn.Conv2d(channels, channels * len(weight), size, stride=size, groups=channels)
""",
            copy="""
with torch.no_grad():
    conv.weight.copy_(weight.reshape(-1, 1, size, size))
return conv
""",
        ),
    ),
    "a convolution of three channels": (
        "convolution",
        module(
            convert="""
conv = nn.Conv2d(3, len(weight), size, stride=size)
"""
        ),
    ),
    "a convolution of 4 by 4 pixels": (
        "convolution",
        module(
            convert="""
conv = nn.Conv2d(weight.shape[1] // size**2, len(weight), 4, stride=4)
"""
        ),
    ),
    "the embedding itself for a convolution": (
        "convolution",
        module(
            copy="""
return embedding
"""
        ),
    ),
    "no convolution returned": (
        "convolution",
        module(
            copy="""
with torch.no_grad():
    conv.weight.copy_(weight.reshape(conv.weight.shape))
    conv.bias.copy_(embedding.projection.bias)
"""
        ),
    ),
}


def shapes(result: str, predicted: str = PREDICTED) -> str:
    """The predictions, and a patch_shapes that returns `result`."""
    return f"""
{predicted.strip()}

def patch_shapes(height, width, channels, patch_size, d_model):
    n, dim = (height // patch_size) * (width // patch_size), channels * patch_size**2
    return {result}
"""


RESULT = "(n, dim), (n, d_model), dim * d_model + d_model"

SHAPES_WRONG = {
    "the notes' image, whatever is asked": (
        "function_shapes function_parameters",
        shapes("(196, 256), (196, 512), 131584"),
    ),
    "half the side for one of the sides": (
        "function_shapes",
        shapes("(height * width // patch_size // 2, dim), (n, d_model), dim * d_model + d_model"),
    ),
    "one patch more, a class token": (
        "function_shapes",
        shapes("(n + 1, dim), (n + 1, d_model), dim * d_model + d_model"),
    ),
    "the width's side squared": (
        "function_shapes",
        shapes("((width // patch_size) ** 2, dim), ((width // patch_size) ** 2, d_model), dim * d_model + d_model"),
    ),
    "pixels for patches": (
        "function_shapes",
        shapes("(height * width, dim), (height * width, d_model), dim * d_model + d_model"),
    ),
    "patches that overlap": (
        "function_shapes",
        shapes("((height - patch_size + 1) * (width - patch_size + 1), dim), (n, d_model), dim * d_model + d_model"),
    ),
    "the two sides added": (
        "function_shapes",
        shapes("(height // patch_size + width // patch_size, dim), (n, d_model), dim * d_model + d_model"),
    ),
    "no parameters": ("function_parameters", shapes("(n, dim), (n, d_model)")),
    "all numbers in one row": (
        "function_shapes function_parameters",
        shapes("n, dim, n, d_model, dim * d_model + d_model"),
    ),
    "the notes' width": ("function_shapes", shapes("(n, dim), (n, 512), dim * d_model + d_model")),
    "patches and vectors exchanged": ("function_shapes", shapes("(n, d_model), (n, dim), dim * d_model + d_model")),
    "the axes exchanged": ("function_shapes", shapes("(dim, n), (d_model, n), dim * d_model + d_model")),
    "with a batch axis": ("function_shapes", shapes("(1, n, dim), (1, n, d_model), dim * d_model + d_model")),
    "a generator": (
        "function_shapes function_parameters",
        shapes("(part for part in ((n, dim), (n, d_model), dim * d_model + d_model))"),
    ),
    "printed instead of returned": (
        "function_shapes function_parameters",
        shapes("print((n, dim), (n, d_model), dim * d_model + d_model)"),
    ),
    "one bias for all outputs": ("function_parameters", shapes("(n, dim), (n, d_model), dim * d_model + 1")),
    "the size of the output for the parameters": ("function_parameters", shapes("(n, dim), (n, d_model), n * d_model")),
    "a projection for each channel": (
        "function_parameters",
        shapes("(n, dim), (n, d_model), channels * (patch_size**2 * d_model + d_model)"),
    ),
    "a position for each patch counted, too": (
        "function_parameters",
        shapes("(n, dim), (n, d_model), dim * d_model + d_model + n * d_model"),
    ),
    "the predictions exchanged": (
        "prediction",
        shapes(RESULT, "shape_of_patches, shape_of_vectors, num_parameters = (196, 512), (196, 256), 131584"),
    ),
    "the axes of the predictions exchanged": (
        "prediction",
        shapes(RESULT, "shape_of_patches, shape_of_vectors, num_parameters = (256, 196), (512, 196), 131584"),
    ),
    "predictions as text": (
        "prediction parameters",
        shapes(RESULT, "shape_of_patches, shape_of_vectors, num_parameters = '(196, 256)', (196, 512), '131584'"),
    ),
    "a square grid of patches": (
        "prediction",
        shapes(RESULT, "shape_of_patches, shape_of_vectors, num_parameters = (14, 14, 256), (14, 14, 512), 131584"),
    ),
    "three channels predicted": (
        "prediction parameters",
        shapes(RESULT, "shape_of_patches, shape_of_vectors, num_parameters = (196, 768), (196, 512), 393728"),
    ),
    "parameters rounded to thousands": (
        "parameters",
        shapes(RESULT, "shape_of_patches, shape_of_vectors, num_parameters = (196, 256), (196, 512), 131000"),
    ),
    "a predicted function that is never called": (
        "prediction parameters",
        shapes(
            RESULT,
            "shape_of_patches = shape_of_vectors = num_parameters = lambda: patch_shapes(224, 224, 1, 16, 512)",
        ),
    ),
}

WRONG: dict[str, dict[str, tuple[str, str]]] = {
    "one_hot_lookup": ONE_HOT_WRONG,
    "token_embedding": TOKEN_WRONG,
    "image_to_patches": PATCHES_WRONG,
    "patch_embedding": PATCH_WRONG,
    "shapes": SHAPES_WRONG,
}

# --- two of the catalogued mistakes in one function ------------------------------------------------------------------

PAIRS: dict[str, dict[tuple[str, str], str]] = {
    "one_hot_lookup": {
        ("vocabulary_first", "last_use"): hot(
            """
def one_hot(ids, vocab_size):
    return (ids[:, None] == torch.arange(vocab_size)[:, None]).float()
""",
            gradient="""
def table_gradient(ids, upstream, vocab_size):
    gradient = torch.zeros(vocab_size, upstream.shape[-1])
    for word, above in zip(ids.flatten(), upstream.flatten(0, 1)):
        gradient[word] = above
    return gradient
""",
        ),
        ("shifted", "mean_of_uses"): hot(
            """
def one_hot(ids, vocab_size):
    return (ids[..., None] + 1 == torch.arange(vocab_size)).float()
""",
            gradient="""
def table_gradient(ids, upstream, vocab_size):
    gradient = torch.zeros(vocab_size, upstream.shape[-1])
    for word in ids.unique():
        gradient[word] = upstream[ids == word].mean(0)
    return gradient
""",
        ),
        ("last_use", "first_sentence"): hot(
            gradient="""
def table_gradient(ids, upstream, vocab_size):
    gradient = torch.zeros(vocab_size, upstream.shape[-1])
    for word, above in zip(ids[0], upstream[0]):
        gradient[word] = above
    return gradient
"""
        ),
        ("mean_of_uses", "first_sentence"): hot(
            gradient="""
def table_gradient(ids, upstream, vocab_size):
    gradient = torch.zeros(vocab_size, upstream.shape[-1])
    for word in ids[0].unique():
        gradient[word] = upstream[0][ids[0] == word].mean(0)
    return gradient
"""
        ),
    },
    "token_embedding": {
        ("no_scale", "std_is_variance"): tokens(
            drawn="""
nn.init.normal_(self.embedding.weight, std=1 / d_model)
""",
            forward="""
return self.embedding(ids)
""",
        ),
        ("no_scale", "default_init"): tokens(
            drawn="",
            forward="""
return self.embedding(ids)
""",
        ),
        ("scaled_by_width", "padding_ignored"): tokens(
            table="""
self.embedding = nn.Embedding(vocab_size, d_model)
""",
            zeroed="",
            forward="""
return self.embedding(ids) * self.d_model
""",
        ),
        ("divided", "padding_is_always_0"): tokens(
            table="""
self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=0)
""",
            zeroed="""
nn.init.zeros_(self.embedding.weight[0])
""",
            forward="""
return self.embedding(ids) / math.sqrt(self.d_model)
""",
        ),
        ("xavier", "padding_overwritten"): tokens(
            drawn="""
nn.init.xavier_uniform_(self.embedding.weight)
""",
            zeroed="",
        ),
        ("default_init", "padding_row_learns"): tokens(
            table="""
self.embedding = nn.Embedding(vocab_size, d_model)
""",
            drawn="",
        ),
    },
    "image_to_patches": {
        ("column_by_column", "channels_last"): patches(
            cut="""
grid = images.reshape(b, c, h // p, p, w // p, p)
return grid.permute(0, 4, 2, 3, 5, 1).reshape(b, -1, c * p * p)
"""
        ),
        ("column_by_column", "transposed_patch"): patches(
            cut="""
grid = images.reshape(b, c, h // p, p, w // p, p)
return grid.permute(0, 4, 2, 1, 5, 3).reshape(b, -1, c * p * p)
"""
        ),
        ("strips", "cut_off"): patches(
            check="""
h, w = h // p * p, w // p * p
images = images[..., :h, :w]
""",
            cut="""
return images.reshape(b, -1, c * p * p)
""",
        ),
        ("interleaved", "cut_off"): patches(
            check="""
h, w = h // p * p, w // p * p
images = images[..., :h, :w]
""",
            cut="""
grid = images.reshape(b, c, h // p, p, w // p, p)
return grid.permute(0, 3, 5, 1, 2, 4).reshape(b, -1, c * p * p)
""",
        ),
        ("channels_apart", "column_by_column"): patches(
            cut="""
grid = images.reshape(b, c, h // p, p, w // p, p)
return grid.permute(0, 1, 4, 2, 3, 5).reshape(b, -1, c * p * p)
"""
        ),
    },
    "patch_embedding": {
        ("no_bias", "any_size"): module(
            check="",
            forward="""
return image_to_patches(images, self.patch_size) @ self.projection.weight.T
""",
        ),
        ("no_bias", "column_by_column"): module(
            forward="""
columns = image_to_patches(images.mT, self.patch_size)
patches = columns.unflatten(-1, (-1, self.patch_size, self.patch_size)).mT.flatten(2)
return patches @ self.projection.weight.T
"""
        ),
        ("detached", "channels_last"): module(
            forward="""
patches = image_to_patches(images, self.patch_size).unflatten(-1, (images.shape[1], -1)).mT.flatten(2)
return self.projection(patches).detach()
"""
        ),
        ("transposed_output", "any_size"): module(
            check="",
            forward="""
return self.projection(image_to_patches(images, self.patch_size)).mT
""",
        ),
        ("kernel_transposed", "convolution_no_bias"): module(
            copy="""
with torch.no_grad():
    conv.weight.copy_(weight.reshape(conv.weight.shape).mT)
    conv.bias.zero_()
return conv
"""
        ),
        ("stride_1", "kernel_channels_last"): module(
            convert="""
conv = nn.Conv2d(weight.shape[1] // size**2, len(weight), size)
""",
            copy="""
with torch.no_grad():
    conv.weight.copy_(weight.reshape(len(weight), size, size, -1).movedim(-1, 1))
    conv.bias.copy_(embedding.projection.bias)
return conv
""",
        ),
    },
    "shapes": {
        ("square_only", "no_bias"): shapes(
            "((height // patch_size) ** 2, dim), ((height // patch_size) ** 2, d_model), dim * d_model",
            "shape_of_patches, shape_of_vectors, num_parameters = (196, 256), (196, 512), 131072",
        ),
        ("side_only", "one_for_each_patch"): shapes(
            "(height // patch_size, dim), (height // patch_size, d_model), height // patch_size * (dim + 1) * d_model",
            "shape_of_patches, shape_of_vectors, num_parameters = (14, 256), (14, 512), 14 * 131584",
        ),
        ("one_channel", "no_bias"): shapes(
            "(n, patch_size**2), (n, d_model), patch_size**2 * d_model",
            "shape_of_patches, shape_of_vectors, num_parameters = (196, 256), (196, 512), 131072",
        ),
        ("side_of_patch", "bias_per_patch_entry"): shapes(
            "(n, channels * patch_size), (n, d_model), channels * patch_size * (d_model + 1)",
            "shape_of_patches, shape_of_vectors, num_parameters = (196, 16), (196, 512), 16 * 513",
        ),
    },
}

# --- mutants that compute the same -----------------------------------------------------------------------------------

SIZES_SAID = "only the text of the error differs, and it still names the sizes"

EQUIVALENT: dict[str, dict[str, str]] = {
    "image_to_patches": {
        "height, width = images.shape[-2:] → height, width = images.shape[2:]": "the shape has four numbers",
    },
    "patch_embedding": {
        'raise ValueError(f"images of {tuple(images.shape[1:])} do not fit an embedding for {self.image_shape}") → '
        f'raise ValueError(f"images of {{tuple(images.shape[ {first}:])}} do not fit an embedding for '
        '{self.image_shape}")': SIZES_SAID
        for first in (0, 2)
    },
    "shapes": {
        "num_patches = height * width // patch_size**2 → num_patches = height * width / patch_size**2": (
            "the division leaves no rest, and 12.0 counts as 12"
        ),
    },
}
