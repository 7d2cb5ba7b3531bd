"""The two sentences and the cat."""

import torch

from encoder_lib import running_example


def test_the_shorter_sentence_ends_in_padding():
    ids = running_example.token_ids()
    assert ids.tolist() == [[2, 3, 4, 5, 6, 7, 8], [2, 9, 10, 2, 3, 0, 0]]


def test_the_ids_read_as_the_sentences():
    vocabulary = running_example.vocabulary()
    assert len(vocabulary) == 11
    assert tuple(vocabulary.decode(running_example.token_ids())) == running_example.SENTENCES


def test_the_cat_is_one_grey_image_between_black_and_white(dtype):
    cat = running_example.cat_image()
    assert cat.shape == (1, 1, 224, 224)
    assert cat.dtype == dtype
    assert 0.0 <= cat.min() < 0.1 < 0.6 < cat.max() <= 1.0  # a photograph, not a flat field
    assert torch.equal((cat * 255).round() / 255, cat)
