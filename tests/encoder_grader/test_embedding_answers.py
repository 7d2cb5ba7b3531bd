# ruff: noqa: E501  (one answer a line)
"""Right answers to chapter 1 in many more styles, and wrong ones with the claims that each has to cost."""

import linecache
import math

import numpy as np
import pytest
import torch
from torch import nn

from encoder_grader.checking import verdict_on
from encoder_lib.embedding import image_to_patches

ONE_HOT = """\
def one_hot(ids, v): return (ids[..., None]==torch.arange(v)).float()
def lookup_by_product(ids, table): return one_hot(ids, len(table)) @ table
def table_gradient(ids, upstream, v): return torch.einsum('bsv,bsd->vd', one_hot(ids, v), upstream)
"""
OTHERS = """\
def lookup_by_product(ids, table): return one_hot(ids, len(table)) @ table
def table_gradient(ids, upstream, vocab_size): return one_hot(ids, vocab_size).flatten(0, 1).mT @ upstream.flatten(0, 1)
"""
OTHERS = "\n" + OTHERS


DRAWN = """\
nn.init.normal_(self.embedding.weight, std=d_model**-.5)
        if pad_id is not None:
            with torch.no_grad(): self.embedding.weight[pad_id]=0
""".rstrip()


def tokens(init: str = DRAWN, fwd: str = "return self.embedding(ids) * self.d_model**0.5") -> str:
    """A TokenEmbedding, right but for what is passed."""
    return f"""\
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
        {init}
        self.d_model=d_model; self.pad_id=pad_id
        self.n=0
    def forward(self, ids):
        {fwd}
"""


DIVIDES = "if h%p or w%p: raise ValueError"
CUT = "return images.reshape(b,c,h//p,p,w//p,p).permute(0,2,4,1,3,5).reshape(b,-1,c*p*p)"


def patches(chk: str = DIVIDES, body: str = CUT) -> str:
    """An image_to_patches, right but for what is passed."""
    return f"""\
def image_to_patches(images, p):
    b,c,h,w=images.shape
    {chk}
    {body}
"""


LINEAR = "self.projection = nn.Linear(channels*patch_size**2, d_model)"
CONVERTED = """\
conv = nn.Conv2d(w.shape[1]//p**2, len(w), p, p)
    conv.load_state_dict(dict(weight=w.detach().view(conv.weight.shape), bias=embedding.projection.bias.detach()))
    return conv
""".rstrip()


def module(
    init: str = LINEAR,
    chk: str = "if images.shape[-2:] != (self.image_size,)*2: raise ValueError",
    fwd: str = "return self.projection(image_to_patches(images, self.patch_size))",
    conv: str = CONVERTED,
) -> str:
    """A PatchEmbedding and its as_convolution, right but for what is passed."""
    return f"""\
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model):
        super().__init__()
        self.image_size, self.patch_size, self.channels = image_size, patch_size, channels
        {init}
        self.n=0
    def forward(self, images):
        {chk}
        {fwd}
def as_convolution(embedding):
    p, w = embedding.patch_size, embedding.projection.weight
    {conv}
"""


def shapes(result: str) -> str:
    """The right predictions, and a patch_shapes that returns `result`."""
    return f"""\
shape_of_patches, shape_of_vectors, num_parameters = (196, 256), (196, 512), 131584
def patch_shapes(h, w, c, p, d): return {result}
"""


RIGHT = {
    ("one_hot_lookup", "golfed"): """\
one_hot=lambda i,v:1.*(i[...,None]==torch.arange(v))
lookup_by_product=lambda i,t:one_hot(i,len(t))@t
table_gradient=lambda i,u,v:one_hot(i,v).flatten(0,1).T@u.flatten(0,1)""",
    ("one_hot_lookup", "scripted"): """\
@torch.jit.script
def one_hot(ids: Tensor, vocab_size: int) -> Tensor:
    return torch.zeros(ids.shape[0], ids.shape[1], vocab_size).scatter(2, ids.unsqueeze(2), 1.0)"""
    + OTHERS,
    ("one_hot_lookup", "vmapped"): """\
def one_hot(ids, vocab_size):
    return torch.vmap(torch.vmap(lambda i: (i == torch.arange(vocab_size)).float()))(ids)
lookup_by_product = torch.vmap(lambda row, table: one_hot(row[None], len(table))[0] @ table, in_dims=(0, None))
def table_gradient(ids, upstream, vocab_size):
    return torch.vmap(lambda i, u: one_hot(i[None], vocab_size)[0].mT @ u)(ids, upstream).sum(0)""",
    ("one_hot_lookup", "keyword-only helpers and partial"): """\
import functools
def _hot(*, ids, vocab_size, on): return torch.where(ids[..., None] == torch.arange(vocab_size), on, 0.0)
def one_hot(ids, /, vocab_size): return _hot(ids=ids, vocab_size=vocab_size, on=1.0)
def _look(hot, ids, table): return torch.tensordot(hot(ids, len(table)), table, dims=1)
lookup_by_product = functools.partial(_look, one_hot)
table_gradient = lambda ids, upstream, vocab_size: torch.tensordot(one_hot(ids, vocab_size), upstream, dims=([0, 1], [0, 1]))""",
    ("one_hot_lookup", "decorated, with prints"): """\
import functools, warnings, sys
def loud(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        print(f.__name__); warnings.warn('x'); print('err', file=sys.stderr)
        return f(*args, **kwargs)
    return inner
@loud
def one_hot(ids, vocab_size): return torch.eye(vocab_size).index_select(0, ids.flatten()).unflatten(0, ids.shape)"""
    + OTHERS,
    ("one_hot_lookup", "callable objects"): """\
class Hot:
    def __call__(self, ids, vocab_size): return torch.nn.init.eye_(torch.empty(vocab_size, vocab_size))[ids]
one_hot = Hot()"""
    + OTHERS,
    ("one_hot_lookup", "a sparse gradient"): ONE_HOT
    + "def table_gradient(ids, upstream, v): return torch.sparse_coo_tensor(ids.reshape(1,-1), upstream.flatten(0,1), (v, upstream.shape[-1]))",
    ("one_hot_lookup", "tensor subclass"): """\
class Mine(Tensor): pass
def one_hot(ids, vocab_size): return (ids[..., None] == torch.arange(vocab_size)).float().as_subclass(Mine)"""
    + OTHERS,
    ("one_hot_lookup", "in place on its input"): """\
def one_hot(ids, vocab_size):
    out = torch.zeros(*ids.shape, vocab_size).scatter_(-1, ids[..., None], 1.0)
    ids.zero_()
    return out"""
    + OTHERS,
    ("one_hot_lookup", "changed global settings"): """\
torch.set_default_dtype(torch.float64); torch.set_grad_enabled(False)
def one_hot(ids, v): return (ids[..., None]==torch.arange(v)).float()
def lookup_by_product(ids, table): return one_hot(ids, len(table)) @ table
def table_gradient(ids, upstream, v): return torch.einsum('bsv,bsd->vd', one_hot(ids, v), upstream)
""",
    ("one_hot_lookup", "settings changed inside"): ONE_HOT
    + """\
old=one_hot
def one_hot(ids, v):
    torch.set_default_dtype(torch.float64); torch.set_grad_enabled(False)
    return old(ids, v)""",
    ("one_hot_lookup", "not contiguous"): ONE_HOT
    + """\
def one_hot(ids, v): return torch.stack([(ids==k).float() for k in range(v)]).movedim(0,-1)
def table_gradient(ids, upstream, v): return (upstream.flatten(0,1).T @ one_hot(ids,v).flatten(0,1)).T""",
    ("one_hot_lookup", "a Parameter"): ONE_HOT
    + "def one_hot(ids, v): return nn.Parameter((ids[..., None]==torch.arange(v)).float())",
    ("one_hot_lookup", "bincount and lists"): """\
def one_hot(ids, vocab_size): return torch.tensor([[[float(k == i) for k in range(vocab_size)] for i in row] for row in ids.tolist()])
def lookup_by_product(ids, table): return torch.stack([torch.stack([sum(h * r for h, r in zip(hot, table)) for hot in row]) for row in one_hot(ids, len(table))])
def table_gradient(ids, upstream, vocab_size):
    cols = [torch.bincount(ids.flatten(), weights=upstream[..., d].flatten(), minlength=vocab_size) for d in range(upstream.shape[-1])]
    return torch.stack(cols, 1)""",
    ("one_hot_lookup", "scatter_add"): ONE_HOT
    + """\
def table_gradient(ids, upstream, v):
    flat = upstream.flatten(0,1)
    return torch.zeros(v, flat.shape[1]).scatter_add(0, ids.reshape(-1,1).expand_as(flat), flat)""",
    ("token_embedding", "a buffer for the scale"): """
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
        nn.init.normal_(self.embedding.weight, std=d_model ** -.5)
        if pad_id is not None: nn.init.zeros_(self.embedding.weight[pad_id])
        self.register_buffer('scale', torch.tensor(d_model).sqrt())
    def forward(self, ids):
        return self.embedding(ids) * self.scale
""",
    ("token_embedding", "sparse gradients"): """
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id, sparse=True)
        nn.init.normal_(self.embedding.weight, std=d_model ** -.5)
        if pad_id is not None: nn.init.zeros_(self.embedding.weight[pad_id])
        
    def forward(self, ids):
        return self.embedding(ids) * self.embedding.embedding_dim ** .5
""",
    ("token_embedding", "scripted module"): """
class Inner(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
        nn.init.normal_(self.embedding.weight, std=d_model ** -.5)
        if pad_id is not None: nn.init.zeros_(self.embedding.weight[pad_id])
        self.f=float(d_model**.5)
    def forward(self, ids):
        return self.embedding(ids) * self.f

def TokenEmbedding(*args, **kwargs): return torch.jit.script(Inner(*args, **kwargs))""",
    ("token_embedding", "submodules"): """\
class Scale(nn.Module):
    def __init__(self, f): super().__init__(); self.f = f
    def forward(self, x): return x * self.f

class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
        nn.init.normal_(self.embedding.weight, std=d_model ** -.5)
        if pad_id is not None: nn.init.zeros_(self.embedding.weight[pad_id])
        self.post = nn.Sequential(nn.Identity(), Scale(math.sqrt(d_model)))
    def forward(self, ids):
        return self.post(self.embedding(ids))
""",
    ("token_embedding", "functional, mask on the weight's gradient"): """\
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, *, pad_id=None):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        w = self.embedding.weight
        w.data = torch.randn_like(w) / d_model ** .5
        if pad_id is not None:
            w.data[pad_id] = 0
            w.register_hook(lambda g: g.index_fill(0, torch.tensor([pad_id]), 0))
        self.scale = d_model ** .5
    def forward(self, ids): return nn.functional.embedding(ids, self.embedding.weight) * self.scale""",
    ("token_embedding", "post-accumulate hook"): """\
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, *, pad_id=None):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        w = self.embedding.weight
        w.data = torch.randn_like(w) / d_model ** .5
        if pad_id is not None:
            w.data[pad_id] = 0
            w.register_post_accumulate_grad_hook(lambda p: p.grad[pad_id].zero_() and None if False else p.grad.__setitem__(pad_id, 0))
        self.scale = d_model ** .5
    def forward(self, ids): return nn.functional.embedding(ids, self.embedding.weight) * self.scale""",
    ("token_embedding", "dataclass"): """\
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
            self.embedding.weight /= self.d_model ** .5
    def forward(self, ids): return self.embedding(ids) * self.d_model ** .5""",
    ("token_embedding", "from_pretrained"): """\
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        t = torch.normal(0., d_model ** -.5, (vocab_size, d_model))
        if pad_id is not None: t[pad_id] = 0
        self.embedding = nn.Embedding.from_pretrained(t, freeze=False, padding_idx=pad_id)
        self.d = d_model
    def forward(self, ids): return self.embedding(ids).mul_(math.sqrt(self.d))""",
    ("token_embedding", "alias registered first"): """\
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        e = nn.Embedding(vocab_size, d_model, padding_idx=pad_id); nn.init.normal_(e.weight, 0, d_model**-.5)
        if pad_id is not None: e.weight.data[pad_id] = 0
        self.a_weight = e.weight
        self.embedding = e
    def forward(self, ids): return self.embedding(ids) * self.a_weight.shape[1]**.5""",
    ("token_embedding", "a mask of the table's shape as a buffer"): """\
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model) / d_model**.5)
        keep = torch.ones(vocab_size, d_model)
        if pad_id is not None: keep[pad_id] = 0
        self.register_buffer('keep', keep)
    def forward(self, ids): return (self.weight * self.keep)[ids] * self.weight.shape[1]**.5""",
    ("token_embedding", "truncated normal"): """
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
        nn.init.normal_(self.embedding.weight, std=d_model ** -.5)
        if pad_id is not None: nn.init.zeros_(self.embedding.weight[pad_id])
        nn.init.trunc_normal_(self.embedding.weight, std=d_model**-.5)
        if pad_id is not None: self.embedding.weight.data[pad_id] = 0
    def forward(self, ids):
        return self.embedding(ids) * self.embedding.embedding_dim ** .5
""",
    ("token_embedding", "counts its calls"): """
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
        nn.init.normal_(self.embedding.weight, std=d_model ** -.5)
        if pad_id is not None: nn.init.zeros_(self.embedding.weight[pad_id])
        self.calls=0
    def forward(self, ids):
        self.calls += 1; return self.embedding(ids) * self.embedding.embedding_dim ** .5
""",
    ("image_to_patches", "chunks"): """
def image_to_patches(images, patch_size):
    p = patch_size; b, c, h, w = images.shape
    if h % p or w % p: raise ValueError(f'{h}x{w} / {p}')
    return torch.cat([torch.stack([t.flatten(1) for t in band.chunk(w//p, 3)], 1) for band in images.chunk(h//p, 2)], 1)
""",
    ("image_to_patches", "unflatten"): """
def image_to_patches(images, patch_size):
    p = patch_size; b, c, h, w = images.shape
    if h % p or w % p: raise ValueError(f'{h}x{w} / {p}')
    return images.unflatten(3,(-1,p)).unflatten(2,(-1,p)).movedim((2,4),(1,2)).flatten(3).flatten(1,2)
""",
    ("image_to_patches", "index arithmetic"): """
def image_to_patches(images, patch_size):
    p = patch_size; b, c, h, w = images.shape
    if h % p or w % p: raise ValueError(f'{h}x{w} / {p}')
    k = torch.arange(c*p*p); ch, r, q = k//(p*p), k%(p*p)//p, k%p
    n = torch.arange((h//p)*(w//p)); R, C = n//(w//p)*p, n%(w//p)*p
    return images[:, ch, R[:,None]+r, C[:,None]+q]
""",
    ("image_to_patches", "convolution with an identity kernel"): """
def image_to_patches(images, patch_size):
    p = patch_size; b, c, h, w = images.shape
    if h % p or w % p: raise ValueError(f'{h}x{w} / {p}')
    return nn.functional.conv2d(images, torch.eye(c*p*p).view(-1,c,p,p), stride=p).flatten(2).transpose(1,2)
""",
    ("image_to_patches", "as_strided"): """
def image_to_patches(images, patch_size):
    p = patch_size; b, c, h, w = images.shape
    if h % p or w % p: raise ValueError(f'{h}x{w} / {p}')
    images=images.contiguous(); s=images.stride(); return images.as_strided((b,h//p,w//p,c,p,p),(s[0],p*s[2],p*s[3],s[1],s[2],s[3])).reshape(b,-1,c*p*p)
""",
    ("image_to_patches", "vmap"): """
def image_to_patches(images, patch_size):
    p = patch_size; b, c, h, w = images.shape
    if h % p or w % p: raise ValueError(f'{h}x{w} / {p}')
    return torch.vmap(lambda x: x.reshape(c,h//p,p,w//p,p).permute(1,3,0,2,4).reshape(-1,c*p*p))(images)
""",
    ("image_to_patches", "a subclass of ValueError"): """\
class SizeError(ValueError): pass
def image_to_patches(images, patch_size):
    p = patch_size; b, c, h, w = images.shape
    if h % p or w % p: raise SizeError(f'{h}x{w} / {p}')
    return images.view(b,c,h//p,p,w//p,p).permute(0,2,4,1,3,5).reshape(b,-1,c*p*p)
""",
    ("image_to_patches", "numpy lets it raise"): """\
def image_to_patches(images, patch_size):
    x=images.numpy(); b,c,h,w=x.shape; p=patch_size
    return x.reshape(b,c,h//p,p,w//p,p).transpose(0,2,4,1,3,5).reshape(b,-1,c*p*p)""",
    ("image_to_patches", "half"): """
def image_to_patches(images, patch_size):
    p = patch_size; b, c, h, w = images.shape
    if h % p or w % p: raise ValueError(f'{h}x{w} / {p}')
    return images.half().reshape(b,c,h//p,p,w//p,p).permute(0,2,4,1,3,5).reshape(b,-1,c*p*p)
""",
    ("image_to_patches", "bfloat16"): """
def image_to_patches(images, patch_size):
    p = patch_size; b, c, h, w = images.shape
    if h % p or w % p: raise ValueError(f'{h}x{w} / {p}')
    return images.bfloat16().reshape(b,c,h//p,p,w//p,p).permute(0,2,4,1,3,5).reshape(b,-1,c*p*p)
""",
    ("image_to_patches", "nn.Fold's inverse by loops"): """
def image_to_patches(images, patch_size):
    p = patch_size; b, c, h, w = images.shape
    if h % p or w % p: raise ValueError(f'{h}x{w} / {p}')
    out = torch.empty(b, (h//p)*(w//p), c*p*p)
    for i in range(b):
        for n in range(out.shape[1]):
            y, x = divmod(n, w//p)
            for ch in range(c):
                for r in range(p):
                    for q in range(p): out[i,n,(ch*p+r)*p+q] = images[i,ch,y*p+r,x*p+q]
    return out
""",
    ("image_to_patches", "zeroes its input"): """
def image_to_patches(images, patch_size):
    p = patch_size; b, c, h, w = images.shape
    if h % p or w % p: raise ValueError(f'{h}x{w} / {p}')
    out = images.clone().reshape(b,c,h//p,p,w//p,p).permute(0,2,4,1,3,5).reshape(b,-1,c*p*p); images.zero_(); return out
""",
    ("image_to_patches", "inference mode"): """\
@torch.inference_mode()
def image_to_patches(images, patch_size):
    p = patch_size; b, c, h, w = images.shape
    if h % p or w % p: raise ValueError(f'{h}x{w} / {p}')
    return images.reshape(b,c,h//p,p,w//p,p).permute(0,2,4,1,3,5).reshape(b,-1,c*p*p)
""",
    ("patch_embedding", "lazy linear"): module(init="self.projection = nn.LazyLinear(d_model)"),
    ("patch_embedding", "extra unused weights"): module(
        init=LINEAR + "; self.position = nn.Parameter(torch.zeros(9, 3)); self.head = nn.Linear(4, 4)"
    ),
    ("patch_embedding", "einsum"): module(
        fwd="x=image_to_patches(images, self.patch_size); return torch.einsum('bnp,dp->bnd', x, self.projection.weight) + self.projection.bias"
    ),
    ("patch_embedding", "bias by hand"): module(
        fwd="return image_to_patches(images, self.patch_size) @ self.projection.weight.T + self.projection.bias"
    ),
    ("patch_embedding", "loops over patches"): module(
        fwd="return torch.stack([self.projection(t) for t in image_to_patches(images, self.patch_size).unbind(1)], 1)"
    ),
    ("patch_embedding", "double result"): module(
        fwd="return self.projection(image_to_patches(images, self.patch_size)).double()"
    ),
    ("patch_embedding", "bfloat16 result"): module(
        fwd="return self.projection(image_to_patches(images, self.patch_size)).bfloat16()"
    ),
    ("patch_embedding", "a Conv2d subclass"): """
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model):
        super().__init__()
        self.image_size, self.patch_size, self.channels = image_size, patch_size, channels
        self.projection = nn.Linear(channels*patch_size**2, d_model)
        self.n=0
    def forward(self, images):
        if images.shape[-2:] != (self.image_size,)*2: raise ValueError
        return self.projection(image_to_patches(images, self.patch_size))
def as_convolution(embedding):
    p, w = embedding.patch_size, embedding.projection.weight
    conv = Mine(w.shape[1]//p**2, len(w), p, p)
    conv.load_state_dict(dict(weight=w.detach().view(conv.weight.shape), bias=embedding.projection.bias.detach()))
    return conv

class Mine(nn.Conv2d): pass""",
    ("patch_embedding", "conv sharing the weight"): module(
        conv="""\
conv = nn.Conv2d(w.shape[1]//p**2, len(w), p, p)
    conv.weight = nn.Parameter(w.view(len(w),-1,p,p)); conv.bias = embedding.projection.bias
    return conv"""
    ),
    ("patch_embedding", "Sequential child named 0"): """
class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model):
        super().__init__()
        self.image_size, self.patch_size, self.channels = image_size, patch_size, channels
        self.projection = nn.Sequential(nn.Linear(channels*patch_size**2, d_model))
        self.n=0
    def forward(self, images):
        if images.shape[-2:] != (self.image_size,)*2: raise ValueError
        return self.projection(image_to_patches(images, self.patch_size))
def as_convolution(embedding):
    p, w = embedding.patch_size, embedding.projection[0].weight
    w = embedding.projection[0].weight; conv = nn.Conv2d(w.shape[1]//p**2, len(w), p, p)
    conv.load_state_dict(dict(weight=w.detach().view(conv.weight.shape), bias=embedding.projection[0].bias.detach()))
    return conv
""",
    ("shapes", "namedtuples"): """\
shape_of_patches, shape_of_vectors, num_parameters = (196, 256), (196, 512), 131584
from collections import namedtuple
S=namedtuple('S','n d'); A=namedtuple('A','p v c')
def patch_shapes(height, width, channels, patch_size, d_model):
    n=height//patch_size*(width//patch_size); return A(S(n,channels*patch_size**2),S(n,d_model),(channels*patch_size**2+1)*d_model)""",
    ("shapes", "meta tensors"): """\
shape_of_patches, shape_of_vectors, num_parameters = (196, 256), (196, 512), 131584
def patch_shapes(height, width, channels, patch_size, d_model):
    with torch.device('meta'):
        m=nn.Conv2d(channels,d_model,patch_size,patch_size); x=torch.empty(1,channels,height,width)
        y=m(x); n=y[0,0].numel()
        return (n, m.weight[0].numel()), y.flatten(2).mT.shape[1:], sum(p.numel() for p in m.parameters())""",
    ("shapes", "arrays"): """\
shape_of_patches = np.array([196,256]); shape_of_vectors = torch.tensor([196,512]); num_parameters = 131_584.0
def patch_shapes(*a):
    h,w,c,p,d=map(np.array,a); n=h//p*(w//p); return np.array([n,c*p*p]), torch.tensor([n,d]), torch.tensor((c*p*p+1)*d)""",
    ("shapes", "recursive helper"): """\
shape_of_patches, shape_of_vectors, num_parameters = (196, 256), (196, 512), 131584
def grid(h,w,p): return 0 if h<p else w//p+grid(h-p,w,p)
def patch_shapes(height, width, channels, patch_size, d_model):
    n=grid(height,width,patch_size); q=channels*patch_size**2
    return (n,q),(n,d_model),q*d_model+d_model""",
    ("shapes", "classes of int"): """\
shape_of_patches, shape_of_vectors, num_parameters = (196, 256), (196, 512), 131584
import enum
class N(int): pass
def patch_shapes(height, width, channels, patch_size, d_model):
    n=N(height//patch_size*(width//patch_size)); q=N(channels*patch_size**2)
    return [n,q],[n,N(d_model)],N(q*d_model+d_model)""",
    ("shapes", "floats"): """\
shape_of_patches, shape_of_vectors, num_parameters = (196, 256), (196, 512), 131584
def patch_shapes(height, width, channels, patch_size, d_model):
    n=height/patch_size*(width/patch_size); q=channels*patch_size**2.
    return (n,q),(n,d_model),q*d_model+d_model""",
    ("shapes", "names that shadow"): """\
shape_of_patches, shape_of_vectors, num_parameters = (196, 256), (196, 512), 131584
answers = plan = collect = judge = verdict_on = list = None
def patch_shapes(height, width, channels, patch_size, d_model):
    n=height//patch_size*(width//patch_size); q=channels*patch_size**2
    return (n,q),(n,d_model),q*d_model+d_model""",
}

WRONG = {  # with the claims that it loses
    ("one_hot_lookup", "state oh", "one_hot product summed"): ONE_HOT
    + """\
old=one_hot
count=[0]
def one_hot(ids,v):
  count[0]+=1
  return old(ids,v)*(1 if count[0]<4 else 2)""",
    ("one_hot_lookup", "cached oh", "one_hot product summed unused"): ONE_HOT
    + """\
old=one_hot
cache={}
def one_hot(ids,v):
  if 'x' not in cache: cache['x']=old(ids,v)
  return cache['x']""",
    ("one_hot_lookup", "cached table", "product"): ONE_HOT
    + """\
cache=[]
def lookup_by_product(ids,table):
  cache.append(table)
  return cache[0][ids.clamp(max=len(cache[0])-1)][...,:table.shape[1]]""",
    ("one_hot_lookup", "max vocab", "one_hot product summed unused"): """
def one_hot(ids, v): return (ids[..., None]==torch.arange(ids.max()+1)).float()
def lookup_by_product(ids, table): return one_hot(ids, len(table)) @ table
def table_gradient(ids, upstream, v): return torch.einsum('bsv,bsd->vd', one_hot(ids, v), upstream)
""",
    ("one_hot_lookup", "clipped", "summed"): ONE_HOT
    + "def table_gradient(ids, upstream, v): return (torch.einsum('bsv,bsd->vd', one_hot(ids, v), upstream)).clamp(-1,1)",
    ("one_hot_lookup", "no batch", "product"): ONE_HOT
    + "def lookup_by_product(ids, table): return one_hot(ids[:1], len(table)).expand(len(ids),-1,-1) @ table",
    ("one_hot_lookup", "grad mean batch", "summed"): ONE_HOT
    + "def table_gradient(ids, upstream, v): return torch.einsum('bsv,bsd->vd', one_hot(ids, v), upstream)/len(ids)",
    ("one_hot_lookup", "grad abs", "summed"): ONE_HOT
    + "def table_gradient(ids, upstream, v): return torch.einsum('bsv,bsd->vd', one_hot(ids, v), upstream.abs())",
    ("one_hot_lookup", "index put", "summed"): ONE_HOT
    + """\
def table_gradient(ids, upstream, v):
  g=torch.zeros(v,upstream.shape[-1]); g[ids]+=upstream; return g""",
    ("one_hot_lookup", "oh no zero", "one_hot product summed unused"): ONE_HOT
    + "def one_hot(ids,v): return (ids[..., None]==torch.arange(v)).float()*(ids>0)[...,None]",
    ("one_hot_lookup", "oh bool", "one_hot product summed unused"): ONE_HOT
    + "def one_hot(ids,v): return (ids[..., None]==torch.arange(v))",
    ("one_hot_lookup", "oh long", "one_hot product summed unused"): ONE_HOT
    + "def one_hot(ids,v): return (ids[..., None]==torch.arange(v)).long()",
    ("one_hot_lookup", "oh squeeze2d", "one_hot product summed unused"): ONE_HOT
    + "def one_hot(ids,v): return torch.eye(v)[ids.flatten()]",
    ("token_embedding", "falsy zero", "padding_is_zero"): tokens(
        init="""\
nn.init.normal_(self.embedding.weight, std=d_model**-.5)
        if pad_id :
            with torch.no_grad(): self.embedding.weight[pad_id]=0"""
    ),
    ("token_embedding", "falsy both", "padding_is_zero padding_learns_nothing"): tokens(
        init="""\
pad_id=pad_id or None
        self.embedding=nn.Embedding(vocab_size,d_model,padding_idx=pad_id)
        """
        + DRAWN
    ),
    ("token_embedding", "indent", "initialised"): tokens(
        init="""\
if pad_id is not None:
            nn.init.normal_(self.embedding.weight, std=d_model**-.5)
            with torch.no_grad(): self.embedding.weight[pad_id]=0"""
    ),
    ("token_embedding", "column", "padding_is_zero"): tokens(
        init="""\
nn.init.normal_(self.embedding.weight, std=d_model**-.5)
        if pad_id is not None:
            with torch.no_grad(): self.embedding.weight[:,pad_id]=0"""
    ),
    ("token_embedding", "upto", "padding_is_zero"): tokens(
        init="""\
nn.init.normal_(self.embedding.weight, std=d_model**-.5)
        if pad_id is not None:
            with torch.no_grad(): self.embedding.weight[:pad_id+1]=0"""
    ),
    ("token_embedding", "pair", "padding_is_zero"): tokens(
        init="""\
nn.init.normal_(self.embedding.weight, std=d_model**-.5)
        if pad_id is not None:
            with torch.no_grad(): self.embedding.weight[pad_id-1:pad_id+1]=0"""
    ),
    ("token_embedding", "last pad", "padding_is_zero"): tokens(
        init="""\
nn.init.normal_(self.embedding.weight, std=d_model**-.5)
        if pad_id is not None:
            with torch.no_grad(): self.embedding.weight[-1]=0"""
    ),
    ("token_embedding", "row repeated", "initialised"): tokens(
        init=DRAWN
        + """
        with torch.no_grad(): self.embedding.weight.copy_(torch.randn(vocab_size,1).expand(-1,d_model)/d_model**.5)
        if pad_id is not None:
            with torch.no_grad(): self.embedding.weight[pad_id]=0"""
    ),
    ("token_embedding", "col repeated", "initialised"): tokens(
        init=DRAWN
        + """
        with torch.no_grad(): self.embedding.weight.copy_(torch.randn(1,d_model).expand(vocab_size,-1)/d_model**.5)
        if pad_id is not None:
            with torch.no_grad(): self.embedding.weight[pad_id]=0"""
    ),
    ("token_embedding", "uniform same var", "initialised"): tokens(
        init="""\
nn.init.uniform_(self.embedding.weight, -(3/d_model)**.5,(3/d_model)**.5)
        if pad_id is not None:
            with torch.no_grad(): self.embedding.weight[pad_id]=0"""
    ),
    ("token_embedding", "laplace", "initialised"): tokens(
        init="""\
self.embedding.weight.data=torch.distributions.Laplace(0,(2*d_model)**-.5).sample((vocab_size,d_model))
        if pad_id is not None:
            with torch.no_grad(): self.embedding.weight[pad_id]=0"""
    ),
    ("token_embedding", "std vocab", "initialised"): tokens(
        init="""\
nn.init.normal_(self.embedding.weight, std=vocab_size**-.5)
        if pad_id is not None:
            with torch.no_grad(): self.embedding.weight[pad_id]=0"""
    ),
    ("token_embedding", "std 0.02", "initialised"): tokens(
        init="""\
nn.init.normal_(self.embedding.weight, std=0.02)
        if pad_id is not None:
            with torch.no_grad(): self.embedding.weight[pad_id]=0"""
    ),
    ("token_embedding", "abs", "initialised"): tokens(
        init="""\
nn.init.normal_(self.embedding.weight, std=d_model**-.5).data.abs_()
        if pad_id is not None:
            with torch.no_grad(): self.embedding.weight[pad_id]=0"""
    ),
    ("token_embedding", "state scale", "scaled"): tokens(
        fwd="self.embedding.weight.data*=self.d_model**.5; return self.embedding(ids)"
    ),
    ("token_embedding", "counts", "scaled"): tokens(
        fwd="self.n+=1; return self.embedding(ids)*self.d_model**.5*(1 if self.n==1 else 1.01)"
    ),
    ("token_embedding", "train only", "scaled"): tokens(
        fwd="return self.embedding(ids)*(self.d_model**.5 if self.training else 1)"
    ),
    ("token_embedding", "eval only", "scaled"): tokens(
        fwd="return self.embedding(ids)*(self.d_model**.5 if not self.training else 1)"
    ),
    ("token_embedding", "dropout", "rows scaled"): tokens(
        fwd="return nn.functional.dropout(self.embedding(ids)*self.d_model**.5,.1,self.training)"
    ),
    ("token_embedding", "dropout always", "rows scaled"): tokens(
        fwd="return nn.functional.dropout(self.embedding(ids)*self.d_model**.5,.01)"
    ),
    ("token_embedding", "detached", "padding_learns_nothing"): tokens(
        fwd="return self.embedding(ids).detach()*self.d_model**.5"
    ),
    ("token_embedding", "nograd", "padding_learns_nothing"): tokens(
        fwd="""
        with torch.no_grad(): return self.embedding(ids)*self.d_model**.5"""
    ),
    ("token_embedding", "scale seq", "scaled"): tokens(fwd="return self.embedding(ids)*ids.shape[1]**.5"),
    ("token_embedding", "scale 61", "scaled"): tokens(fwd="return self.embedding(ids)*61**.5"),
    ("token_embedding", "norm rows", "scaled"): tokens(
        fwd="return nn.functional.normalize(self.embedding(ids),dim=-1)*self.d_model**.5"
    ),
    ("token_embedding", "sqrt vocab", "scaled"): tokens(
        fwd="return self.embedding(ids)*len(self.embedding.weight)**.5"
    ),
    ("token_embedding", "batch0", "padding_is_zero padding_learns_nothing rows"): tokens(
        fwd="return self.embedding(ids[:1]).expand(len(ids),-1,-1)*self.d_model**.5"
    ),
    ("token_embedding", "swap seq", "padding_is_zero rows"): tokens(
        fwd="return self.embedding(ids.flip(1))*self.d_model**.5"
    ),
    ("token_embedding", "clamp", "padding_is_zero padding_learns_nothing rows"): tokens(
        fwd="return self.embedding(ids.clamp(min=1))*self.d_model**.5"
    ),
    ("token_embedding", "max_norm", "scaled"): tokens(
        init="""\
self.embedding=nn.Embedding(vocab_size,d_model,padding_idx=pad_id,max_norm=.5)
        """
        + DRAWN
    ),
    ("token_embedding", "plus position", "padding_is_zero rows scaled"): tokens(
        fwd="return self.embedding(ids)*self.d_model**.5+torch.arange(ids.shape[1])[:,None]*.01"
    ),
    ("token_embedding", "freeze", "padding_learns_nothing"): tokens(
        init=DRAWN
        + """
        self.embedding.weight.requires_grad_(False)"""
    ),
    ("image_to_patches", "always error", "grid_order indivisible inner_order patches"): patches(chk="raise ValueError"),
    ("image_to_patches", "h only", "indivisible"): patches(chk="if h%p: raise ValueError"),
    ("image_to_patches", "w only", "indivisible"): patches(chk="if w%p: raise ValueError"),
    ("image_to_patches", "prod", "indivisible"): patches(chk="if (h*w)%(p*p): raise ValueError"),
    ("image_to_patches", "and", "indivisible"): patches(chk="if h%p and w%p: raise ValueError"),
    ("image_to_patches", "assert", "indivisible"): patches(chk="assert h%p==0 and w%p==0"),
    ("image_to_patches", "runtime", "indivisible"): patches(chk="if h%p or w%p: raise RuntimeError"),
    ("image_to_patches", "sum", "indivisible"): patches(chk="if (h+w)%p: raise ValueError"),
    ("image_to_patches", "square", "grid_order inner_order patches"): patches(
        chk=DIVIDES
        + """
    if h!=w: h=w=min(h,w); images=images[...,:h,:w]"""
    ),
    ("image_to_patches", "p4", "grid_order inner_order patches"): patches(
        body="return images.reshape(b,c,h//4,4,w//4,p).permute(0,2,4,1,3,5).reshape(b,-1,c*p*p)"
    ),
    ("image_to_patches", "b2", "grid_order inner_order patches"): patches(
        body="return images.reshape(2,c,h//p,p,w//p,p).permute(0,2,4,1,3,5).reshape(2,-1,c*p*p)"
    ),
    ("image_to_patches", "c3", "grid_order indivisible inner_order patches"): patches(body="c=3;" + CUT),
    ("image_to_patches", "merge batch", "grid_order inner_order patches"): patches(
        body="return images.reshape(b,c,h//p,p,w//p,p).permute(0,2,4,1,3,5).reshape(1,-1,c*p*p).expand(b,-1,-1)"
    ),
    ("image_to_patches", "mean c", "grid_order inner_order patches"): patches(
        body="images=images.mean(1,keepdim=True).expand(b,c,h,w);" + CUT
    ),
    ("image_to_patches", "first image", "grid_order inner_order patches"): patches(
        body="images=images[:1].expand(b,-1,-1,-1);" + CUT
    ),
    ("image_to_patches", "normalised", "grid_order inner_order patches"): patches(body=CUT + "/255"),
    ("image_to_patches", "round", "grid_order inner_order patches"): patches(
        body="return (images.reshape(b,c,h//p,p,w//p,p).permute(0,2,4,1,3,5).reshape(b,-1,c*p*p)).round(decimals=2)"
    ),
    ("image_to_patches", "flip", "inner_order"): patches(body=CUT + ".flip(-1)"),
    ("image_to_patches", "flip1", "grid_order"): patches(body=CUT + ".flip(1)"),
    ("image_to_patches", "2 swapped", "inner_order"): patches(
        body="x=images.reshape(b,c,h//p,p,w//p,p).permute(0,2,4,1,3,5).reshape(b,-1,c*p*p); x[:,:,[0,1]]=x[:,:,[1,0]]; return x"
    ),
    ("image_to_patches", "last wrong", "grid_order inner_order patches"): patches(
        body="x=images.reshape(b,c,h//p,p,w//p,p).permute(0,2,4,1,3,5).reshape(b,-1,c*p*p); x[-1,-1,-1]+=.02; return x"
    ),
    ("image_to_patches", "inplace mult", "grid_order inner_order patches"): patches(body="images*=2;" + CUT),
    ("image_to_patches", "unsqueezed", "grid_order inner_order patches"): patches(body=CUT + "[None]"),
    ("image_to_patches", "int", "grid_order inner_order patches"): patches(body=CUT + ".int()"),
    ("patch_embedding", "any", "size_checked"): module(chk="pass"),
    ("patch_embedding", "div", "size_checked"): module(chk="if images.shape[-1]%self.patch_size: raise ValueError"),
    ("patch_embedding", "hchk", "size_checked"): module(chk="if images.shape[-2]!=self.image_size: raise ValueError"),
    ("patch_embedding", "wchk", "size_checked"): module(chk="if images.shape[-1]!=self.image_size: raise ValueError"),
    ("patch_embedding", "gt", "size_checked"): module(
        chk="if images.shape[-1]>self.image_size or images.shape[-2]>self.image_size: raise ValueError"
    ),
    ("patch_embedding", "numchk", "size_checked"): module(
        chk="if images.shape[-1]*images.shape[-2]!=self.image_size**2: raise ValueError"
    ),
    ("patch_embedding", "pair and", "size_checked"): module(
        chk="if images.shape[-1]!=self.image_size and images.shape[-2]!=self.image_size: raise ValueError"
    ),
    ("patch_embedding", "always", "gradients output projected size_checked"): module(chk="raise ValueError"),
    ("patch_embedding", "assertp", "size_checked"): module(chk="assert images.shape[-2:] == (self.image_size,)*2"),
    ("patch_embedding", "nobias", "convolution projected"): module(
        init="self.projection = nn.Linear(channels*patch_size**2, d_model, bias=False)"
    ),
    ("patch_embedding", "relu", "output projected"): module(
        fwd="return self.projection(image_to_patches(images, self.patch_size)).relu()"
    ),
    ("patch_embedding", "scaled", "output projected"): module(
        fwd="return self.projection(image_to_patches(images, self.patch_size))*self.projection.out_features**.5"
    ),
    ("patch_embedding", "evalonly", "gradients output projected"): module(
        fwd="x=self.projection(image_to_patches(images, self.patch_size)); return x if not self.training else x*0"
    ),
    ("patch_embedding", "trainonly", "output"): module(
        fwd="x=self.projection(image_to_patches(images, self.patch_size)); return x if self.training else x*0"
    ),
    ("patch_embedding", "b2p", "output"): module(
        fwd="x=self.projection(image_to_patches(images, self.patch_size)); return x[:2]"
    ),
    ("patch_embedding", "detachp", "gradients"): module(
        fwd="return self.projection(image_to_patches(images, self.patch_size)).detach()"
    ),
    ("patch_embedding", "detachw", "gradients"): module(
        fwd="return nn.functional.linear(image_to_patches(images, self.patch_size),self.projection.weight.detach(),self.projection.bias)"
    ),
    ("patch_embedding", "sumbias", "projected"): module(
        fwd="return self.projection(image_to_patches(images, self.patch_size))+self.projection.bias"
    ),
    ("patch_embedding", "countp", "output"): module(
        fwd="self.n+=1; return self.projection(image_to_patches(images, self.patch_size))*(1 if self.n<2 else 2)"
    ),
    ("patch_embedding", "per patch", "output projected"): module(
        init=LINEAR + "; self.other=nn.Linear(channels*patch_size**2,d_model)",
        fwd="x=image_to_patches(images, self.patch_size); return torch.cat([self.projection(x[:,:1]),self.other(x[:,1:])],1)",
    ),
    ("patch_embedding", "conv random", "convolution"): module(conv="return nn.Conv2d(w.shape[1]//p**2, len(w), p, p)"),
    ("patch_embedding", "conv lambda", "convolution"): module(
        conv="""\
conv = nn.Conv2d(w.shape[1]//p**2, len(w), p, p)
    conv.load_state_dict(dict(weight=w.detach().view(conv.weight.shape), bias=embedding.projection.bias.detach()))
    return lambda x: conv(x)"""
    ),
    ("patch_embedding", "conv nobias", "convolution"): module(
        conv="""\
conv = nn.Conv2d(w.shape[1]//p**2, len(w), p, p)
    conv.load_state_dict(dict(weight=w.detach().view(conv.weight.shape), bias=conv.bias*0))
    return conv"""
    ),
    ("patch_embedding", "conv pad", "convolution"): module(
        conv="""\
conv = nn.Conv2d(w.shape[1]//p**2, len(w), p, p, padding=1)
    conv.load_state_dict(dict(weight=w.detach().view(conv.weight.shape), bias=embedding.projection.bias.detach()))
    return conv"""
    ),
    ("patch_embedding", "conv flip", "convolution"): module(
        conv="""\
conv = nn.Conv2d(w.shape[1]//p**2, len(w), p, p)
    conv.load_state_dict(dict(weight=w.detach().view(conv.weight.shape).flip(-1,-2), bias=embedding.projection.bias.detach()))
    return conv"""
    ),
    ("patch_embedding", "conv c3", "convolution"): module(
        conv="""\
conv = nn.Conv2d(3, len(w), p, p)
    conv.load_state_dict(dict(weight=w.detach().view(conv.weight.shape), bias=embedding.projection.bias.detach()))
    return conv"""
    ),
    ("patch_embedding", "conv p4", "convolution"): module(
        conv="""\
p=4
    conv = nn.Conv2d(w.shape[1]//p**2, len(w), p, p)
    conv.load_state_dict(dict(weight=w.detach().view(conv.weight.shape), bias=embedding.projection.bias.detach()))
    return conv"""
    ),
    ("patch_embedding", "conv self", "convolution"): module(conv="return embedding"),
    ("patch_embedding", "conv none", "convolution"): module(
        conv="""\
conv = nn.Conv2d(w.shape[1]//p**2, len(w), p, p)
    conv.load_state_dict(dict(weight=w.detach().view(conv.weight.shape), bias=embedding.projection.bias.detach()))
    pass"""
    ),
    ("shapes", "shapes notes", "function_parameters function_shapes"): shapes("(196,256),(196,512),131584"),
    ("shapes", "shapes no c", "function_parameters function_shapes"): shapes(
        "(h*w//p**2, p*p), (h*w//p**2, d), d*(p*p+1)"
    ),
    ("shapes", "shapes h2", "function_shapes"): shapes("(h*h//p**2, c*p*p), (h*h//p**2, d), d*(c*p*p+1)"),
    ("shapes", "shapes p2", "function_shapes"): shapes("(h*w//p//2, c*p*p), (h*w//p**2, d), d*(c*p*p+1)"),
    ("shapes", "shapes +1", "function_shapes"): shapes("(h*w//p**2+1, c*p*p), (h*w//p**2+1, d), d*(c*p*p+1)"),
    ("shapes", "shapes two", "function_parameters"): shapes("(h*w//p**2, c*p*p), (h*w//p**2, d)"),
    ("shapes", "shapes flat", "function_parameters function_shapes"): shapes(
        "h*w//p**2, c*p*p, h*w//p**2, d, d*(c*p*p+1)"
    ),
    ("shapes", "shapes d512", "function_shapes"): shapes("(h*w//p**2, c*p*p), (h*w//p**2, 512), d*(c*p*p+1)"),
    ("shapes", "shapes swapped", "function_shapes"): shapes("(c*p*p,h*w//p**2), (d,h*w//p**2), d*(c*p*p+1)"),
    ("shapes", "shapes batch", "function_shapes"): shapes("(1,h*w//p**2, c*p*p), (1,h*w//p**2, d), d*(c*p*p+1)"),
    ("shapes", "shapes gen", "function_parameters function_shapes"): shapes(
        "(x for x in ((h*w//p**2, c*p*p), (h*w//p**2, d), d*(c*p*p+1)))"
    ),
    ("shapes", "pred swapped", "prediction"): """\
shape_of_patches, shape_of_vectors, num_parameters = (256, 196), (512, 196), 131584
def patch_shapes(h, w, c, p, d): return (h*w//p**2, c*p*p), (h*w//p**2, d), d*(c*p*p+1)""",
    ("shapes", "pred str", "parameters prediction"): """\
shape_of_patches, shape_of_vectors, num_parameters = '(196, 256)', (196, 512), '131584'
def patch_shapes(h, w, c, p, d): return (h*w//p**2, c*p*p), (h*w//p**2, d), d*(c*p*p+1)""",
}


def verdict(exercise: str, style: str, source: str):
    """The verdict on the text of a cell, whose lines can be read as those of a notebook."""
    file = f"<{exercise}: {style}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    namespace = {"__name__": "__main__", "math": math, "np": np, "torch": torch, "nn": nn, "Tensor": torch.Tensor}
    namespace["image_to_patches"] = image_to_patches
    try:
        exec(compile(source, file, "exec"), namespace)
        return verdict_on(f"embedding.{exercise}", namespace, seed=3)
    finally:
        torch.set_default_dtype(torch.float32)  # one of the answers changes it, as a learner may
        torch.set_grad_enabled(True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("exercise, style", RIGHT)
def test_right_answer_gets_full_marks(exercise, style):
    outcome = verdict(exercise, style, RIGHT[exercise, style])
    assert outcome.points == outcome.maximum, outcome


@pytest.mark.parametrize("exercise, mistake, lost", WRONG)
def test_wrong_answer_loses_what_is_wrong_and_no_more(exercise, mistake, lost):
    outcome = verdict(exercise, mistake, WRONG[exercise, mistake, lost])
    assert {result.claim for result in outcome.results if not result.holds} == set(lost.split()), outcome


@pytest.mark.parametrize(
    "exercise, source",
    [
        ("one_hot_lookup", ONE_HOT),
        ("token_embedding", tokens()),
        ("image_to_patches", patches()),
        ("patch_embedding", module()),
    ],
)
def test_what_the_wrong_answers_change_is_right(exercise, source):
    outcome = verdict(exercise, "unchanged", source)
    assert outcome.points == outcome.maximum, outcome
