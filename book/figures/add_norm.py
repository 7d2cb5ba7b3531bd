"""The drawings of chapter 4. Nothing is explained here: each function draws tensors that the page has made."""

import figure_style as style
import numpy as np
from matplotlib.patches import Circle, FancyBboxPatch, Rectangle

WIDTH = 4.5  # inches: fits a phone without scrolling
LOOKS = {  # wiring → colour, line, marker
    "sub-layers alone": (style.WRONG, "--", "X"),
    "with residuals": (style.INK, "-.", "^"),
    "post-norm": (style.NORM, "-", "o"),
    "pre-norm": (style.X, "-", "s"),
}


def wirings():
    """Post-norm and pre-norm side by side, from bottom to top."""
    fig, axes = style.figure(WIDTH, 4.3, columns=2)
    for ax, title, norm_first in zip(axes, ("post-norm", "pre-norm"), (False, True), strict=True):
        ax.set(xlim=(-0.8, 2.6), ylim=(-0.25, 6.35), aspect="equal")
        ax.axis("off")
        ax.set_title(title, loc="center")
        plus = 4.1 if not norm_first else 5.0
        stream = {"arrowstyle": "-|>", "color": style.X, "linewidth": 3}
        ax.annotate("", (0, 6.2), (0, 0), arrowprops=stream, zorder=1)
        ax.text(-0.22, 0.0, "x", ha="right", color=style.X, fontsize=12)
        _branch(ax, [(0, 0.6), (1.6, 0.6), (1.6, plus), (0.24, plus)])
        heights = (1.4, 2.55, 3.6) if norm_first else (1.7, 2.95, None)
        boxes = [("norm", style.NORM), ("sub-layer", style.ATTENTION), ("dropout", style.MUTED)]
        for (name, color), height in zip(boxes if norm_first else boxes[1:], heights, strict=False):
            _box(ax, 1.6, height, name, color)
        if not norm_first:
            _box(ax, 0, 5.2, "norm", style.NORM)
        ax.add_patch(Circle((0, plus), 0.24, facecolor=style.PAPER, edgecolor=style.X, linewidth=2, zorder=3))
        ax.text(0, plus, "+", ha="center", va="center", color=style.X, fontsize=14, zorder=4)
    return fig


def _branch(ax, corners):
    x, y = np.array(corners).T
    ax.plot(x[:-1], y[:-1], color=style.MUTED, linewidth=1.6, zorder=1)
    look = {"arrowstyle": "-|>", "color": style.MUTED, "linewidth": 1.6}
    ax.annotate("", corners[-1], corners[-2], arrowprops=look, zorder=1)


def _box(ax, x, y, name, color):
    ax.add_patch(
        FancyBboxPatch(
            (x - 0.72, y - 0.27), 1.44, 0.54, boxstyle="round,pad=0.06",
            facecolor=style.PAPER, edgecolor=color, linewidth=2, zorder=2,
        )
    )  # fmt: skip
    ax.text(x, y, name, ha="center", va="center", color=color, zorder=3)


def distributions(before, after):
    """Two histograms with the same bars; a normal density over the second."""
    fig, axes = style.figure(WIDTH, 4.1, rows=2, layout="constrained")
    for ax, values, title in zip(axes, (before, after), ("before", "after layer norm"), strict=True):
        heights, edges, _ = ax.hist(values, bins=24, color=style.X, alpha=0.75)
        ax.axvline(values.mean(), color=style.POSITION)
        ax.set(ylabel="entries", title=title)
        ax.tick_params(length=0)
    axes[0].set_xlabel("grey value of a pixel")
    axes[1].set_xlabel("standardised entry")
    z = np.linspace(-3, 3, 121)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    axes[1].plot(z, density * len(after) * (edges[1] - edges[0]), "--", color=style.WRONG)
    axes[1].text(3.0, 4, "standard\nnormal", color=style.WRONG, ha="right", va="bottom")
    axes[0].text(before.mean(), heights.max(), " mean", color=style.POSITION, va="top")
    axes[1].text(0, heights.max(), " mean", color=style.POSITION, va="top")
    return fig


def axes(values, tokens, row, column):
    """values: (batch, seq, features), as one grid of rows, twice; a row framed on the left, a column on the right."""
    batch, seq, features = values.shape
    rows = values.reshape(batch * seq, features)
    limit = np.abs(rows).max()
    fig, both = style.figure(WIDTH, 4.0, columns=2, sharey=True)
    for ax, title in zip(both, ("layer norm", "batch norm"), strict=True):
        ax.imshow(rows, cmap=style.SIGNED, vmin=-limit, vmax=limit, aspect="auto")
        ax.axhline(seq - 0.5, color=style.PAPER, linewidth=3)
        for place, token in enumerate(sum(tokens, [])):
            if token == "<pad>":
                ax.add_patch(
                    Rectangle((-0.5, place - 0.5), features, 1, fill=False, hatch="////", edgecolor=style.PADDING)
                )
        ax.set(xticks=[], title=title)
        ax.tick_params(length=0)
        for spine in ax.spines.values():
            spine.set(visible=False)
    both[0].set_yticks(range(batch * seq), sum(tokens, []))
    for color, linewidth in ((style.PAPER, 5), (style.POSITION, 2.5)):  # the outer one sets it off from the map
        frame = {"fill": False, "edgecolor": color, "linewidth": linewidth, "clip_on": False}
        both[0].add_patch(Rectangle((-0.5, row - 0.5), features, 1, **frame))
        both[1].add_patch(Rectangle((column - 0.5, -0.5), 1, batch * seq, **frame))
    both[0].set_xlabel("features: one mean\nfor each token")
    both[1].set_xlabel("features: one mean\nfor each feature")
    return fig


def _band(ax, x, values, **look):
    """values: (seeds, points): a line through the means, and a band from the smallest to the largest."""
    (line,) = ax.plot(x, values.mean(axis=0), **look)
    ax.fill_between(x, values.min(axis=0), values.max(axis=0), color=line.get_color(), alpha=0.25, linewidth=0)


def company(batches, noise):
    """noise: (batches, seeds)."""
    fig, ax = style.figure(WIDTH, 2.7)
    _band(ax, batches, noise.T, color=style.WRONG, linestyle="--", marker="X")
    ax.plot(batches, np.zeros(len(batches)), color=style.NORM, marker="o")
    ax.text(3.2, noise[0].max() * 0.92, "batch norm", color=style.WRONG)
    ax.text(batches[0], 0.02, "layer norm", color=style.NORM)
    ax.set(xscale="log", xlabel="sentences in the batch", ylabel="change of the outputs", ylim=(-0.03, None))
    ax.set_xticks(batches, batches)
    ax.minorticks_off()
    ax.grid(axis="y")
    return fig


def _by_depth(ax, found):
    for name, values in found.items():
        color, line, marker = LOOKS[name]
        depths = np.arange(values.shape[1])
        _band(ax, depths, values, color=color, linestyle=line, marker=marker, markevery=4, label=name)
    ax.set(yscale="log", xlabel="sub-layers passed")
    ax.set_xticks(range(0, values.shape[1], 4))
    ax.minorticks_off()
    ax.grid(axis="y")


def gradients_by_depth(found):
    """found: wiring → (seeds, depths)."""
    fig, ax = style.figure(WIDTH, 3.6)
    _by_depth(ax, found)
    ax.set(ylabel="gradient, by its size at the output")
    ax.set_yticks([1e-8, 1e-6, 1e-4, 1e-2, 1, 1e2, 1e4], [f"$10^{{{power}}}$" for power in range(-8, 5, 2)])
    ax.legend(loc="lower right")
    return fig


def stream_by_depth(found):
    fig, ax = style.figure(WIDTH, 3.2)
    _by_depth(ax, found)
    ax.set(ylabel="size of an entry of the stream")
    ax.set_yticks([1, 3, 10, 30], ["1", "3", "10", "30"])
    ax.legend(loc="upper left")
    return fig


def weight_gradients(found):
    """found: wiring → (seeds, layers)."""
    fig, ax = style.figure(WIDTH, 2.9)
    for name, values in found.items():
        color, line, marker = LOOKS[name]
        layers = np.arange(1, values.shape[1] + 1)
        _band(ax, layers, values, color=color, linestyle=line, marker=marker, markevery=3, label=name)
    ax.set(xlabel="layer", ylabel="gradient norm of W₂", ylim=(0, None))
    ax.set_xticks([1, 6, 12, 18, 24])
    ax.grid(axis="y")
    ax.legend(loc="upper left", ncols=2)
    return fig
