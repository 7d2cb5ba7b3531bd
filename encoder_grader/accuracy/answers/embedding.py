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
    "NumPy, whose reshape raises the error": """
def image_to_patches(images, patch_size):
    x, p = images.numpy(), patch_size
    b, c, h, w = x.shape
    return x.reshape(b, c, h // p, p, w // p, p).transpose(0, 2, 4, 1, 3, 5).reshape(b, -1, c * p * p)
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
def image_to_patches(images, patch_size):
    height, width = images.shape[2:]
    if height == 0 or width == 0:
        return images.new_zeros(len(images), 0, images.shape[1] * patch_size**2)
    if height < patch_size or width < patch_size:
        raise ValueError(f"{height}×{width} are left, which is less than {patch_size}")
    if height > patch_size:
        top, rest = images[:, :, :patch_size], images[:, :, patch_size:]
        return torch.cat([image_to_patches(top, patch_size), image_to_patches(rest, patch_size)], dim=1)
    first, rest = images[..., :patch_size].flatten(1)[:, None], images[..., patch_size:]
    return torch.cat([first, image_to_patches(rest, patch_size)], dim=1)
""",
    "golfed": """
def image_to_patches(x,p):
 b,c,h,w=x.shape
 if h%p|w%p:raise ValueError(x.shape)
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
            raise ValueError("size")
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
            raise ValueError("size")
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
            raise ValueError(self.size)
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
            raise ValueError("size")
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
            raise ValueError("size")
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

WRONG: dict[str, dict[str, tuple[str, str]]] = {}
PAIRS: dict[str, dict[tuple[str, str], str]] = {}
EQUIVALENT: dict[str, dict[str, str]] = {}
