"""Chapter 1: from words and pixels to vectors."""

import math

from jaxtyping import Float, Int
from torch import Tensor, nn

from encoder_lib._checks import check_ids, check_positive
from encoder_lib.vocabulary import Vocabulary, tokenize

__all__ = ["PatchEmbedding", "TokenEmbedding", "Vocabulary", "tokenize"]


class TokenEmbedding(nn.Module):
    r"""Look up one learned vector for each token, times the square root of the width.

    $x_t = \sqrt{d_\text{model}}\, E_{\text{id}_t}$, the row of E that a one-hot product would pick.

    The rows start as N(0, 1/d_model), so that the product has entries of unit size.

    Args:
        vocab_size: the number of rows of E.
        d_model: the width of each row.
        pad_id: the row that stays zero and gets no gradient, or None.

    Raises:
        ValueError: a size is below 1, or `pad_id` is not a row of E; when called, an id is not a row of E.

    Source: Vaswani et al. 2017, section 3.4; book chapter 1.
    """

    def __init__(self, vocab_size: int, d_model: int, pad_id: int | None = None):
        super().__init__()
        check_positive(vocab_size=vocab_size, d_model=d_model)
        if pad_id is not None and not 0 <= pad_id < vocab_size:
            raise ValueError(f"pad_id={pad_id} is outside the vocabulary of vocab_size={vocab_size}")
        self.vocab_size, self.d_model = vocab_size, d_model
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=pad_id)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        if pad_id is not None:
            nn.init.zeros_(self.embedding.weight[pad_id])

    def forward(self, ids: Int[Tensor, "batch seq"]) -> Float[Tensor, "batch seq d_model"]:
        """Map ids (batch, seq) to vectors (batch, seq, d_model)."""
        check_ids(ids, self.vocab_size)
        return self.embedding(ids) * math.sqrt(self.d_model)  # (batch, seq, d_model)


def image_to_patches(
    images: Float[Tensor, "batch channels height width"], patch_size: int
) -> Float[Tensor, "batch num_patches patch_dim"]:
    """Cut images into square patches, from left to right and from top to bottom.

    Args:
        images: (batch, channels, height, width).
        patch_size: the side of a patch; it divides height and width.

    Returns:
        (batch, num_patches, channels·patch_size²), each patch flattened as (channel, row, column).

    Raises:
        ValueError: the images do not have four axes, or do not divide into such patches.

    Source: Dosovitskiy et al. 2021, section 3.1; book chapter 1.
    """
    check_positive(patch_size=patch_size)
    if images.dim() != 4:
        raise ValueError(f"images of shape {tuple(images.shape)} must be (batch, channels, height, width)")
    batch, channels, height, width = images.shape
    rows, columns = _patch_grid(height, width, patch_size)
    grid = images.reshape(batch, channels, rows, patch_size, columns, patch_size)
    grid = grid.permute(0, 2, 4, 1, 3, 5)  # (batch, rows, columns, channels, patch_size, patch_size)
    return grid.reshape(batch, rows * columns, channels * patch_size**2)  # (batch, num_patches, patch_dim)


def patches_to_image(
    patches: Float[Tensor, "batch num_patches patch_dim"], patch_size: int, height: int, width: int
) -> Float[Tensor, "batch channels height width"]:
    """Put the patches of `image_to_patches` back together.

    Args:
        patches: (batch, num_patches, channels·patch_size²).
        patch_size: the side of a patch.
        height, width: the size of the images.

    Returns:
        (batch, channels, height, width).

    Raises:
        ValueError: number or length of the patches do not fit such images.

    Source: book chapter 1.
    """
    check_positive(patch_size=patch_size, height=height, width=width)
    rows, columns = _patch_grid(height, width, patch_size)
    shape = tuple(patches.shape)
    if patches.dim() != 3 or shape[1] != rows * columns or shape[2] % patch_size**2:
        raise ValueError(
            f"patches of shape {shape} must be (batch, {rows * columns}, channels·{patch_size**2}) "
            f"for patch_size={patch_size}, height={height}, width={width}"
        )
    batch, _, patch_dim = shape
    channels = patch_dim // patch_size**2
    grid = patches.reshape(batch, rows, columns, channels, patch_size, patch_size)
    grid = grid.permute(0, 3, 1, 4, 2, 5)  # (batch, channels, rows, patch_size, columns, patch_size)
    return grid.reshape(batch, channels, height, width)  # (batch, channels, height, width)


def _patch_grid(height: int, width: int, patch_size: int) -> tuple[int, int]:
    if height % patch_size or width % patch_size:
        raise ValueError(f"an image of {height}×{width} does not divide into patches of patch_size={patch_size}")
    return height // patch_size, width // patch_size


class PatchEmbedding(nn.Module):
    r"""Map each patch of an image to a vector by one learned linear map.

    $x_p = W\,\mathrm{patch}_p + b$, which equals a convolution whose kernel and stride are the patch size.

    Args:
        image_size: the side of the square images.
        patch_size: the side of a patch; it divides `image_size`.
        channels: 1 for grey, 3 for colour.
        d_model: the width of each vector.

    Raises:
        ValueError: a size is below 1, or the image does not divide; when called, the images have another shape.

    Source: Dosovitskiy et al. 2021, section 3.1, equation 1; book chapter 1.
    """

    def __init__(self, image_size: int, patch_size: int, channels: int, d_model: int):
        super().__init__()
        check_positive(image_size=image_size, patch_size=patch_size, channels=channels, d_model=d_model)
        rows, columns = _patch_grid(image_size, image_size, patch_size)
        self.image_size, self.patch_size, self.channels = image_size, patch_size, channels
        self.num_patches = rows * columns
        self.projection = nn.Linear(channels * patch_size**2, d_model)

    def forward(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch num_patches d_model"]:
        """Map images (batch, channels, image_size, image_size) to vectors (batch, num_patches, d_model)."""
        expected = (self.channels, self.image_size, self.image_size)
        if images.dim() != 4 or tuple(images.shape[1:]) != expected:
            raise ValueError(f"images of shape {tuple(images.shape)} must be (batch, {', '.join(map(str, expected))})")
        patches = image_to_patches(images, self.patch_size)  # (batch, num_patches, channels·patch_size²)
        return self.projection(patches)  # (batch, num_patches, d_model)
