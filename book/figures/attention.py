"""The drawings of chapter 3. Nothing is explained here: each function draws tensors that the page has made."""

import figure_style as style
import numpy as np
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, NullLocator

WIDTH = 4.5  # inches: fits a phone without scrolling
SIDE = 14  # patches along the photograph


def _frame(ax):
    """Keep a thin frame."""
    for spine in ax.spines.values():
        spine.set(visible=True, color=style.MUTED, linewidth=0.6)


def _weights(ax, weights, highest=1.0):
    image = ax.imshow(weights, cmap=style.MAGNITUDE, vmin=0, vmax=highest)
    _frame(ax)
    ax.tick_params(length=0)
    return image


def _words(ax, words, rotation=90):
    ax.set_xticks(range(len(words)), words, rotation=rotation)
    ax.set_yticks(range(len(words)), words)


def _band(ax, x, values, **look):
    """A line through the means of values (points, seeds), and a band from the smallest to the largest."""
    values = np.asarray(values)
    (line,) = ax.plot(x, values.mean(1), **look)
    ax.fill_between(x, values.min(1), values.max(1), color=line.get_color(), alpha=0.22, linewidth=0)


def _plain_log(axis, ticks, form="{:g}"):
    axis.set_ticks(ticks)
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: form.format(value)))


def overview(weights, words, word):
    """The map of one head, and the row of one word as bars."""
    row = words.index(word)
    fig, (ax, bars) = style.figure(WIDTH, 2.75, columns=2, width_ratios=[1.25, 1], sharey=False)
    _weights(ax, weights)
    _words(ax, words)
    ax.set(xlabel="key", ylabel="query")
    ax.add_patch(
        Rectangle((-0.5, row - 0.5), len(words), 1, fill=False, edgecolor=style.POSITION, linewidth=2, clip_on=False)
    )
    bars.barh(range(len(words)), weights[row], color=style.ATTENTION, height=0.7)
    bars.set_yticks(range(len(words)), words)
    bars.invert_yaxis()
    bars.set(xlim=(0, 1), xlabel=f"weight for “{word}”")
    bars.tick_params(axis="y", length=0)
    return fig


def scale(products, root, widths, runs):
    """products: one row, sorted; runs: (widths, seeds, 5): variance, then largest weight and derivative, twice."""
    fig = style.plt.figure(figsize=(WIDTH, 5.0), layout="constrained")
    spec = fig.add_gridspec(2, 2, height_ratios=[1, 1.45])
    left = fig.add_subplot(spec[0, 0])
    right = fig.add_subplot(spec[0, 1], sharey=left)
    below = fig.add_subplot(spec[1, :])
    looks = ((left, products, style.WRONG, "without the scale"), (right, products / root, style.ATTENTION, "÷ √d_k"))
    for ax, scores, color, title in looks:
        ax.bar(range(len(scores)), scores.softmax(-1), color=color, hatch="///" if ax is left else None,
               edgecolor=style.PAPER, linewidth=0)
        ax.set(title=title, ylim=(0, 1), xlabel="key, best first")
        ax.set_xticks([])
    left.set_ylabel("weight")
    right.tick_params(labelleft=False)

    _band(below, widths, runs[:, :, 4], color=style.ATTENTION, marker="o")
    _band(below, widths, runs[:, :, 2].clamp(min=1e-6), color=style.WRONG, marker="X", linestyle="--")
    below.set(xscale="log", yscale="log", xlabel="d_k", ylabel="size of the derivative", ylim=(1e-5, 1))
    _plain_log(below.xaxis, widths)
    below.grid(axis="y")
    below.text(widths[-1], 0.27, "÷ √d_k", color=style.ATTENTION, ha="right")
    below.text(widths[2] * 1.05, 0.012, "without the scale", color=style.WRONG, ha="right")
    return fig


def entropy(divisors, values, marks, highest):
    """values: (divisors, seeds); marks: name → divisor."""
    fig, ax = style.figure(WIDTH, 3.2)
    ax.axhline(highest, color=style.MUTED, linestyle="--", linewidth=1)
    ax.text(divisors[0], highest + 0.1, f"all equal: ln 196 = {highest:.2f}", color=style.MUTED)
    _band(ax, divisors, values, color=style.ATTENTION)
    means = values.mean(1)
    beside = ((1.15, -0.1), (1.15, -0.35), (1.0, -1.05), (1.0, -0.5))
    for (name, divisor), (factor, below) in zip(marks.items(), beside, strict=True):
        height = np.interp(np.log(divisor), np.log(divisors), means)
        wrong = name != "√d_k"
        ax.plot(divisor, height, "X" if wrong else "o", color=style.WRONG if wrong else style.ATTENTION, markersize=8)
        ax.text(divisor * factor, height + below, name, va="center", color=style.WRONG if wrong else style.ATTENTION)
    ax.set(xscale="log", xlabel="the dot products are divided by", ylabel="entropy", ylim=(0, 6))
    _plain_log(ax.xaxis, [0.5, 1, 2, 4, 8, 16, 32, 64, 128])
    return fig


def masks(masks, words):
    """Boolean tables, True dark and False crossed."""
    fig, axes = style.figure(WIDTH, 5.0, rows=2, columns=2)
    for ax, (title, mask) in zip(axes.flat, masks.items(), strict=True):
        ax.imshow(np.where(mask, 0.75, 0.0), cmap=style.MAGNITUDE, vmin=0, vmax=1)
        for query, key in np.argwhere(~np.asarray(mask)):
            ax.plot(key, query, "x", color=style.PADDING, markersize=4, markeredgewidth=1)
        _frame(ax)
        ax.tick_params(length=0)
        _words(ax, words)
        ax.set_title(title)
        if ax in axes[0]:
            ax.tick_params(labelbottom=False)
        else:
            ax.set_xlabel("key")
        if ax in axes[:, 0]:
            ax.set_ylabel("query")
        else:
            ax.tick_params(labelleft=False)
    return fig


def split(small, right, wrong):
    """small: (tokens, entries), numbered; right and wrong: (heads, tokens, entries of a head)."""
    tokens, width = small.shape
    shades = [style.MAGNITUDE(0.12), style.MAGNITUDE(0.45), style.MAGNITUDE(0.95)]

    def cells(ax, table):
        for (row, column), number in np.ndenumerate(np.asarray(table)):
            token = number // width
            ax.add_patch(Rectangle((column, row), 1, 1, facecolor=shades[token], edgecolor=style.PAPER, linewidth=1.5))
            ax.text(column + 0.5, row + 0.54, str(number), ha="center", va="center", fontsize=9.5,
                    color="#1d2434" if token == 0 else "#fefefe")
        ax.set(xlim=(-0.05, table.shape[1] + 0.05), ylim=(len(table) + 0.05, -0.05))
        ax.set(aspect="equal", xticks=[], yticks=[])
        for spine in ax.spines.values():
            spine.set_visible(False)

    fig = style.plt.figure(figsize=(WIDTH, 2.9), layout="constrained")
    spec = fig.add_gridspec(2, 3, width_ratios=[width, small.shape[1] // 2, small.shape[1] // 2])
    whole = fig.add_subplot(spec[:, 0])
    cells(whole, small)
    whole.set_title(f"x: {tokens} × {width}")
    for line, (heads, name, color) in enumerate(
        ((right, "view, transpose", style.ATTENTION), (wrong, "view alone  ✗", style.WRONG))
    ):
        for head, table in enumerate(heads):
            ax = fig.add_subplot(spec[line, 1 + head])
            cells(ax, table)
            ax.set_xlabel(f"head {head}")
            if head == 0:
                ax.set_title(name, color=color)
    return fig


def memory(lengths, written_out, fused):
    """Bytes kept, against the length."""
    fig, ax = style.figure(WIDTH, 3.6)
    longer = np.array([64, 16384])
    ax.plot(longer, 8 * longer.astype(float) ** 2 * 4 / 1e6, color=style.ATTENTION, linewidth=1.2)
    ax.plot(lengths, np.array(written_out) / 1e6, "o", color=style.ATTENTION)
    ax.plot(lengths, np.array(fused) / 1e6, "s--", color=style.KEY)
    ax.set(xscale="log", yscale="log", xlabel="length L", ylabel="megabytes kept")
    _plain_log(ax.xaxis, [64, 256, 1024, 4096, 16384])
    _plain_log(ax.yaxis, [0.1, 1, 10, 100, 1000, 10000], "{:,g}")
    ax.grid(axis="y")
    ax.text(2100, 450, "scores: h · L² · 4 bytes", ha="right", color=style.ATTENTION)
    ax.text(75, 3.0, "written out", color=style.ATTENTION)
    ax.text(1250, 9, "fused kernel", color=style.KEY)
    return fig


def heads(maps, words, marked=()):
    """maps: (num_layers, num_heads, seq, seq); marked: pairs of layer and head, counted from 1."""
    num_layers, num_heads = maps.shape[:2]
    fig, axes = style.figure(WIDTH, 7.0, rows=num_layers, columns=num_heads)
    for layer in range(num_layers):
        for head in range(num_heads):
            ax = axes[layer, head]
            _weights(ax, maps[layer, head])
            ax.set(xticks=[], yticks=[])
            if layer == 0:
                ax.set_title(f"head {head + 1}", loc="center")
            if head == 0:
                ax.set_ylabel(f"layer {layer + 1}")
            if (layer + 1, head + 1) in marked:
                for spine in ax.spines.values():
                    spine.set(color=style.POSITION, linewidth=2.4)
    for ax in axes[-1]:
        ax.set_xticks(range(len(words)), words, rotation=90, fontsize=8)
    return fig


def patches(photograph, weights, number):
    """The photograph with one patch framed, and the weights of that patch's query over the grid, head by head."""
    num_heads = len(weights)
    fig = style.plt.figure(figsize=(WIDTH, 2.75), layout="constrained")
    spec = fig.add_gridspec(2, num_heads // 2 + 2, width_ratios=[1] * (num_heads // 2 + 2))
    ax = fig.add_subplot(spec[:, :2])
    ax.imshow(photograph, cmap="gray", vmin=0, vmax=1)
    ax.set(xticks=[], yticks=[])
    size = photograph.shape[0] // SIDE
    row, column = divmod(number, SIDE)
    ax.add_patch(
        Rectangle((column * size, row * size), size, size, fill=False, edgecolor=style.POSITION, linewidth=2)
    )
    ax.set_title(f"patch {number} asks")
    for head in range(num_heads):
        ax = fig.add_subplot(spec[head // (num_heads // 2), 2 + head % (num_heads // 2)])
        _weights(ax, weights[head].reshape(SIDE, SIDE), weights.max())
        ax.set(xticks=[], yticks=[])
        ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=style.POSITION, linewidth=1.2))
        ax.set_title(f"head {head}", loc="center", fontsize=9.5)
    return fig
