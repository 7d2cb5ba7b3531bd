"""Chapter 1's words and ids: they come before every exercise, so they stand apart from what the exercises ask for."""

import re
from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from encoder_lib._checks import check_ids


def tokenize(text: str) -> list[str]:
    """Split a text into lower-case words and punctuation marks.

    Args:
        text: in any language that puts spaces between words.

    Returns:
        the tokens, in order.

    Source: book chapter 1.
    """
    return re.findall(r"\w+|[^\w\s]", text.lower())


class Vocabulary:
    """Number the words of some sentences in order of first appearance, after padding (0) and unknown (1).

    Args:
        sentences: the texts whose words make the vocabulary.

    Raises:
        ValueError: `sentences` is a single text.

    Source: book chapter 1.
    """

    pad_id = 0
    unk_id = 1

    def __init__(self, sentences: Sequence[str]):
        words = [word for tokens in _tokenize_all(sentences) for word in tokens]
        self.words = ["<pad>", "<unk>", *dict.fromkeys(words)]
        self._ids = {word: index for index, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, sentences: Sequence[str]) -> Int[Tensor, "batch seq"]:
        """Turn sentences into ids, the shorter ones padded on the right to the length of the longest.

        Args:
            sentences: one text for each row of the batch.

        Returns:
            (batch, seq) of int64; a word that the vocabulary lacks becomes `unk_id`.

        Raises:
            ValueError: `sentences` is a single text, or holds no word at all.
        """
        rows = [[self._ids.get(word, self.unk_id) for word in tokens] for tokens in _tokenize_all(sentences)]
        seq = max((len(row) for row in rows), default=0)
        if seq == 0:
            raise ValueError(f"sentences={sentences!r} hold no word to encode")
        return torch.tensor([row + [self.pad_id] * (seq - len(row)) for row in rows])  # (batch, seq)

    def decode(self, ids: Int[Tensor, "batch seq"]) -> list[str]:
        """Turn ids back into one text a row, without the padding.

        Args:
            ids: (batch, seq) of whole numbers.

        Returns:
            one text for each row, its tokens joined by spaces.

        Raises:
            ValueError: an id lies outside the vocabulary.
        """
        check_ids(ids, len(self))
        return [" ".join(self.words[index] for index in row if index != self.pad_id) for row in ids.tolist()]


def _tokenize_all(sentences: Sequence[str]) -> list[list[str]]:
    if isinstance(sentences, str):
        raise ValueError(f"sentences={sentences!r} is a single text; pass a list of sentences")
    return [tokenize(sentence) for sentence in sentences]
