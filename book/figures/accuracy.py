"""The drawings of the page on the grader's accuracy, from the figures in accuracy.json."""

import figure_style as style
import numpy as np


def confusion(exercises, titles):
    """One square for each chapter: what was wrong, down, against what was said, across; exercises framed.

    Args:
        exercises: chapter → exercise → misconception → what it was called → at how many seeds.
        titles: chapter → what stands above its square.
    """
    fig, axes = style.figure(width=style.COLUMN, height=4.9, rows=2, columns=3)
    for ax, (chapter, catalogue) in zip(axes.flat, exercises.items(), strict=True):
        names = [(exercise, name) for exercise, said in catalogue.items() for name in said]
        place = {name: number for number, name in enumerate(names)}
        shares = np.zeros((len(names), len(names) + 1))
        for (exercise, name), row in place.items():
            said = catalogue[exercise][name]
            for called, times in said.items():
                shares[row, place.get((exercise, called), len(names))] += times / sum(said.values())
        start = 0
        for said in catalogue.values():
            ax.add_patch(
                style.plt.Rectangle(
                    (start - 0.5, start - 0.5), len(said), len(said), fill=False, edgecolor=style.MUTED, lw=0.6
                )
            )
            start += len(said)
        rows, columns = np.nonzero(shares)
        right = rows == columns
        ax.plot(columns[right], rows[right], "s", color=style.X, markersize=1.9)
        ax.plot(columns[~right], rows[~right], "x", color=style.WRONG, markersize=4.5, mew=1.4)
        ax.set(xlim=(-1, len(names) + 0.5), ylim=(len(names) - 0.5, -1), xticks=[], yticks=[], aspect="equal")
        ax.set_title(f"{titles[chapter]}: {len(names)}", fontsize=10)
        for spine in ax.spines.values():
            spine.set_visible(False)
    axes[1, 0].set(xlabel="what was said →", ylabel="← what was wrong")
    return fig


def margins(rows):
    """For each exercise, how far right answers and wrong ones lie from the tolerance, on one logarithmic line.

    Args:
        rows: (title, the largest error of a right answer, the smallest of a wrong one), in tolerances; None for either
            where no number was compared.
    """
    fig, ax = style.figure(width=style.COLUMN, height=0.21 * len(rows) + 0.9)
    floor = 1e-5
    for number, (_, right, wrong) in enumerate(rows):
        if right is not None:
            ax.plot([max(right, floor)], [number], "o", color=style.X, markersize=5)
        if wrong is not None:
            ax.plot([wrong], [number], "X", color=style.WRONG, markersize=6)
    ax.axvline(1, color=style.INK, lw=1)
    ax.axvspan(0.1, 10, color=style.GRID, alpha=0.45, lw=0)
    ax.set(xscale="log", xlim=(floor / 2, 1e6), ylim=(len(rows) - 0.4, -0.6), xlabel="error, in tolerances")
    ax.set_yticks(range(len(rows)), [title for title, _, _ in rows], fontsize=9)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y")
    ax.spines["left"].set_visible(False)
    return fig
