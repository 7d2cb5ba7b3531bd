"""The two inputs that go through the whole book: two short sentences, and a photograph of a cat."""

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from encoder_lib.vocabulary import Vocabulary

SENTENCES = ("the cat slept because it was tired", "the dog saw the cat")


def vocabulary() -> Vocabulary:
    """Return the vocabulary of the two sentences: padding, unknown, and their nine words."""
    return Vocabulary(SENTENCES)


def token_ids() -> Int[Tensor, "batch seq"]:
    """Return the ids of the two sentences, (2, 7); the shorter one ends with two paddings."""
    return vocabulary().encode(SENTENCES)


def cat_image() -> Float[Tensor, "batch channels height width"]:
    """Return the photograph in grey values from 0 (black) to 1 (white), (1, 1, 224, 224)."""
    from PIL import Image  # here, so that the sentences do without Pillow

    with Image.open(Path(__file__).parent / "data" / "cat.png") as image:
        pixels = torch.from_numpy(np.array(image))  # (224, 224) of uint8
    return (pixels.to(torch.get_default_dtype()) / 255)[None, None]  # (1, 1, 224, 224)
