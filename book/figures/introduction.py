"""The figures of the introduction: the cover, the map of the chapters, the running example."""

import figure_style as style
import numpy as np
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.transforms import Affine2D

from encoder_lib.running_example import SENTENCES, cat_image, vocabulary

SIDE, GRID = 16, 14  # pixels of a patch, patches of a side
EYE = (5, 4)         # row and column of the patch that holds an eye of the cat


def cover():
    """The cat's patches on the left; then seven sheets of tokens, each one more round of attention."""
    fig, ax = style.figure(style.COLUMN, 2.75, layout="none")
    ax.set_position([0, 0, 1, 1])
    ax.set_axis_off()

    photograph = _with_gaps(cat_image()[0, 0].numpy(), SIDE, gap=3)
    _sheet(ax, photograph, x=0.0, y=0.0, width=2.5, height=2.5, slope=0.0)

    sheets = _rounds_of_attention()
    lefts = 3.0 + 0.58 * np.arange(len(sheets))
    eyes = []
    for left, tokens in zip(lefts, sheets, strict=True):
        shade = style.MAGNITUDE(0.06 + 0.9 * tokens)[..., :3]
        _sheet(ax, _with_gaps(np.kron(shade, np.ones((6, 6, 1))), 6, gap=1), left, 0.02, 0.5, 2.1, 0.36, flips=True)
        eyes.append(_place(left, 0.02, 0.5, 2.1, 0.36))
    row, column = EYE
    start = (2.5 * (column + 0.5) / GRID, 2.5 * (1 - (row + 0.5) / GRID))
    xs, ys = zip(start, *eyes, strict=True)
    ax.plot(xs, ys, color=style.POSITION, linewidth=1.6, solid_capstyle="round", zorder=5)
    ax.plot(xs, ys, "o", color=style.POSITION, markersize=4.5, zorder=6)
    ax.set(xlim=(-0.06, 7.06), ylim=(-0.1, 2.67))
    return fig


def _rounds_of_attention(rounds=6):
    """Mean darkness (0 to 1) of each patch before and after each round of attention without any weights."""
    pixels = 1 - cat_image()[0, 0].numpy()
    x = pixels.reshape(GRID, SIDE, GRID, SIDE).transpose(0, 2, 1, 3).reshape(GRID * GRID, SIDE * SIDE)  # (196, 256)
    sheets = []
    for _ in range(rounds + 1):
        darkness = x.mean(axis=1)
        sheets.append(((darkness - darkness.min()) / np.ptp(darkness)).reshape(GRID, GRID))
        centred = (x - x.mean()) / x.std()
        scores = centred @ centred.T / np.sqrt(x.shape[1])  # (196, 196)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        x = 0.5 * x + 0.5 * (weights / weights.sum(axis=1, keepdims=True)) @ x
    return sheets


def _with_gaps(image, side, gap):
    """Put `gap` transparent pixels between the patches of `image`: (height, width) or (height, width, 3) -> RGBA."""
    if image.ndim == 2:
        image = np.repeat(image[..., None], 3, axis=-1)
    count = image.shape[0] // side
    result = np.zeros((count * (side + gap) - gap, count * (side + gap) - gap, 4))
    for row in range(count):
        for column in range(count):
            y, x = row * (side + gap), column * (side + gap)
            patch = image[row * side : (row + 1) * side, column * side : (column + 1) * side]
            result[y : y + side, x : x + side] = np.dstack([patch, np.ones((side, side))])
    return result


def _sheet(ax, image, x, y, width, height, slope, flips=False):
    """Draw an image as a parallelogram whose right edge stands `slope` higher than its left edge."""
    drawn = ax.imshow(image, extent=(0, 1, 0, 1), interpolation="none", aspect="auto", zorder=2)
    drawn.set_transform(Affine2D.from_values(width, slope, 0, height, x, y) + ax.transData)
    drawn.set_clip_on(False)
    if flips:
        drawn.set_gid("magnitude")


def _place(x, y, width, height, slope):
    """Where the eye's token lies on a sheet."""
    u, v = (EYE[1] + 0.5) / GRID, 1 - (EYE[0] + 0.5) / GRID
    return x + width * u, y + slope * u + height * v


def chapter_map():
    """The encoder from bottom to top of its data flow, each part with the number of its chapter."""
    fig, ax = style.figure(style.NARROW + 0.4, 5.5, layout="none")
    ax.set_position([0, 0, 1, 1])
    ax.set_axis_off()
    ax.set(xlim=(0, 3.8), ylim=(0, 5.5))

    def part(y, name, chapter, colour, x=1.0, width=2.0, height=0.44):
        ax.add_patch(FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=0.07",
                                    facecolor="none", edgecolor=colour, linewidth=1.6, zorder=3))
        ax.text(x + width / 2, y + height / 2, name, ha="center", va="center", zorder=4)
        ax.text(x + width + 0.14, y + height / 2, f"{chapter}", ha="left", va="center", color=colour,
                fontweight="bold", fontsize=12)

    def arrow(y_from, y_to, x=2.0):
        ax.add_patch(FancyArrowPatch((x, y_from), (x, y_to), arrowstyle="-|>", mutation_scale=9,
                                     color=style.X, linewidth=1.4, shrinkA=0, shrinkB=0))

    ax.text(2.0, 0.16, "words  or  pixels", ha="center", va="center", color=style.MUTED)
    arrow(0.30, 0.56)
    part(0.56, "Embedding", 1, style.EMBEDDING)
    arrow(1.00, 1.24)
    part(1.24, "Positional encoding", 2, style.POSITION)
    arrow(1.68, 2.04)

    ax.add_patch(FancyBboxPatch((0.52, 1.92), 2.96, 2.90, boxstyle="round,pad=0,rounding_size=0.12",
                                facecolor="none", edgecolor=style.MUTED, linestyle=(0, (3, 3)), linewidth=1.0))
    part(2.06, "Multi-head attention", 3, style.ATTENTION)
    arrow(2.50, 2.72)
    part(2.72, "Add & Norm", 4, style.NORM)
    arrow(3.16, 3.38)
    part(3.38, "Feed-forward", 5, style.FEED_FORWARD)
    arrow(3.82, 4.04)
    part(4.04, "Add & Norm", 4, style.NORM)
    for low, high in ((1.80, 2.94), (3.27, 4.26)):  # the residual connections
        ax.plot([2.0, 0.74, 0.74], [low, low, high], color=style.X, linewidth=1.4)
        ax.add_patch(FancyArrowPatch((0.74, high), (1.0, high), arrowstyle="-|>", mutation_scale=9,
                                     color=style.X, linewidth=1.4, shrinkA=0, shrinkB=0))
    ax.text(0.64, 4.66, "one layer, six times over", va="center", color=style.MUTED, fontsize=9.5)
    ax.text(3.14, 4.66, "6", va="center", color=style.X, fontweight="bold", fontsize=12)
    arrow(4.48, 5.16)
    ax.text(2.0, 5.32, "one vector for each token", ha="center", va="center", color=style.MUTED)
    return fig


def running_example():
    """The cat on its patch grid, and under it the two sentences as rows of numbers, the padding hatched."""
    fig, (top, bottom) = style.figure(4.1, 4.0, 2, 1, layout="none")
    top.set_position([0.0, 0.44, 1.0, 0.55])
    top.imshow(cat_image()[0, 0].numpy(), cmap="gray", vmin=0, vmax=1, extent=(0, GRID, GRID, 0))
    for line in range(1, GRID):
        top.axhline(line, color="#ffffff", linewidth=0.5, alpha=0.55)
        top.axvline(line, color="#ffffff", linewidth=0.5, alpha=0.55)
    top.set_axis_off()

    words = vocabulary()
    ids = words.encode(SENTENCES)
    bottom.set_position([0.0, 0.0, 1.0, 0.42])
    bottom.set_axis_off()
    bottom.set(xlim=(0, ids.shape[1]), ylim=(2.5, 0))
    for row, (sentence, numbers) in enumerate(zip(SENTENCES, ids.tolist(), strict=True)):
        tokens = sentence.split() + ["padding"] * (len(numbers) - len(sentence.split()))
        for column, (token, number) in enumerate(zip(tokens, numbers, strict=True)):
            padded = number == words.pad_id
            colour = style.PADDING if padded else style.EMBEDDING
            y = 0.5 + 1.2 * row
            bottom.text(column + 0.5, y, token, ha="center", color=style.MUTED if padded else style.INK)
            bottom.add_patch(Rectangle((column + 0.06, y + 0.12), 0.88, 0.5, facecolor="none", edgecolor=colour,
                                       linewidth=1.4, hatch="////" if padded else None))
            if not padded:
                bottom.text(column + 0.5, y + 0.38, number, ha="center", va="center", color=colour, fontweight="bold")
    return fig
