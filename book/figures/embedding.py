"""The drawings of chapter 1. Nothing is explained here: each function draws tensors that the page has made."""

import figure_style as style
import numpy as np
from matplotlib.patches import Rectangle

WIDTH = 4.5  # inches: fits a phone without scrolling
PATCH, SIDE = 16, 14  # pixels along a patch, patches along the photograph


def _frame(ax):
    """Keep a thin frame, without ticks."""
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set(visible=True, color=style.MUTED, linewidth=0.6)


def _picture(ax, pixels, **options):
    ax.imshow(pixels, cmap="gray", **{"vmin": 0, "vmax": 1} | options)
    _frame(ax)


def _signed(ax, values, limit, **options):
    image = ax.imshow(values, cmap=style.SIGNED, vmin=-limit, vmax=limit, **options)
    _frame(ax)
    return image


def _grid(ax, **options):
    edges = np.arange(0, SIDE * PATCH + 1, PATCH) - 0.5
    ax.hlines(edges, -0.5, SIDE * PATCH - 0.5, **options)
    ax.vlines(edges, -0.5, SIDE * PATCH - 0.5, **options)


def _mark_patch(ax, number, color, **options):
    row, column = divmod(number, SIDE)
    corner = (column * PATCH - 0.5, row * PATCH - 0.5)
    ax.add_patch(Rectangle(corner, PATCH, PATCH, fill=False, edgecolor=color, **{"linewidth": 2} | options))


def overview(tokens, one_hot, x_words, photograph, patches, x_patches, columns):
    """Words above, the photograph below: pieces, their rows, and the first columns of X."""
    fig = style.plt.figure(figsize=(WIDTH, 3.75), layout="constrained")
    axes = fig.add_gridspec(2, 3, height_ratios=[1, 1.12]).subplots()
    for place in range(len(one_hot)):
        token, color = (tokens[place], style.INK) if place < len(tokens) else ("<pad>", style.MUTED)
        axes[0, 0].text(0.5, place, token, ha="center", va="center", color=color)
    axes[0, 0].set(xlim=(0, 1), ylim=(len(one_hot) - 0.5, -0.5))
    _frame(axes[0, 0])
    axes[0, 1].imshow(one_hot, cmap=style.MAGNITUDE, vmin=0, vmax=1.2, aspect="auto")
    _frame(axes[0, 1])
    _signed(axes[0, 2], x_words[:, :columns], np.abs(x_words).max(), aspect="auto")

    _picture(axes[1, 0], photograph, aspect="auto")
    _grid(axes[1, 0], color="white", linewidth=0.5, alpha=0.7)
    _picture(axes[1, 1], patches, aspect="auto")
    _signed(axes[1, 2], x_patches[:, :columns], np.abs(x_patches).max(), aspect="auto")

    for ax, title in zip(axes[0], ("words", "one-hot rows O", "X"), strict=True):
        ax.set_title(title)
    for ax, title in zip(axes[1], ("patches", "rows of pixels P", "X"), strict=True):
        ax.set_title(title)
    for ax, values in ((axes[0, 1], one_hot), (axes[0, 2], x_words), (axes[1, 1], patches), (axes[1, 2], x_patches)):
        ax.set_xlabel(f"{values.shape[0]} × {values.shape[1]}")
    axes[1, 0].set_xlabel("14 × 14 pieces")
    return fig


def one_hot_product(tokens, words, one_hot, table, x, word):
    """A sentence as (seq, vocab_size) · (vocab_size, columns) = (seq, columns), with one word's rows framed."""
    limit = np.abs(table).max()
    fig = style.plt.figure(figsize=(WIDTH, 3.0))
    place = {"left": 0.1, "right": 0.99, "bottom": 0.03, "top": 0.89, "wspace": 0.22, "hspace": 0}
    spec = fig.add_gridspec(len(words), 3, width_ratios=[one_hot.shape[1], table.shape[1], x.shape[1]], **place)
    left = fig.add_subplot(spec[: len(tokens), 0])
    middle = fig.add_subplot(spec[:, 1])
    right = fig.add_subplot(spec[: len(tokens), 2])

    left.imshow(one_hot, cmap=style.MAGNITUDE, vmin=0, vmax=1.2, aspect="auto")
    _frame(left)
    left.set_xticks(range(len(words)), words, rotation=90)
    left.set_yticks(range(len(tokens)), tokens)
    _signed(middle, table, limit, aspect="auto")
    middle.set_yticks(range(len(words)), range(len(words)))
    _signed(right, x, limit, aspect="auto")
    right.set_yticks(range(len(tokens)), [words.index(token) for token in tokens])
    for ax, title in zip((left, middle, right), ("one-hot O", "× table E", "= rows of E"), strict=True):
        ax.set_title(title)
        ax.tick_params(length=0)

    places = [place for place, token in enumerate(tokens) if token == word]
    for ax, rows in ((left, places), (middle, [words.index(word)]), (right, places)):
        for row in rows:
            _frame_row(ax, row)
    return fig


def _frame_row(ax, row, height=1):
    width = ax.get_images()[0].get_array().shape[1]
    corner = (-0.5, row - height / 2)
    ax.add_patch(Rectangle(corner, width, height, fill=False, edgecolor=style.POSITION, linewidth=2, clip_on=False))


def sizes_against_width(widths, runs, positions):
    """runs: (widths, seeds, 3): not scaled, scaled, and the default scaled; positions: one size a width."""
    fig, ax = style.figure(WIDTH, 3.4)
    looks = (
        (style.X, ":", "^", "N(0, 1/d_model), not scaled", 0.04),
        (style.EMBEDDING, "-", "o", "N(0, 1/d_model) × √d_model", 1.25),
        (style.WRONG, "--", "X", "nn.Embedding’s N(0, 1) × √d_model", 25),
    )
    for run, (color, line, marker, label, height) in zip(runs.permute(2, 0, 1).numpy(), looks, strict=True):
        ax.fill_between(widths, run.min(axis=1), run.max(axis=1), color=color, alpha=0.3, linewidth=0)
        ax.plot(widths, run.mean(axis=1), line, color=color, marker=marker)
        ax.text(widths[0], height, label, color=color)
    ax.plot(widths, positions, color=style.POSITION, linewidth=3)
    ax.text(widths[-1], positions[-1] * 0.83, "positional encoding", color=style.POSITION, ha="right", va="top")
    ax.set(xscale="log", yscale="log", xlabel="width d_model", ylabel="root mean square of an entry", ylim=(0.02, 80))
    ax.set_xticks(widths, widths)
    ax.set_yticks([0.03, 0.1, 0.3, 1, 3, 10, 30], ["0.03", "0.1", "0.3", "1", "3", "10", "30"])
    ax.minorticks_off()
    ax.grid(axis="y")
    return fig


def words_beside_positions(panels, likeness, tokens, columns):
    """panels: title → (seq, d_model); every panel has its own colour scale, and one line of likeness above it."""
    fig, axes = style.figure(WIDTH, 1.6 * len(panels) + 0.2, rows=len(panels), layout="constrained")
    for ax, (title, sums), remark in zip(axes, panels.items(), likeness, strict=True):
        _signed(ax, sums[:, :columns], np.abs(sums[:, :columns]).max(), aspect="auto")
        ax.set_yticks(range(len(tokens)), tokens)
        ax.tick_params(length=0)
        ax.set_title(title)
        ax.set_title(remark, loc="right", fontsize=9.5)
    axes[-1].set_xlabel(f"the first {columns} entries of each row")
    return fig


def patch_grid(photograph):
    """The photograph under its grid, with the columns' numbers above and each row's first patch at the left."""
    fig, ax = style.figure(WIDTH, WIDTH)
    _picture(ax, photograph)
    _grid(ax, color="white", linewidth=0.7, alpha=0.75)
    middles = np.arange(SIDE) * PATCH + PATCH / 2 - 0.5
    ax.set_xticks(middles, range(SIDE))
    ax.set_yticks(middles, range(0, SIDE * SIDE, SIDE))
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.tick_params(length=0)
    ax.set(xlabel="grid column", ylabel="first patch of the grid row")
    return fig


def patch_to_row(photograph, patches, number):
    """The photograph with one patch framed, the patch enlarged, the patch as a row, and the row among all rows."""
    fig = style.plt.figure(figsize=(WIDTH, 6.4), layout="constrained")
    rows = fig.add_gridspec(3, 2, height_ratios=[2.1, 0.32, 2.9])
    whole, close = fig.add_subplot(rows[0, 0]), fig.add_subplot(rows[0, 1])
    strip, matrix = fig.add_subplot(rows[1, :]), fig.add_subplot(rows[2, :])
    row = patches[number]

    _picture(whole, photograph)
    _mark_patch(whole, number, style.POSITION)
    whole.set_title(f"patch {number} of the photograph")
    _picture(close, row.reshape(PATCH, PATCH))
    close.set_title(f"enlarged: {PATCH} × {PATCH} pixels")
    _picture(strip, row[None], aspect="auto")
    strip.set_title(f"flattened: one row of {len(row)}")
    _picture(matrix, patches, aspect="auto")
    matrix.set_title(f"all patches: the matrix P, {' × '.join(map(str, patches.shape))}")
    matrix.set_yticks([0, number, len(patches) - 1])
    matrix.set_xticks([0, len(row) - 1])
    matrix.set(xlabel="place in the patch", ylabel="patch")
    matrix.tick_params(length=0)

    frame = {"fill": False, "edgecolor": style.POSITION, "linewidth": 2, "clip_on": False}
    close.add_patch(Rectangle((-0.5, -0.5), PATCH, 2, **frame))
    strip.add_patch(Rectangle((-0.5, -0.5), 2 * PATCH, 1, **frame))
    _frame_row(matrix, number, height=4)
    return fig


def convolution(patch, kernel, channel, number):
    """A patch times a kernel, and where the sum of the products stands in the kernel's map."""
    products = patch * kernel
    fig, axes = style.figure(WIDTH, 4.7, rows=2, columns=2)
    (left, right), (below, result) = axes
    _picture(left, patch)
    left.set_title(f"patch {number}")
    _signed(right, kernel, np.abs(kernel).max())
    right.set_title("× kernel 0")
    _signed(below, products, np.abs(products).max())
    below.set_title(f"= {products.numel()} products")
    _picture(result, channel, vmin=channel.min(), vmax=channel.max())
    result.set_title("their sum + bias: 1 entry")
    row, column = divmod(number, SIDE)
    _mark(result, row, column)
    result.set_xticks([0, column, SIDE - 1])
    result.set_yticks([0, row, SIDE - 1])
    result.tick_params(length=0)
    result.set(xlabel="grid column", ylabel="grid row")
    return fig


def _mark(ax, row, column):
    ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=style.POSITION, linewidth=2))


def orders(patches, strips, by_columns, number):
    """Three matrices, folded back as if their rows were patches in order; and what one row of the strips covers."""
    fig, axes = style.figure(WIDTH, 5.1, rows=2, columns=2)
    for ax, rows, title in (
        (axes[0, 0], patches, "patches"),
        (axes[0, 1], by_columns, "the grid by columns"),
        (axes[1, 0], strips, "view(196, 256)"),
    ):
        _picture(ax, _fold(rows))
        _mark_patch(ax, number, style.POSITION)
        ax.set_title(title)
    photograph = np.repeat(_fold(patches)[..., None], 3, axis=2) * 0.55
    covered = np.zeros(photograph.shape[:2], dtype=bool)
    covered.flat[number * PATCH**2 : (number + 1) * PATCH**2] = True
    photograph[covered] = style.matplotlib.colors.to_rgb(style.POSITION)
    axes[1, 1].imshow(photograph)
    _frame(axes[1, 1])
    axes[1, 1].set_title(f"row {number} of the view")
    return fig


def _fold(rows):
    squares = rows.numpy().reshape(SIDE, SIDE, PATCH, PATCH)
    return squares.transpose(0, 2, 1, 3).reshape(SIDE * PATCH, SIDE * PATCH)
