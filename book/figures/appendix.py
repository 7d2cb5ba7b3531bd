"""The drawings of the appendices. Nothing is explained here: each function draws what the page has computed."""

import figure_style as style
import numpy as np

WIDTH = 4.5  # inches: fits a phone without scrolling


def entropy_by_heads(heads, runs, limit):
    """runs: (heads, seeds, 2): divided by the root of d_k, and of d_model; limit: the entropy of equal weights."""
    fig, ax = style.figure(WIDTH, 3.0)
    looks = ((style.ATTENTION, "-", "o"), (style.WRONG, "--", "X"))
    for run, (color, line, marker) in zip(runs.permute(2, 0, 1).numpy(), looks, strict=True):
        ax.fill_between(heads, run.min(axis=1), run.max(axis=1), color=color, alpha=0.3, linewidth=0)
        ax.plot(heads, run.mean(axis=1), line, color=color, marker=marker)
    ax.axhline(limit, color=style.MUTED, linestyle=":", linewidth=1.2)
    ax.text(1, limit + 0.015, "equal weights: ln 196", color=style.MUTED, va="bottom")
    ax.text(32, 4.83, "divided by √d_k", color=style.ATTENTION, ha="right", va="bottom")
    ax.text(5, 5.02, "divided by √d_model", color=style.WRONG, ha="left", va="bottom")
    ax.set(xscale="log", xlabel="heads", ylabel="entropy of a row", ylim=(4.7, 5.37))
    ax.set_xticks(heads, heads)
    ax.minorticks_off()
    ax.grid(axis="y")
    return fig


def epsilon_places(sigmas, inside, outside):
    """The standard deviation that comes out, against the one that goes in."""
    fig, ax = style.figure(WIDTH, 2.9)
    sigmas, inside, outside = sigmas.numpy(), inside.numpy(), outside.numpy()
    ax.plot(sigmas, inside, color=style.NORM)
    ax.plot(sigmas, outside, "--", color=style.WRONG)
    ax.axvline(1e-3, color=style.MUTED, linestyle=":", linewidth=1.2)
    ax.text(7e-3, 0.55, "ε inside the root", color=style.NORM)
    ax.text(1.3e-5, 0.95, "ε outside", color=style.WRONG)
    ax.text(1.1e-3, 0.12, "here a factor 3.28", color=style.MUTED)
    ax.set(xscale="log", xlabel="standard deviation σ before", ylabel="after", ylim=(0, 1.08))
    ax.grid(axis="y")
    return fig


def labels(wrong, tokens):
    """A diagonal twice: with the (tick, label) pairs of the note, and with one label a token."""
    fig, axes = style.figure(style.COLUMN, 3.4, columns=2)
    for ax, title in zip(axes, ("as in the note", "ticks and labels together"), strict=True):
        ax.imshow(np.eye(len(tokens)), cmap=style.MAGNITUDE, vmin=0, vmax=1.2)
        ax.set_title(title)
        ax.set_yticks(range(len(tokens)), tokens)
        ax.tick_params(length=0)
        for spine in ax.spines.values():
            spine.set(visible=True, color=style.MUTED, linewidth=0.6)
    inside = [(tick, label) for tick, label in wrong if 0 <= tick < len(tokens)]
    axes[0].set_xticks(*zip(*inside, strict=True), rotation=90, color=style.WRONG)
    axes[1].set_xticks(range(len(tokens)), tokens, rotation=90)
    for ax in axes:
        ax.set_xlabel("key")
    axes[0].set_ylabel("query")
    return fig


def probe(accuracies, chance):
    """accuracies: (seeds, layers, 2): of a word's own class, and of its left neighbour's."""
    fig, ax = style.figure(WIDTH, 3.0)
    looks = ((style.EMBEDDING, "-", "o", "its own class"), (style.ATTENTION, "--", "s", "its left neighbour’s"))
    layers = range(accuracies.shape[1])
    for runs, (color, line, marker, label) in zip(accuracies.permute(2, 0, 1).numpy(), looks, strict=True):
        ax.plot(layers, runs.T, line, color=color, linewidth=0.6, alpha=0.6)
        ax.plot(layers, runs.mean(axis=0), line, color=color, marker=marker, linewidth=2.2, label=label)
    ax.axhline(chance, color=style.MUTED, linestyle=":", linewidth=1.2)
    ax.set(xlabel="layer", ylabel="accuracy of the probe", ylim=(0.2, 1.03))
    ax.set_xticks(list(layers))
    ax.legend(loc="center right")
    ax.grid(axis="y")
    return fig


def polarity(may, turned, as_is):
    """A causal mask, and the weights of a module that gets it turned round, and as it is."""
    fig, axes = style.figure(WIDTH, 2.1, columns=3)
    panels = ((may.float(), "mask"), (turned, "turned round"), (as_is, "as it is"))
    for ax, (values, title) in zip(axes, panels, strict=True):
        values = values.numpy()
        ax.imshow(np.nan_to_num(values), cmap=style.MAGNITUDE, vmin=0, vmax=1.1)
        for row in np.flatnonzero(np.isnan(values).any(axis=1)):
            ax.plot(range(len(values)), [row] * len(values), "x", color=style.WRONG)
        ax.set_title(title)
        ax.set(xticks=[], yticks=[], xlabel="key")
        for spine in ax.spines.values():
            spine.set(visible=True, color=style.MUTED, linewidth=0.6)
    axes[0].set_ylabel("query")
    return fig


def layouts(interleaved, halves):
    """Two tables of sinusoids, side by side."""
    fig, axes = style.figure(WIDTH, 2.5, columns=2)
    for ax, table, title in zip(axes, (interleaved, halves), ("interleaved", "in halves"), strict=True):
        ax.imshow(table.numpy(), cmap=style.SIGNED, vmin=-1, vmax=1, aspect="auto")
        ax.set_title(title)
        ax.set_xticks([0, 31, 63])
        ax.set_xlabel("column")
        ax.tick_params(length=0)
    axes[0].set_ylabel("position")
    axes[0].set_yticks([0, 20, 40])
    axes[1].set_yticks([])
    return fig
