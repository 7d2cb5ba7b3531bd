"""The drawings of chapter 2. Nothing is explained here: each function draws numbers that the page has made."""

import figure_style as style
import numpy as np
from matplotlib.patches import ConnectionPatch, Wedge

WIDTH = 4.5  # inches: fits a phone without scrolling


def _frame(ax):
    """Keep a thin frame, without ticks."""
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set(visible=True, color=style.MUTED, linewidth=0.6)


def permutation(rows, words, columns=24):
    """rows: title → two tensors (seq, d_model), for two orders of the same words; equal rows are joined by a line."""
    fig = style.plt.figure(figsize=(WIDTH, 4.2))
    place = {"left": 0.1, "right": 0.9, "bottom": 0.02, "top": 0.92, "wspace": 0.42, "hspace": 0.3}
    axes = fig.add_gridspec(len(rows), 2, **place).subplots()
    for pair, (title, outputs) in zip(axes, rows.items(), strict=True):
        limit = np.abs(outputs[0]).max()
        for ax, output, sentence in zip(pair, outputs, words, strict=True):
            ax.imshow(output[:, :columns], cmap=style.SIGNED, vmin=-limit, vmax=limit, aspect="auto")
            _frame(ax)
            ax.set_yticks(range(len(sentence)), sentence)
            ax.tick_params(length=0)
        pair[1].yaxis.tick_right()
        pair[0].set_title(title)
        apart = np.abs(outputs[0][:, None] - outputs[1][None]).max(-1)
        for left, right in np.argwhere(apart < 1e-4):
            fig.add_artist(
                ConnectionPatch(
                    (columns - 0.5, left), (-0.5, right), "data", "data", axesA=pair[0], axesB=pair[1],
                    color=style.POSITION if sentence[right] == "the" else style.X, linewidth=1.4,
                )
            )  # fmt: skip
        count = len(np.argwhere(apart.min(axis=1) < 1e-4))
        pair[1].set_title(f"{count} of {len(apart)} found again", loc="right")
    return fig


def table(rows, marked):
    """The whole table, positions downwards; `marked`: name → how many positions it has."""
    fig, ax = style.figure(WIDTH, 3.9)
    image = ax.imshow(rows, cmap=style.SIGNED, vmin=-1, vmax=1, aspect="auto")
    for name, count in marked.items():
        ax.axhline(count - 0.5, color=style.INK, linewidth=1.2)
        label = ax.text(rows.shape[1] - 8, count + 3, name, color=style.INK, ha="right", va="top", fontsize=9.5)
        label.set_bbox({"facecolor": style.PAPER, "edgecolor": "none", "pad": 1.5})
    ax.set(xlabel="column: two for each pair i = 0, 1, … 255", ylabel="position")
    ax.set_xticks([0, 127, 255, 383, 511])
    style.colorbar(image, "entry", ticks=[-1, 0, 1], shrink=0.6)
    return fig


def wavelengths(lengths, sequences):
    """One wavelength a pair, and the lengths of some sequences."""
    fig, ax = style.figure(WIDTH, 3.0)
    ax.plot(lengths, color=style.POSITION, linewidth=3)
    ax.set(yscale="log", xlabel="pair i", ylabel="positions for one turn")
    ax.set(xlim=(-3, len(lengths) + 5), ylim=(1.5, 150_000))
    ax.set_yticks([10, 100, 1000, 10_000, 100_000], ["10", "100", "1,000", "10,000", "100,000"])
    ax.minorticks_off()
    for name, length in sequences.items():
        ax.axhline(length, color=style.MUTED, linestyle="--", linewidth=1)
        slower = int((lengths > length).sum())
        at, side = (4, "left") if length > 1000 else (len(lengths), "right")  # away from the rising line
        ax.text(at, length * 1.12, f"{name}: {slower} pairs above", ha=side, va="bottom")
    for i, above in ((0, 0.5), (len(lengths) - 1, 1.25)):
        ax.plot(i, lengths[i], "o", color=style.POSITION, clip_on=False)
        words = f"{lengths[i]:.2f}" if i == 0 else f"{lengths[i]:,.0f}"
        ax.text(i + 4 if i == 0 else i - 2, lengths[i] * above, words, ha="left" if i == 0 else "right", va="center")
    return fig


def dot_products(curves):
    """curves: width → the dot product at each distance, as a fraction of that at distance 0."""
    fig, ax = style.figure(WIDTH, 2.9)
    looks = ((style.VALUE, ":"), (style.EMBEDDING, "--"), (style.POSITION, "-"))
    for (width, values), (color, line) in zip(curves.items(), looks, strict=True):
        ax.plot(values, line, color=color, label=f"d_model = {width}", linewidth=2.4 if line == "-" else 1.6)
    ax.axhline(0, color=style.MUTED, linewidth=0.8)
    ax.set(xlabel="distance k of two positions", ylabel="dot product ÷ (d_model/2)", ylim=(-0.12, 1.05))
    ax.set_xlim(0, len(values) - 1)
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1])
    ax.legend(loc="upper right")
    return fig


def rotation(frequencies, pairs, starts, offset):
    """Four pairs as points of a circle, each shifted by the same offset from two positions."""
    fig, axes = style.figure(WIDTH, 4.7, rows=2, columns=2)
    around = np.linspace(0, 2 * np.pi, 200)
    for ax, i in zip(axes.flat, pairs, strict=True):
        ax.plot(np.cos(around), np.sin(around), color=style.GRID, linewidth=1.2, zorder=0)
        for start, color, hatch in zip(starts, (style.POSITION, style.X), (None, "//"), strict=True):
            first, last = start * frequencies[i], (start + offset) * frequencies[i]
            wedge = {"facecolor": color, "edgecolor": color, "alpha": 0.3, "hatch": hatch, "linewidth": 0}
            ax.add_patch(Wedge((0, 0), 1, np.degrees(first), np.degrees(last), **wedge))
            for angle, face in ((first, style.PAPER), (last, color)):
                ax.plot([0, np.cos(angle)], [0, np.sin(angle)], color=color, linewidth=1)
                ax.plot(np.cos(angle), np.sin(angle), "o", color=color, markerfacecolor=face, markersize=6)
        ax.set_title(f"pair {i}: {np.degrees(offset * frequencies[i]):.1f}°")
        ax.set(aspect="equal", xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), xticks=[-1, 0, 1], yticks=[-1, 0, 1])
        ax.set(xlabel=f"column {2 * i + 1} (cosine)", ylabel=f"column {2 * i} (sine)")
    return fig


def recovered(hits, short):
    """hits: name → (seeds, positions), the share of right answers at each position from 1 on."""
    fig, ax = style.figure(WIDTH, 3.5)
    looks = {
        "relative": (style.KEY, "-."), "sinusoids": (style.POSITION, "-"),
        "learned": (style.EMBEDDING, "--"), "none": (style.MUTED, ":"),
    }  # fmt: skip
    for name, (color, line) in looks.items():
        run = hits[name].numpy()
        places = np.arange(1, run.shape[1] + 1)
        ax.fill_between(places, run.min(axis=0), run.max(axis=0), color=color, alpha=0.2, linewidth=0)
        ax.plot(places, run.mean(axis=0), line, color=color, label=name)
    ax.axvline(short - 0.5, color=style.INK, linewidth=0.9)
    ax.text(short - 0.8, 1.04, "trained", ha="right", va="bottom")
    ax.text(short - 0.2, 1.04, "never seen", ha="left", va="bottom")
    ax.set(xlabel="position", ylabel="share of right answers", ylim=(0, 1.02), xlim=(1, places[-1]))
    ax.legend(loc="center left", bbox_to_anchor=(0.02, 0.55), labelspacing=0.3)
    return fig
