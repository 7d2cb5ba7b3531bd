"""The learner's own encoder: right pieces go through whole, a wrong one is named at its stage, and nothing stops it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbgrader.utils import is_solution

import course
from encoder_grader.accuracy.answers import add_norm, attention, stacking
from encoder_grader.sample_class import Edits, edited, fill_in, grade_id, without_marks
from encoder_grader.together import together
from encoder_grader.together.learner import Learner, walk_together
from encoder_grader.together.walk import PIECES, WALKS, chapter_of, place_of, reference
from encoder_lib import CHAPTERS

ROOT = Path(__file__).parents[2]


def file(folder: Path, chapter: str) -> Path:
    return folder / f"{CHAPTERS.index(chapter) + 1}_{chapter}" / f"{chapter}.ipynb"


@pytest.fixture(scope="module")
def notebooks():
    """For each chapter the released notebook and the solutions of its cells."""
    found = {}
    for chapter in CHAPTERS:
        source = nbformat.read(file(ROOT / "solutions", chapter), as_version=4)
        answers = {grade_id(cell): without_marks(cell.source) for cell in source.cells if is_solution(cell)}
        found[chapter] = nbformat.read(file(ROOT / "exercises", chapter), as_version=4), answers
    return found


@pytest.fixture
def work(notebooks, tmp_path):
    """Writes a learner's folder: all solutions, but with mistakes, other answers, cells of one's own, or stubs."""

    def write(mistakes: dict[str, Edits] | None = None, answers=None, own_cells=None, stubs=()) -> Path:
        for chapter, (released, solutions) in notebooks.items():
            cells = edited(solutions, (mistakes or {}).get(chapter, {})) | (answers or {}).get(chapter, {})
            stubs_here = [name.partition(".")[2] for name in stubs if name.startswith(f"{chapter}.")]
            notebook = fill_in(released, {name: text for name, text in cells.items() if name not in stubs_here})
            for source in (own_cells or {}).get(chapter, ()):
                notebook.cells.append(nbformat.v4.new_code_cell(source))
            file(tmp_path, chapter).parent.mkdir(exist_ok=True)
            nbformat.write(notebook, file(tmp_path, chapter))
        return tmp_path

    return write


def said(folder: Path) -> str:
    """The report in one line of single spaces, whatever way it is wrapped."""
    return " ".join(together(folder).split())


def steps(folder: Path) -> list:
    learner = Learner(folder)
    for chapter in CHAPTERS:
        learner.take(chapter)
    return [step for name in WALKS for step in walk_together(learner, name)]


ALL_THE_SAME = (
    "Every stage is the same: from ids and from pixels to the end, this encoder is your own. "
    "Fresh weights, dropout and gradients do not show in a single pass: for them there are the checks."
)

# ---- right answers


def test_with_all_solutions_every_stage_is_yours_and_the_same(work):
    folder = work()
    assert said(folder).endswith(ALL_THE_SAME)
    walked = [step for step in steps(folder) if step.stage.piece]
    assert {(step.whose, step.fed, step.reason) for step in walked} == {("yours", False, None)}
    assert {step.stage.piece for step in walked} == set(PIECES)


def test_the_pieces_of_earlier_notebooks_are_inside_the_encoder_of_the_last(work):
    learner = Learner(work())
    for chapter in CHAPTERS:
        learner.take(chapter)
    names = learner.namespaces
    inside = list(names["stacking"]["TokenEncoder"](11, 8, 2, 12, 2).modules())
    inside += names["stacking"]["PatchEncoder"](32, 16, 1, 8, 2, 12, 2).modules()
    for piece in PIECES:
        if isinstance(reference(piece), type) and chapter_of(piece) != "stacking":
            own = names[chapter_of(piece)][piece]
            assert any(isinstance(module, own) for module in inside), f"{piece} is not the learner's"
            assert not any(type(module) is reference(piece) for module in inside)


def test_masks_of_earlier_notebooks_are_inside_too(work):
    folder = work({"attention": {"masks": [("words = ids.ne(pad_id)", "words = ids.eq(pad_id)")]}})
    whole = next(step for step in steps(folder) if step.stage.piece == "TokenEncoder")
    assert whole.by_parts


FUSED = attention.RIGHT["multi_head_attention"]["one fused matrix, by load_reference"]
ATTENTION_IN_FLOAT64 = attention.RIGHT["multi_head_attention"]["float64"]
LAYER_NORM_IN_FLOAT64 = add_norm.RIGHT["layer_norm_module"]["float64"]
LAYER_IN_FLOAT64 = stacking.RIGHT["encoder_layer"]["float64, with prints"]
LAYER_THAT_KNOWS_THE_REFERENCES_NAMES = stacking.RIGHT["encoder_layer"]["residuals by hand, through load_reference"]
MASKS_IN_NUMPY = """
def padding_mask(ids, pad_id): return (ids.numpy() != pad_id)[:, None, None, :]
"""
EMBEDDING_IN_FLOAT64 = """
class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, pad_id=None):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id, dtype=torch.float64)
    def forward(self, ids): return self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)
"""
POSITIONS_IN_FLOAT64 = """
class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000, dropout=0.1):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pe", sinusoidal_table(max_len, d_model).double()[None])
    def forward(self, x): return self.dropout(x + self.pe[:, :x.size(1)])
"""
POSITIONS_AS_EMBEDDING = """
class LearnedPositionalEncoding(nn.Module):
    def __init__(self, max_len, d_model, dropout=0.1):
        super().__init__()
        self.positions, self.dropout = nn.Embedding(max_len, d_model), nn.Dropout(dropout)
    def forward(self, x): return self.dropout(x + self.positions(torch.arange(x.shape[1])))
"""
TORCHS_NORM = """
class AddNorm(nn.Module):
    def __init__(self, d_model, dropout=0.1, norm_first=False):
        super().__init__()
        self.ln, self.p, self.pre = nn.LayerNorm(d_model), dropout, norm_first
    def add(self, x, y): return F.dropout(y, self.p, self.training) + x
    def forward(self, x, sublayer):
        return self.add(x, sublayer(self.ln(x))) if self.pre else self.ln(self.add(x, sublayer(x)))
""".replace("F.dropout", "nn.functional.dropout")
NORM_WITH_A_WRAPPER = """
class AddNorm(LayerNorm):
    def __init__(self, d_model, dropout=0.1, norm_first=False):
        super().__init__(d_model)
        self.drop, self.pre = nn.Dropout(dropout), norm_first
    def forward(self, x, sublayer):
        norm = super().forward
        return x + self.drop(sublayer(norm(x))) if self.pre else norm(x + self.drop(sublayer(x)))
"""
LAYER_BY_HAND = """
class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.h, self.pre, self.drop = num_heads, norm_first, nn.Dropout(dropout)
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.n1, self.n2 = LayerNorm(d_model), LayerNorm(d_model)
    def load_reference(self, w):
        with torch.no_grad():
            for kind in ("weight", "bias"):
                getattr(self.qkv, kind).copy_(torch.cat([w[f"attention.w_{c}.{kind}"] for c in "qkv"]))
                getattr(self.out, kind).copy_(w["attention.w_o." + kind])
                getattr(self.up, kind).copy_(w["feed_forward.linear_1." + kind])
                getattr(self.down, kind).copy_(w["feed_forward.linear_2." + kind])
            for kind in ("gamma", "beta"):
                getattr(self.n1, kind).copy_(w["add_norm_1.norm." + kind])
                getattr(self.n2, kind).copy_(w["add_norm_2.norm." + kind])
    def attend(self, x, mask):
        q, k, v = (t.unflatten(-1, (self.h, -1)) for t in self.qkv(x).chunk(3, -1))
        s = torch.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
        if mask is not None: s = s.masked_fill(mask.logical_not(), -1e9)
        c = torch.einsum("bhqk,bkhd->bqhd", self.drop(s.softmax(-1)), v)
        return self.out(c.flatten(2))
    def feed(self, x): return self.down(self.drop(self.up(x).clamp(min=0)))
    def forward(self, x, mask=None):
        for norm, part in ((self.n1, lambda x: self.attend(x, mask)), (self.n2, self.feed)):
            x = x + self.drop(part(norm(x))) if self.pre else norm(x + self.drop(part(x)))
        return x
"""
ZEROS_AT_THE_PADDING = """
class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.attention, self.feed_forward = MultiHeadAttention(d_model, num_heads, dropout), FeedForward(d_model, d_ff)
        self.add_norm_1, self.add_norm_2 = (AddNorm(d_model, dropout, norm_first) for _ in range(2))
    def forward(self, x, mask=None):
        x = self.add_norm_2(self.add_norm_1(x, lambda x: self.attention(x, mask=mask)), self.feed_forward)
        return x if mask is None else x * mask[:, 0, 0, :, None]
"""
A_LIST_THAT_IS_REGISTERED = """
class Encoder(nn.Module):
    def __init__(self, num_layers, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.layers = [EncoderLayer(d_model, num_heads, d_ff, dropout, norm_first) for _ in range(num_layers)]
        for i, layer in enumerate(self.layers): self.add_module(f"layer_{i}", layer)
        self.final = nn.LayerNorm(d_model) if norm_first else None
    def forward(self, x, mask=None):
        for layer in self.layers: x = layer(x, mask)
        return x if self.final is None else self.final(x)
"""
TOKENS_IN_FLOAT64 = """
class TokenEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
        super().__init__()
        self.embedding, self.pad_id = TokenEmbedding(vocab_size, d_model, pad_id), pad_id
        self.positions = SinusoidalPositionalEncoding(d_model, dropout=dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout)
        self.double()
    def embed(self, ids): return self.positions(self.embedding(ids))
    def forward(self, ids): return self.encoder(self.embed(ids), padding_mask(ids, self.pad_id))
"""
AN_ENCODER_WITH_SOMETHING_IN_FRONT = """
class TokenEncoder(Encoder):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
        super().__init__(num_layers, d_model, num_heads, d_ff, dropout)
        self.embedding, self.pad_id = TokenEmbedding(vocab_size, d_model, pad_id), pad_id
        self.positions = SinusoidalPositionalEncoding(d_model, dropout=dropout)
    def embed(self, ids): return self.positions(self.embedding(ids))
    def encoder(self, x, mask=None): return super().forward(x, mask)
    def forward(self, ids): return self.encoder(self.embed(ids), padding_mask(ids, self.pad_id))
"""
MORE_THAN_THE_EXERCISES_ASK_FOR = """
class TokenEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers, dropout=0.1, pad_id=0):
        super().__init__()
        self.embedding, self.pad_id = TokenEmbedding(vocab_size, d_model, pad_id), pad_id
        self.positions = SinusoidalPositionalEncoding(d_model, dropout=dropout)
        self.encoder = Encoder(num_layers, d_model, num_heads, d_ff, dropout)
    def embed(self, ids):
        x = self.embedding(ids)
        assert x.shape[-1] == self.embedding.d_model
        return self.positions.dropout(x + self.positions.table[:ids.shape[1]])
    def forward(self, ids): return self.encoder(self.embed(ids), padding_mask(ids, self.pad_id))
"""
LAYER_THAT_TAKES_ADD_AND_NORM_APART = """
class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1, norm_first=False):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads, dropout)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.add_norm_1, self.add_norm_2 = (AddNorm(d_model, dropout, norm_first) for _ in range(2))
    def forward(self, x, mask=None):
        attend = lambda x: self.attention(x, mask=mask)
        for wrap, part in ((self.add_norm_1, attend), (self.add_norm_2, self.feed_forward)):
            made = wrap.dropout(part(wrap.norm(x) if wrap.norm_first else x))
            x = x + made if wrap.norm_first else wrap.norm(x + made)
        return x
"""

STYLES = {
    "one fused matrix": {"attention": {"multi_head_attention": FUSED}},
    "one fused matrix, and a layer by hand": {
        "attention": {"multi_head_attention": FUSED},
        "stacking": {"encoder_layer": LAYER_BY_HAND},
    },
    "one fused matrix, in a layer that knows the reference's names": {
        "attention": {"multi_head_attention": FUSED},
        "stacking": {"encoder_layer": LAYER_THAT_KNOWS_THE_REFERENCES_NAMES},
    },
    "every piece in float64": {
        "embedding": {"token_embedding": EMBEDDING_IN_FLOAT64},
        "positional_encoding": {"sinusoidal_encoding": POSITIONS_IN_FLOAT64},
        "attention": {"multi_head_attention": ATTENTION_IN_FLOAT64},
        "add_norm": {"layer_norm_module": LAYER_NORM_IN_FLOAT64, "add_norm": NORM_WITH_A_WRAPPER},
    },
    "float64 around float32": {"stacking": {"encoder_layer": LAYER_IN_FLOAT64}},
    "float64 around everything": {"stacking": {"token_encoder": TOKENS_IN_FLOAT64}},
    "float64 around everything, a layer by hand": {
        "stacking": {"encoder_layer": LAYER_BY_HAND, "token_encoder": TOKENS_IN_FLOAT64}
    },
    "float64 inside a layer by hand": {
        "add_norm": {"layer_norm_module": LAYER_NORM_IN_FLOAT64},
        "stacking": {"encoder_layer": LAYER_BY_HAND},
    },
    "masks in NumPy": {"attention": {"masks": MASKS_IN_NUMPY}},
    "masks in NumPy, a layer by hand": {
        "attention": {"masks": MASKS_IN_NUMPY},
        "stacking": {"encoder_layer": LAYER_BY_HAND},
    },
    "a layer that takes Add & Norm apart": {"stacking": {"encoder_layer": LAYER_THAT_TAKES_ADD_AND_NORM_APART}},
    "a table that is an embedding": {"positional_encoding": {"learned_encoding": POSITIONS_AS_EMBEDDING}},
    "torch's norm under another name": {"add_norm": {"add_norm": TORCHS_NORM}},
    "a layer norm with a wrapper": {"add_norm": {"add_norm": NORM_WITH_A_WRAPPER}},
    "zeros at the padding": {"stacking": {"encoder_layer": ZEROS_AT_THE_PADDING}},
    "layers in a list, the last norm unnamed": {"stacking": {"encoder": A_LIST_THAT_IS_REGISTERED}},
    "an Encoder with something in front": {"stacking": {"token_encoder": AN_ENCODER_WITH_SOMETHING_IN_FRONT}},
    "what only the reference has": {"stacking": {"token_encoder": MORE_THAN_THE_EXERCISES_ASK_FOR}},
}


@pytest.mark.parametrize("style", STYLES)
def test_right_pieces_of_any_style_go_together(work, style):
    assert said(work(answers=STYLES[style])).endswith(ALL_THE_SAME)


def test_cells_of_ones_own_run_in_their_place(work):
    cells = {
        "attention": ["%matplotlib inline\n!ls\nshown = display(softmax(torch.zeros(3)))", "check('attention.heads')"],
        "stacking": ["from encoder_lib.attention import MultiHeadAttention as Attention\nAttention.is_here = True"],
    }
    assert said(work(own_cells=cells)).endswith(ALL_THE_SAME)


# ---- wrong answers: piece → the edit, and the stages at which it may part first

MISTAKES = {
    "TokenEmbedding": ("token_embedding", "self.factor * rows", "rows", "token embedding (the two sentences)"),
    "image_to_patches": (
        "image_to_patches",
        "squares.flatten(3)",
        "squares.transpose(1, 2).flatten(3)",
        "patches (the cat)",
    ),
    "PatchEmbedding": (
        "patch_embedding",
        "return self.projection(image",
        "return 2 * self.projection(image",
        "patch embedding (the cat)",
    ),
    "SinusoidalPositionalEncoding": (
        "sinusoidal_encoding",
        "x + self.rows[:length]",
        "x + self.rows[1 : length + 1]",
        "+ positional encoding (the two sentences)",
    ),
    "LearnedPositionalEncoding": (
        "learned_encoding",
        "summed = x + self.table[:length]",
        "summed = x + self.table[:length].flip(0)",
        "class token, + positions (the cat)",
    ),
    "padding_mask": ("masks", "ids.ne(pad_id)", "ids.eq(pad_id)", "padding mask (the two sentences)"),
    "MultiHeadAttention": (
        "scaled_dot_product_attention",
        " / math.sqrt(d_k)",
        "",
        "attention of layer 1 (the two sentences)",
    ),
    "LayerNorm": (
        "layer_norm_module",
        "layer_norm(x, self.gamma,",
        "layer_norm(x, 1,",
        "add & norm 1 of layer 1 (the two sentences)",
    ),
    "AddNorm": (
        "add_norm",
        "total = x + self.drop(update)",
        "total = self.drop(update)",
        "add & norm 1 of layer 1 (the two sentences)",
    ),
    "FeedForward": (
        "module",
        "bent = self.function(self.linear_1(x))",
        "bent = self.linear_1(x)",
        "feed-forward of layer 1 (the two sentences)",
    ),
    "EncoderLayer": ("encoder_layer", "stream, mask=mask", "stream", "layer 1 in one piece (the two sentences)"),
    "Encoder": ("encoder", "x = layer(x, mask=mask)", "x = layer(x)", "all layers (the two sentences)"),
    "TokenEncoder": (
        "token_encoder",
        "return self.positions(words)",
        "return words",
        "the whole encoder (the two sentences)",
    ),
    "PatchEncoder": ("patch_encoder", "[in_front, patches]", "[patches, in_front]", "the whole encoder (the cat)"),
    "masked_mean": (
        "masked_mean",
        "number = counts.sum(dim=1)",
        "number = counts.sum(dim=1) + 1",
        "masked mean (the two sentences)",
    ),
}


def mistake(piece: str) -> dict[str, Edits]:
    cell, old, new, _ = MISTAKES[piece]
    return {chapter_of(piece): {cell: [(old, new)]}}


def test_there_is_a_mistake_for_every_piece():
    assert set(MISTAKES) == set(PIECES)


AT_FAULT = {"MultiHeadAttention": "attention.scaled_dot_product_attention"}  # what the piece's own exercise calls


@pytest.mark.parametrize("piece", MISTAKES)
def test_a_mistake_is_named_at_its_stage_and_no_other(work, piece):
    text = said(work(mistake(piece)))
    exercise = AT_FAULT.get(piece, PIECES[piece])
    assert f"They first part at {MISTAKES[piece][3]}: " in text
    assert f"See {place_of(exercise)}" in text
    assert f'check("{exercise}")' in text
    assert text.count("See exercise") == 1


@pytest.mark.parametrize(
    "first, second",
    [
        ("TokenEmbedding", "FeedForward"),
        ("padding_mask", "Encoder"),
        ("AddNorm", "masked_mean"),
        ("Encoder", "PatchEncoder"),
    ],
)
def test_of_two_mistakes_both_are_found(work, first, second):
    edits = mistake(first)
    for chapter, cells in mistake(second).items():
        edits[chapter] = edits.get(chapter, {}) | cells
    text = said(work(edits))
    assert f"They first part at {MISTAKES[first][3]}: " in text
    assert f"{MISTAKES[second][3]} " in text
    assert text.count("See exercise") == 2
    assert f'check("{PIECES[second]}")' in text


def test_what_is_fed_with_the_references_input_says_so(work):
    text = said(work(mistake("TokenEmbedding") | mistake("FeedForward")))
    assert "Fed with the reference's own input, feed-forward of layer 1 (the two sentences) differs too" in text
    assert "* fed with the reference's own input, so that one mistake does not hide the next" in text
    assert "+ positional encoding (2, 7, 16) yours the same *" in text
    assert "feed-forward of layer 1 (2, 7, 16) yours differs *" in text


def test_a_wrong_part_is_not_held_against_what_is_built_of_it(work):
    found = {step.stage.title: step for step in steps(work(mistake("MultiHeadAttention")))}
    for title in ("layer 1 in one piece", "all layers, final norm", "the whole encoder"):
        assert found[title].by_parts and found[title].reason is not None
    assert found["layer 1 in one piece"].fed and not found["attention of layer 1"].by_parts


def test_pieces_that_are_right_and_do_not_fit_together_are_told(work):
    edits = {
        "stacking": {
            "encoder_layer": [
                ("MultiHeadAttention(d_model, num_heads,", "MultiHeadAttention(d_model, num_heads, bias=True,")
            ]
        }
    }
    text = said(work(edits))
    assert "unexpected keyword argument 'bias'" in text
    assert "With the reference's parts inside it is the same: your pieces do not fit together here" in text


def test_small_differences_that_add_up_are_told_from_a_mistake(work):
    """Each piece is off by less than the tolerance; behind a steep one the sum of them is not."""
    edits = {
        "embedding": {"token_embedding": [("self.factor * rows", "self.factor * rows + 9e-5")]},
        "positional_encoding": {"sinusoidal_encoding": [("self.drop(x +", "self.drop(x + 2e-4 +")]},
    }
    text = said(work(edits))
    assert "They first part at attention of layer 1 (the two sentences): " in text
    assert "Fed with the reference's own input it is the same: small differences before it have added up" in text


def test_an_error_is_said_with_its_line(work):
    text = said(work({"add_norm": {"add_norm": [("self.drop(update)", "self.dorp(update)")]}}))
    assert "'AddNorm' object has no attribute 'dorp'" in text
    assert "`total = x + self.dorp(update)`" in text
    assert "exercise 4 of notebook 4" in text


# ---- what is missing, unfinished or broken


def test_with_nothing_written_it_says_where_to_begin():
    text = said(ROOT / "exercises")
    assert text.startswith("No piece of the encoder is written yet")
    assert "Begin with TokenEmbedding, exercise 2 of notebook 1" in text
    assert "raised" not in text


def test_the_reference_stands_in_for_what_is_not_written(work):
    stubs = ("attention.multi_head_attention", "stacking.encoder")
    text = said(work(stubs=stubs))
    assert "What is yours is the same everywhere: 13 of the 15 pieces of the encoder." in text
    named = "MultiHeadAttention, exercise 5 of notebook 3; Encoder, exercise 2 of notebook 6."
    assert f"Not written yet, so that the reference stands in: {named}" in text
    assert "attention of layer 1 (2, 7, 16) the reference's –" in text


def test_what_calls_a_stub_names_it(work):
    text = said(work(stubs=("attention.softmax", "embedding.image_to_patches", "add_norm.layer_norm_module")))
    assert "MultiHeadAttention, which calls softmax, exercise 1 of notebook 3" in text
    assert "image_to_patches, exercise 3 of notebook 1" in text and "LayerNorm, exercise 2 of notebook 4" in text
    assert "What is yours is the same everywhere: 12 of the 15 pieces of the encoder." in text


def test_beside_stubs_a_mistake_is_still_found(work):
    text = said(work(mistake("FeedForward"), stubs=("attention.multi_head_attention", "stacking.encoder_layer")))
    assert "They first part at feed-forward of layer 1 (the two sentences): " in text
    assert text.count("See exercise") == 1


def test_a_piece_that_is_half_written_is_used_as_far_as_it_goes(work):
    half = "total = x + self.drop(update)\n        if self.norm_first:\n            raise NotImplementedError()"
    text = said(work({"add_norm": {"add_norm": [("total = x + self.drop(update)", half)]}}))
    assert "They first part at add & norm 1 of layer 1 (the cat): AddNorm(16, norm_first=True)" in text
    assert "write your answer in its place" in text


def test_a_missing_notebook_is_named(work):
    folder = work()
    shutil.rmtree(file(folder, "attention").parent)
    text = said(folder)
    assert text.startswith("Notebook 3 is missing: there is no ")
    assert "The reference stands in for its pieces." in text
    assert "What is yours is the same everywhere: 13 of the 15 pieces of the encoder." in text


@pytest.mark.parametrize("content", ["{", "[1, 2]", '{"cells": [3]}', "", '{"nbformat": 4}', b"\xff\xfe\x00"])
def test_a_file_that_is_no_notebook_is_named(work, content):
    folder = work()
    file(folder, "feed_forward").write_bytes(content if isinstance(content, bytes) else content.encode())
    text = said(folder)
    assert text.startswith("Notebook 5 cannot be read: ")
    assert "What is yours is the same everywhere: 14 of the 15 pieces of the encoder." in text


def test_a_broken_cell_is_said_in_a_sentence_and_the_rest_goes_on(work):
    text = said(work({"feed_forward": {"module": [("super().__init__()", "super().__init__(")]}}))
    assert "Exercise 3 of notebook 5 raised SyntaxError: '(' was never closed (exercise 3 of notebook 5, line " in text
    assert "Not there, so that the reference stands in: FeedForward, exercise 3 of notebook 5." in text
    assert "What is yours is the same everywhere: 14 of the 15 pieces of the encoder." in text


@pytest.mark.parametrize(
    "source, sentence",
    [
        ("import torch\nnothing_here", "raised NameError: name 'nothing_here' is not defined, line 2: `nothing_here`."),
        ("raise SystemExit('done')", "raised SystemExit: done, line 1: `raise SystemExit('done')`."),
        ("class E(BaseException): pass\nraise E", "raised E, line 2: `raise E`."),
        ("def f(:", "raised SyntaxError: invalid syntax (cell "),
    ],
)
def test_an_error_in_a_cell_of_ones_own_is_said_and_costs_nothing(work, source, sentence):
    text = said(work(own_cells={"embedding": [source, "torch.set_default_dtype(torch.float64)"]}))
    assert sentence in text
    assert "of notebook 1" in text.partition("raised")[0]
    assert text.endswith(ALL_THE_SAME)


def test_demonstrations_and_tests_of_the_notebook_are_not_run(work):
    folder = work()
    for chapter in CHAPTERS:
        path = file(folder, chapter)
        notebook = json.loads(path.read_text())
        for cell in notebook["cells"]:
            nbgrader = cell["metadata"]["nbgrader"]
            if cell["cell_type"] == "code" and nbgrader["locked"]:
                cell["source"] += "\nprint(1 / 0)"
        path.write_text(json.dumps(notebook))
    text = said(folder)
    assert text.endswith(ALL_THE_SAME)
    assert "raised" not in text


def test_no_line_is_wider_than_a_terminal(work):
    text = together(work(mistake("TokenEmbedding") | mistake("AddNorm"), own_cells={"embedding": ["1 / 0"]}))
    assert max(map(len, text.splitlines())) <= 80


def test_the_command_prints_the_report(work):
    command = [sys.executable, "-m", "encoder_grader.together", str(work())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Running notebook 1 … 2 … 3 … 4 … 5 … 6 … together\n")
    assert " ".join(done.stdout.split()).endswith(ALL_THE_SAME)
    assert done.stderr == ""


def test_make_together_takes_the_folder_work(work, monkeypatch, capsys):
    folder = work()
    folder.rename(folder.parent / "work")
    monkeypatch.setattr(course, "ROOT", folder.parent)
    monkeypatch.setenv("MPLBACKEND", "Agg")  # and back, as main sets it
    monkeypatch.chdir(ROOT)  # and back to where the tests were
    course.main("together")
    assert " ".join(capsys.readouterr().out.split()).endswith(ALL_THE_SAME)


def test_without_a_folder_it_says_how_to_get_one(tmp_path):
    command = [sys.executable, "-m", "encoder_grader.together", str(tmp_path / "work")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and "make lab fills work/ with the notebooks" in done.stderr
