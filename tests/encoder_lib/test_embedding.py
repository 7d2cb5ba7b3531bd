"""Chapter 1: words and pixels become vectors."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from encoder_lib.embedding import (
    PatchEmbedding,
    TokenEmbedding,
    Vocabulary,
    image_to_patches,
    patches_to_image,
    tokenize,
)
from tests.encoder_lib.parity import assert_parity

BATCH, SEQ, VOCAB_SIZE, D_MODEL = 2, 5, 13, 7


# tokens


def test_text_splits_into_lower_case_words_and_marks():
    assert tokenize("The cat, it was TIRED!") == ["the", "cat", ",", "it", "was", "tired", "!"]
    assert tokenize("猫 睡了") == ["猫", "睡了"]
    assert tokenize("  ") == []


def test_words_are_numbered_by_first_appearance_after_padding_and_unknown():
    vocabulary = Vocabulary(["b a", "a c"])
    assert vocabulary.words == ["<pad>", "<unk>", "b", "a", "c"]
    assert (vocabulary.pad_id, vocabulary.unk_id, len(vocabulary)) == (0, 1, 5)


def test_shorter_sentences_are_padded_on_the_right_and_unknown_words_marked():
    ids = Vocabulary(["b a", "a c"]).encode(["c", "a zebra b"])
    assert ids.tolist() == [[4, 0, 0], [3, 1, 2]]
    assert ids.dtype == torch.int64


@settings(deadline=None, max_examples=30)
@given(st.lists(st.lists(st.sampled_from("abcde"), min_size=1).map(" ".join), min_size=1, max_size=5))
def test_decoding_undoes_encoding(sentences):
    vocabulary = Vocabulary(sentences)
    assert vocabulary.decode(vocabulary.encode(sentences)) == sentences


def test_a_single_text_or_no_word_is_refused(unchecked):
    with pytest.raises(ValueError, match="'the cat' is a single text; pass a list"):
        Vocabulary("the cat")
    vocabulary = Vocabulary(["the cat"])
    with pytest.raises(ValueError, match="'the' is a single text"):
        vocabulary.encode("the")
    with pytest.raises(ValueError, match="hold no word"):
        vocabulary.encode(["", " "])
    with pytest.raises(ValueError, match="ids from 2 to 4 leave the vocabulary of 0 to 3"):
        vocabulary.decode(torch.tensor([[2, 4]]))


# token embedding


def test_embedding_is_a_row_times_the_root_of_the_width():
    embedding = TokenEmbedding(3, 4)
    embedding.embedding.weight.data = torch.tensor([[0.0, 0, 0, 0], [1, 2, 3, 4], [5, 6, 7, 8]])
    assert embedding(torch.tensor([[2, 1, 2]])).tolist() == [[[10, 12, 14, 16], [2, 4, 6, 8], [10, 12, 14, 16]]]


def test_embedding_equals_torch_and_the_one_hot_product_with_gradients(dtype):
    ids = torch.randint(0, VOCAB_SIZE, (BATCH, SEQ))
    ids[1, 3:] = 0
    embedding = TokenEmbedding(VOCAB_SIZE, D_MODEL, pad_id=0)
    theirs = nn.Embedding(VOCAB_SIZE, D_MODEL, padding_idx=0)
    theirs.weight.data = embedding.embedding.weight.data.clone()
    coefficients = torch.randn(BATCH, SEQ, D_MODEL)
    ours, expected = embedding(ids), theirs(ids) * math.sqrt(D_MODEL)
    assert_parity(ours, expected)
    assert_parity(ours, F.one_hot(ids, VOCAB_SIZE).to(dtype) @ embedding.embedding.weight * D_MODEL**0.5)
    (ours * coefficients).sum().backward()
    (expected * coefficients).sum().backward()
    assert_parity(embedding.embedding.weight.grad, theirs.weight.grad, "gradients")


def test_padding_is_zero_and_learns_nothing():
    embedding = TokenEmbedding(VOCAB_SIZE, D_MODEL, pad_id=4)
    ids = torch.tensor([[4, 1, 4]])
    assert embedding(ids)[0, [0, 2]].count_nonzero() == 0
    embedding(ids).sum().backward()
    assert embedding.embedding.weight.grad[4].count_nonzero() == 0
    assert embedding.embedding.weight.grad[1].count_nonzero() == D_MODEL


def test_without_padding_every_row_is_drawn():
    assert TokenEmbedding(VOCAB_SIZE, D_MODEL).embedding.weight.count_nonzero() == VOCAB_SIZE * D_MODEL


def test_weights_start_with_variance_one_over_the_width_and_outputs_with_one():
    embedding = TokenEmbedding(1009, 64)
    assert embedding.embedding.weight.std().item() == pytest.approx(1 / 8, rel=0.02)
    assert embedding(torch.arange(1009)[None]).std().item() == pytest.approx(1.0, rel=0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 7), "vocab_size=0 must be a whole number of at least 1"),
        ((13, -7), "d_model=-7 must be"),
        ((13, 2.5), "d_model=2.5 must be"),
        ((13, 7, 13), "pad_id=13 is outside the vocabulary of vocab_size=13"),
        ((13, 7, -1), "pad_id=-1 is outside"),
    ],
)
def test_bad_sizes_of_an_embedding_are_named(unchecked, arguments, message):
    with pytest.raises(ValueError, match=message):
        TokenEmbedding(*arguments)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([[0, 13]], "ids from 0 to 13 leave the vocabulary of 0 to 12"),
        ([[-1, 2]], "ids from -1 to 2 leave"),
        ([[0.5]], "ids must be whole numbers, got dtype torch.float32"),
        ([[True]], "ids must be whole numbers, got dtype torch.bool"),
    ],
)
def test_ids_outside_the_vocabulary_are_named(unchecked, ids, message):
    with pytest.raises(ValueError, match=message):
        TokenEmbedding(VOCAB_SIZE, D_MODEL)(torch.tensor(ids))


# patches


def test_patches_go_left_to_right_then_down_each_as_channel_row_column():
    image = torch.arange(16.0).reshape(1, 1, 4, 4)
    images = torch.cat([image, image + 100], dim=1)  # (1, 2, 4, 4)
    assert image_to_patches(images, 2)[0].tolist() == [
        [0, 1, 4, 5, 100, 101, 104, 105],
        [2, 3, 6, 7, 102, 103, 106, 107],
        [8, 9, 12, 13, 108, 109, 112, 113],
        [10, 11, 14, 15, 110, 111, 114, 115],
    ]


def test_patches_equal_unfold():
    images = torch.randn(2, 3, 10, 35)
    assert torch.equal(image_to_patches(images, 5), F.unfold(images, 5, stride=5).transpose(1, 2))


@settings(deadline=None, max_examples=30)
@given(*(st.integers(1, 4) for _ in range(5)))
def test_putting_patches_together_gives_the_image_back(batch, channels, rows, columns, patch_size):
    images = torch.rand(batch, channels, rows * patch_size, columns * patch_size)
    patches = image_to_patches(images, patch_size)
    assert patches.shape == (batch, rows * columns, channels * patch_size**2)
    assert torch.equal(patches_to_image(patches, patch_size, rows * patch_size, columns * patch_size), images)


def test_an_image_that_does_not_divide_is_named(unchecked):
    with pytest.raises(ValueError, match="an image of 10×14 does not divide into patches of patch_size=5"):
        image_to_patches(torch.rand(2, 3, 10, 14), 5)
    with pytest.raises(ValueError, match="an image of 14×10 does not divide"):
        image_to_patches(torch.rand(2, 3, 14, 10), 5)
    with pytest.raises(ValueError, match=r"shape \(10, 15\) must be \(batch, channels, height, width\)"):
        image_to_patches(torch.rand(10, 15), 5)
    with pytest.raises(ValueError, match="patch_size=0 must be"):
        image_to_patches(torch.rand(2, 3, 10, 15), 0)


@pytest.mark.parametrize("shape", [(2, 5, 75), (2, 6, 74), (6, 75)])
def test_patches_that_do_not_fit_the_image_are_named(unchecked, shape):
    with pytest.raises(ValueError, match=r"must be \(batch, 6, channels·25\) for patch_size=5, height=10, width=15"):
        patches_to_image(torch.rand(shape), 5, 10, 15)


# patch embedding


def test_patch_embedding_equals_a_strided_convolution_with_gradients(dtype):
    embedding = PatchEmbedding(image_size=10, patch_size=5, channels=3, d_model=7)
    convolution = nn.Conv2d(3, 7, kernel_size=5, stride=5)
    convolution.weight.data = embedding.projection.weight.data.reshape(7, 3, 5, 5)
    convolution.bias.data = embedding.projection.bias.data
    images = torch.randn(2, 3, 10, 10, requires_grad=True)
    theirs = images.detach().clone().requires_grad_()
    coefficients = torch.randn(2, 4, 7)
    ours, expected = embedding(images), convolution(theirs).flatten(2).transpose(1, 2)
    assert_parity(ours, expected)
    (ours * coefficients).sum().backward()
    (expected * coefficients).sum().backward()
    assert_parity(images.grad, theirs.grad, "gradients of the image")
    assert_parity(embedding.projection.weight.grad, convolution.weight.grad.flatten(1), "gradients of the weight")
    assert_parity(embedding.projection.bias.grad, convolution.bias.grad, "gradients of the bias")


def test_the_shapes_of_the_notes():
    embedding = PatchEmbedding(image_size=224, patch_size=16, channels=1, d_model=512)
    images = torch.rand(1, 1, 224, 224)
    assert embedding.num_patches == 196
    assert image_to_patches(images, 16).shape == (1, 196, 256)
    assert embedding.projection.weight.shape == (512, 256)
    assert embedding(images).shape == (1, 196, 512)


def test_other_images_than_promised_are_named(unchecked):
    embedding = PatchEmbedding(image_size=10, patch_size=5, channels=3, d_model=7)
    for shape in [(2, 1, 10, 10), (2, 3, 15, 10), (3, 10, 10)]:
        with pytest.raises(ValueError, match=r"must be \(batch, 3, 10, 10\)"):
            embedding(torch.rand(shape))
    with pytest.raises(ValueError, match="an image of 10×10 does not divide into patches of patch_size=3"):
        PatchEmbedding(image_size=10, patch_size=3, channels=3, d_model=7)
