"""The drawings of chapter 5. Nothing is explained here: each function draws tensors that the page has made."""

import figure_style as style
import numpy as np
from matplotlib.patches import Rectangle

WIDTH = 4.5  # inches: fits a phone without scrolling


def _frame(ax):
    """Keep a thin frame, without ticks."""
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set(visible=True, color=style.MUTED, linewidth=0.6)


def through(tokens, x, before, after, output, columns):
    """A sentence on its way: x, the hidden entries before and after the activation, the output; first columns only."""
    fig = style.plt.figure(figsize=(WIDTH, 5.6), layout="constrained")
    axes = fig.subplots(4, 1)
    panels = (
        (x, columns, f"x: 7 × {x.shape[1]}"),
        (before, 4 * columns, f"x W₁ + b₁: 7 × {before.shape[1]}"),
        (after, 4 * columns, f"max(0, x W₁ + b₁): 7 × {after.shape[1]}"),
        (output, columns, f"FFN(x): 7 × {output.shape[1]}"),
    )
    for ax, (values, shown, title) in zip(axes, panels, strict=True):
        part = np.asarray(values)[:, :shown]
        ax.imshow(part, cmap=style.SIGNED, vmin=-np.abs(part).max(), vmax=np.abs(part).max(), aspect="auto")
        _frame(ax)
        ax.set_yticks(range(len(tokens)), tokens, fontsize=8.5)
        ax.tick_params(length=0)
        ax.set_title(title)
        ax.set_title(f"first {shown} columns", loc="right", fontsize=9.5, color=style.MUTED)
    return fig


def jacobians(matrices, width):
    """titles → |d output / d input|, positions · entries on both axes; the blocks of the positions are outlined."""
    fig, axes = style.figure(WIDTH, 2.75, columns=len(matrices))
    for ax, (title, matrix) in zip(axes, matrices.items(), strict=True):
        size = len(matrix)
        ax.imshow(matrix, cmap=style.MAGNITUDE, vmin=0, vmax=float(matrix.max()))
        _frame(ax)
        edges = np.arange(0, size + 1, width) - 0.5
        ax.hlines(edges, -0.5, size - 0.5, color=style.MUTED, linewidth=0.5)
        ax.vlines(edges, -0.5, size - 0.5, color=style.MUTED, linewidth=0.5)
        middles = edges[:-1] + width / 2
        ax.set_xticks(middles, range(len(middles)))
        ax.set_yticks(middles, range(len(middles)))
        ax.tick_params(length=0)
        ax.set(title=title, xlabel="input position")
    axes[0].set_ylabel("output position")
    return fig


def folds(points, target, units, fitted, plane, pattern, creases):
    """Left: a curve as the sum of bent lines. Right: the pieces into which units cut a plane.

    units: (hidden, points), their shares of the output; pattern: (n, n), one number a piece; creases: (n, n, hidden),
    the units before the activation on the plane.
    """
    fig = style.plt.figure(figsize=(WIDTH, 6.6), layout="constrained")
    upper, middle, lower = fig.subplots(3, 1, height_ratios=[1, 1, 1.9])
    for unit in units:
        upper.plot(points, unit, color=style.FEED_FORWARD, linewidth=1.2)
    upper.set(title="each unit: flat, then straight", ylabel="its share")
    middle.plot(points, target, color=style.MUTED, linewidth=4, alpha=0.5)
    middle.plot(points, fitted, color=style.FEED_FORWARD)
    middle.text(points[-1], target[-1] + 0.35, "target", color=style.MUTED, ha="right")
    middle.set(title="their sum", xlabel="x", ylabel="FFN(x)", ylim=(-1.6, 1.6))
    for ax in (upper, middle):
        ax.grid(axis="y")

    extent = (plane[0], plane[-1], plane[0], plane[-1])
    lower.imshow(
        pattern, cmap=style.MAGNITUDE, origin="lower", extent=extent, aspect="equal", vmin=0, vmax=pattern.max() * 1.6
    )
    for unit in range(creases.shape[-1]):
        lower.contour(plane, plane, creases[..., unit], levels=[0], colors=[style.POSITION], linewidths=1.6)
    lower.set(title="a plane, cut by the creases of six units", xlabel="first entry of x", ylabel="second entry of x")
    return fig


def activations(x, curves, slopes, error):
    """curves and slopes: name → values; error: the two GELUs' difference."""
    fig, axes = style.figure(WIDTH, 6.4, rows=3, layout="constrained", sharex=True)
    looks = {"ReLU": (style.X, "-"), "GELU": (style.POSITION, "-")}
    places = {"ReLU": (1.15, 2.0, "right"), "GELU": (1.1, 0.42, "left")}
    for name, (color, line) in looks.items():
        axes[0].plot(x, curves[name], line, color=color)
        axes[1].plot(x, slopes[name], line, color=color)
        left, height, side = places[name]
        axes[0].text(left, height, name, color=color, ha=side)
    axes[0].set(title="the activation", ylim=(-0.4, 3.1))
    axes[1].set(title="its slope", ylim=(-0.3, 1.35))
    axes[1].plot([0], [0], "o", color=style.X)
    axes[1].plot([0], [0.5], "o", color=style.POSITION)
    axes[1].text(0.12, 0.0, "0 at 0", color=style.X, va="center")
    axes[1].text(-0.12, 0.55, "½ at 0", color=style.POSITION, va="center", ha="right")
    axes[2].plot(x, error * 1e4, color=style.POSITION)
    axes[2].set(title="tanh form minus exact GELU, times 10,000", xlabel="x")
    for ax in axes:
        ax.grid()
    return fig


def sparsity(words, fresh, trained, shares, fresh_runs):
    """Above: which units are active for each word, untrained and trained. Below: the share, layer by layer."""
    fig = style.plt.figure(figsize=(WIDTH, 6.2), layout="constrained")
    above, middle, below = fig.subplots(3, 1, height_ratios=[1, 1, 1.25])
    for ax, hidden, title in ((above, fresh, "before training"), (middle, trained, "after training")):
        ax.imshow(np.asarray(hidden > 0, dtype=float), cmap=style.MAGNITUDE, vmin=0, vmax=1.25, aspect="auto")
        _frame(ax)
        ax.set_yticks(range(len(words)), words, fontsize=8.5)
        ax.tick_params(length=0)
        ax.set_title(title)
        ax.set_title(f"{float((hidden > 0).float().mean()):.0%} active", loc="right", fontsize=9.5)
    middle.set_xlabel(f"units 0 to {fresh.shape[1] - 1} of layer 3")

    layers = np.arange(1, len(shares) + 1)
    runs = np.asarray(fresh_runs)
    below.fill_between(layers, runs.min(0), runs.max(0), color=style.MUTED, alpha=0.3, linewidth=0)
    below.plot(layers, runs.mean(0), ":", color=style.MUTED, marker="^")
    below.text(layers[-1], 0.58, "before training", color=style.MUTED, ha="right")
    below.plot(layers, shares, color=style.FEED_FORWARD, marker="o")
    below.text(layers[-1], float(shares[-1]) - 0.09, "after", color=style.FEED_FORWARD, ha="right")
    below.set(xlabel="layer", ylabel="share of active units", ylim=(0, 0.68), xticks=layers)
    below.grid(axis="y")
    return fig


def parts(parameters, work):
    """parameters: part → count; work: length → (part → multiply-adds). Bars are shares of a whole layer."""
    lengths = list(work)
    fig, ax = style.figure(WIDTH, 3.9)
    looks = {
        "projections": (style.ATTENTION, None),
        "products of length²": (style.ATTENTION, "////"),
        "feed-forward": (style.FEED_FORWARD, None),
    }
    rows = [("parameters", parameters)] + [(f"{n:,} tokens", work[n]) for n in lengths]
    places = [0] + [1.7 + i for i in range(len(lengths))]
    for place, (_, counts) in zip(places, rows, strict=True):
        left, whole = 0.0, sum(counts.values())
        for part, (color, hatch) in looks.items():
            share = counts.get(part, 0) / whole
            face = "none" if hatch else color
            ax.barh(
                place,
                share,
                left=left,
                color=face,
                edgecolor=color,
                hatch=hatch,
                height=0.72,
                label=part if not place else None,
            )
            if share > 0.09:
                ink = style.INK if hatch else style.PAPER
                text = ax.text(left + share / 2, place, f"{share:.0%}", ha="center", va="center", color=ink)
                if hatch:
                    text.set_bbox({"facecolor": style.PAPER, "edgecolor": "none", "pad": 1.5})
            left += share
    ax.set_yticks(places, [name for name, _ in rows])
    ax.text(0, 0.85, "multiply-adds, for a sentence of …", color=style.INK, va="center")
    ax.invert_yaxis()
    ax.tick_params(length=0)
    ax.set(xlim=(0, 1), xticks=[])
    ax.spines[["left", "bottom"]].set_visible(False)
    fig.legend(*_legend(ax, looks), loc="outside lower left", ncols=3, columnspacing=1, handlelength=1.2)
    return fig


def _legend(ax, looks):
    handles = [
        Rectangle((0, 0), 1, 1, facecolor="none" if hatch else color, edgecolor=color, hatch=hatch)
        for color, hatch in looks.values()
    ]
    return handles, list(looks)


def crossover(lengths, lines, measured, marks):
    """lines: part → multiply-adds; measured: lengths and counts of both sub-layers; marks: length → height."""
    fig, ax = style.figure(WIDTH, 3.9)
    looks = {
        "feed-forward": (style.FEED_FORWARD, "-"),
        "attention, all": (style.ATTENTION, "-"),
        "its projections": (style.ATTENTION, ":"),
        "its products of length²": (style.ATTENTION, "--"),
    }
    for name, (color, line) in looks.items():
        ax.plot(lengths, lines[name], line, color=color, label=name)
    for name, (ns, counts) in measured.items():
        ax.plot(ns, counts, "o", color=looks[name][0], markersize=4)
    for number, (length, height) in enumerate(marks.items(), start=1):
        ax.plot([length], [height], "o", color=style.INK, markerfacecolor=style.PAPER, markersize=13, markeredgewidth=1)
        ax.text(length, height, str(number), ha="center", va="center_baseline", fontsize=9)
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="length of the sentence",
        ylabel="multiply-adds of one layer",
        ylim=(2e6, 4e11),
    )
    ticks = [8, 32, 128, 512, 2048, 8192]
    ax.set_xticks(ticks, [f"{n:,}" for n in ticks])
    ax.minorticks_off()
    ax.grid()
    ax.legend(loc="upper left")
    return fig
