"""The drawings of chapter 6. Nothing is explained here: each function draws tensors that the page has made."""

import figure_style as style
import numpy as np
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

WIDTH = 4.5  # inches: fits a phone without scrolling


def _frame(ax):
    """Keep a thin frame, without ticks."""
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set(visible=True, color=style.MUTED, linewidth=0.6)


# --- the whole flow ---------------------------------------------------------------------------------------------------


def flow(shapes):
    """From words and from pixels through the layers to what comes after; `shapes` names the tensor on each arrow."""
    fig = style.plt.figure(figsize=(WIDTH, 7.6))
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, 9), ylim=(0, 15.2))
    ax.axis("off")
    left, right, middle = 2.2, 6.8, 4.5

    def box(x, y, text, color=style.INK, width=3.6, height=0.62):
        corner = (x - width / 2, y - height / 2)
        ax.add_patch(
            FancyBboxPatch(corner, width, height, "round,pad=0,rounding_size=0.12", fill=False, edgecolor=color, lw=1.4)
        )
        ax.text(x, y - 0.02, text, ha="center", va="center", color=color)

    def arrow(start, end, shape="", side=0.12, color=style.X, **options):
        ax.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=9, color=color, lw=1.2, **options))
        if shape:
            place = ((start[0] + end[0]) / 2 + side, (start[1] + end[1]) / 2)
            ax.text(*place, shape, color=style.MUTED, fontsize=9.5, va="center", ha="left" if side > 0 else "right")

    ax.text(left, 14.85, "words", ha="center", va="center")
    ax.text(right, 14.85, "photograph", ha="center", va="center")
    arrow((left, 14.6), (left, 14.02), shapes["ids"])
    arrow((right, 14.6), (right, 14.02), shapes["image"])
    box(left, 13.7, "embedding × √d", style.EMBEDDING)
    box(right, 13.7, "patches", style.EMBEDDING)
    arrow((left, 13.38), (left, 11.42), shapes["words"])
    arrow((right, 13.38), (right, 12.72), shapes["patches"])
    box(right, 12.4, "projection, class token", style.EMBEDDING)
    arrow((right, 12.08), (right, 11.42), shapes["tokens"])
    box(left, 11.1, "+ positions, dropout", style.POSITION)
    box(right, 11.1, "+ positions, dropout", style.POSITION)
    arrow((left, 10.78), (middle - 0.35, 9.6), shapes["words"], side=-0.3)
    arrow((right, 10.78), (middle + 0.35, 9.6), shapes["tokens"], side=0.3)

    ax.add_patch(Rectangle((1.1, 5.0), 6.8, 4.55, fill=False, edgecolor=style.MUTED, lw=1, ls="-"))
    ax.text(1.3, 9.22, "layer 1", color=style.MUTED, va="center")
    for y, name, color in ((8.35, "multi-head attention", style.ATTENTION), (6.35, "feed-forward", style.FEED_FORWARD)):
        box(middle, y, name, color, width=3.9)
        box(middle, y - 0.95, "Add & Norm", style.NORM, width=3.9)
        arrow((middle, y - 0.31), (middle, y - 0.64))
        # the residual goes round the sub-layer
        ax.plot([middle, 1.75, 1.75], [y + 0.55, y + 0.55, y - 0.95], color=style.X, lw=1.2)
        arrow((1.75, y - 0.95), (middle - 1.95, y - 0.95))
    arrow((middle, 9.55), (middle, 8.66))
    arrow((middle, 7.08), (middle, 6.66))
    ax.text(7.75, 9.02, shapes["mask"], ha="right", va="center", color=style.MUTED, fontsize=9.5)
    ax.text(7.75, 8.68, "mask", ha="right", va="center", color=style.PADDING)
    arrow((7.75, 8.35), (middle + 1.95, 8.35), color=style.PADDING)

    arrow((middle, 5.08), (middle, 4.42), shapes["stream"])
    box(middle, 4.1, "layers 2 to 6, each the same way", style.MUTED, width=6.8)
    arrow((middle, 3.78), (middle, 3.12), shapes["stream"])
    ax.text(middle, 2.85, "the encoder's output", ha="center", va="center", color=style.X)
    arrow((middle - 0.9, 2.6), (left, 1.75), shapes["words"], side=-0.35)
    arrow((middle + 0.9, 2.6), (right, 1.75), shapes["tokens"], side=0.35)
    box(left, 1.4, "masked mean")
    box(right, 1.4, "class token’s row")
    arrow((left, 1.08), (left, 0.35), shapes["sentence vectors"])
    arrow((right, 1.08), (right, 0.35), shapes["image vector"])
    return fig


# --- layers against each other ----------------------------------------------------------------------------------------


def influence(panels):
    """panels: title → (examples, examples): how much example j changes the output of example i."""
    fig, axes = style.figure(WIDTH, 2.5, columns=len(panels), layout="constrained")
    largest = max(float(values.max()) for values in panels.values())
    for ax, (title, values) in zip(axes, panels.items(), strict=True):
        ax.imshow(values, cmap=style.MAGNITUDE, vmin=0, vmax=largest)
        for row in range(len(values)):
            for column in range(len(values)):
                value = float(values[row, column])
                color = style.INK if value < 0.4 * largest else style.PAPER
                ax.text(column, row, f"{value:.2g}", ha="center", va="center", color=color, fontsize=9.5)
        _frame(ax)
        ax.set_xticks(range(len(values)), range(len(values)))
        ax.set_yticks(range(len(values)), range(len(values)))
        ax.tick_params(length=0)
        ax.set_title(title)
        ax.set_xlabel("changed example")
    axes[0].set_ylabel("output of example")
    return fig


def stream_sizes(runs):
    """runs: name → (seeds, layers + 1): the size of the stream's entries before layer 1 and after each."""
    fig, ax = style.figure(WIDTH, 2.9)
    looks = {"pre-norm": (style.X, "-", "o"), "post-norm": (style.POSITION, "--", "s")}
    for name, sizes in runs.items():
        color, line, marker = looks[name]
        places = np.arange(sizes.shape[1])
        ax.fill_between(places, sizes.min(axis=0), sizes.max(axis=0), color=color, alpha=0.3, linewidth=0)
        ax.plot(places, sizes.mean(axis=0), line, color=color, marker=marker)
        ax.annotate(
            name, (places[-1], sizes.mean(axis=0)[-1]), (-4, 8), textcoords="offset points", color=color, ha="right"
        )
    ax.set(xlabel="after layer (0: before the first)", ylabel="root mean square of an entry", ylim=(0, None))
    ax.grid(axis="y")
    return fig


def parity(differences):
    """differences: label → list of one maximal difference a seed; drawn on a logarithmic axis."""
    fig, ax = style.figure(WIDTH, 2.6)
    for row, (label, values) in enumerate(differences.items()):
        color, marker = (style.X, "o") if "64" in label else (style.POSITION, "s")
        offsets = row + np.linspace(-0.18, 0.18, len(values))
        ax.plot(values, offsets, marker, color=color, markersize=4.5, markerfacecolor="none")
    ax.set_yticks(range(len(differences)), differences)
    ax.set(
        xscale="log", xlim=(1e-17, 1), ylim=(len(differences) - 0.5, -0.5), xlabel="largest difference in the output"
    )
    for dtype, epsilon in (("float64", 2.2e-16), ("float32", 1.2e-7)):
        ax.axvline(epsilon, color=style.MUTED, linewidth=1, linestyle=":")
        ax.text(epsilon * 0.7, len(differences) - 0.6, f"ε of {dtype}", rotation=90, ha="right", va="bottom",
                color=style.MUTED, fontsize=9.5)  # fmt: skip
    ax.grid(axis="x")
    return fig


# --- what it costs ----------------------------------------------------------------------------------------------------


def parameters(parts, embedding):
    """parts: name → millions for each layer; embedding: millions of the embedding beside them."""
    fig, ax = style.figure(WIDTH, 2.9)
    colors = (style.ATTENTION, style.FEED_FORWARD, style.NORM)
    hatches = ("", "", "//")
    num_layers = len(next(iter(parts.values())))
    bottom = np.zeros(num_layers)
    for (name, values), color, hatch in zip(parts.items(), colors, hatches, strict=True):
        ax.bar(range(1, num_layers + 1), values, 0.7, bottom, color=color, label=name, hatch=hatch)
        if values[0] > 0.1:
            for place, value in enumerate(values, start=1):
                ax.text(place, bottom[0] + value / 2, f"{value:.2f}", ha="center", va="center", color=style.PAPER,
                        fontsize=9.5)  # fmt: skip
        bottom = bottom + values
    ax.bar(num_layers + 1.4, embedding, 0.7, color=style.EMBEDDING)
    ax.text(num_layers + 1.4, embedding + 0.3, f"{embedding:.1f}", ha="center", color=style.EMBEDDING)
    ax.set_xticks([*range(1, num_layers + 1), num_layers + 1.4], [*range(1, num_layers + 1), "embedding"])
    ax.set(xlabel="layer", ylabel="million parameters")
    ax.legend(loc="upper left")
    return fig


# --- through six layers -----------------------------------------------------------------------------------------------


def paths(ways, tokens):
    """ways: (layers + 1, seq, 2): each word's way, with a ring at the start and a large dot at the end."""
    fig, ax = style.figure(WIDTH, 3.7)
    colors = [style.X, style.POSITION, style.EMBEDDING, style.VALUE, style.KEY, style.QUERY, style.FEED_FORWARD]
    lines = ["-", "--", "-.", ":", "-", "--", "-."]
    for place, (token, color, line) in enumerate(zip(tokens, colors, lines, strict=True)):
        way = ways[:, place]
        ax.plot(way[:, 0], way[:, 1], line, color=color, linewidth=1.3)
        ax.plot(way[1:-1, 0], way[1:-1, 1], ".", color=color, markersize=4)
        ax.plot(*way[0], "o", color=color, markerfacecolor="none", markersize=7)
        ax.plot(*way[-1], "o", color=color, markersize=7)
        ax.annotate(token, way[-1], (7, 3), textcoords="offset points", color=color)
    ax.margins(x=0.14, y=0.1)
    ax.set(xlabel="first direction", ylabel="second direction")
    ax.axhline(0, color=style.GRID, linewidth=0.8, zorder=0)
    ax.axvline(0, color=style.GRID, linewidth=0.8, zorder=0)
    return fig


def updates(trained, fresh):
    """Each (2, words or seeds, layers): what attention and what feed-forward add, as a share of the stream."""
    fig, ax = style.figure(WIDTH, 3.2)
    layers = np.arange(1, trained.shape[2] + 1)
    looks = (("attention", style.ATTENTION, "o"), ("feed-forward", style.FEED_FORWARD, "s"))
    for (name, color, marker), words, seeds in zip(looks, trained, fresh, strict=True):
        low, high = np.quantile(words, [0.1, 0.9], axis=0)
        ax.fill_between(layers, low, high, color=color, alpha=0.15, linewidth=0)
        ax.plot(layers, words.mean(axis=0), "-", color=color, marker=marker, label=name)
        ax.fill_between(layers, seeds.min(axis=0), seeds.max(axis=0), color=color, alpha=0.3, linewidth=0)
        ax.plot(layers, seeds.mean(axis=0), ":", color=color, linewidth=1.2, label=f"{name}, untrained")
    ax.set(xlabel="layer", ylabel="added / what was there", ylim=(0, None))
    ax.set_xticks(layers)
    ax.grid(axis="y")
    ax.legend(ncols=2, loc="upper center")
    return fig


def likeness(cosines):
    """(layers + 1, layers + 1): the mean cosine of a word's vectors after two layers."""
    fig, ax = style.figure(style.NARROW, 3.0)
    image = ax.imshow(cosines, cmap=style.MAGNITUDE, vmin=0, vmax=1)
    for row in range(len(cosines)):
        for column in range(len(cosines)):
            value = float(cosines[row, column])
            color = style.PAPER if value > 0.4 else style.INK
            ax.text(column, row, f"{value:.2f}"[-3:] if value < 1 else "1", ha="center", va="center", color=color,
                    fontsize=9.5)  # fmt: skip
    ax.set_xticks(range(len(cosines)))
    ax.set_yticks(range(len(cosines)))
    ax.tick_params(length=0)
    ax.set(xlabel="after layer", ylabel="after layer")
    for spine in ax.spines.values():
        spine.set_visible(False)
    style.colorbar(image, "cosine")
    return fig


def probes(curves):
    """curves: name → `layers`, one run of shares for each model, and `untrained`, one run."""
    fig, ax = style.figure(WIDTH, 3.2)
    looks = ((style.KEY, "s"), (style.FEED_FORWARD, "^"), (style.QUERY, "D"))
    for (name, probe), (color, marker) in zip(curves.items(), looks, strict=True):
        for number, run in enumerate(probe["layers"]):
            ax.plot(range(len(run)), run, "-", color=color, marker=marker, label=None if number else name)
        ax.plot(range(len(probe["untrained"])), probe["untrained"], ":", color=color, linewidth=1.4)
    ax.set(xlabel="read after layer", ylabel="share read right", ylim=(0, 1.03))
    ax.grid(axis="y")
    ax.legend(loc="lower right")
    return fig


# --- what the output is for -------------------------------------------------------------------------------------------


def pooling(padding, masked, plain):
    """Two times (seeds, lengths): how far the sentence's vector has moved from the one without padding."""
    fig, ax = style.figure(WIDTH, 2.9)
    for values, color, line, marker, name in (
        (plain, style.WRONG, "--", "X", "mean of all positions"),
        (masked, style.X, "-", "o", "masked mean"),
    ):
        ax.fill_between(padding, values.min(axis=0), values.max(axis=0), color=color, alpha=0.25, linewidth=0)
        ax.plot(padding, values.mean(axis=0), line, color=color, marker=marker, label=name)
    ax.set(xlabel="paddings behind the five words", ylabel="change of the vector / its length")
    ax.set_xticks(padding)
    ax.grid(axis="y")
    ax.legend()
    return fig


def depth(layers, perplexity, reached, back):
    """The paper's perplexities over the number of layers.

    reached: number of layers → one share of right answers a seed; back: the share for always saying "where I started".
    """
    fig, (left, right) = style.figure(WIDTH, 2.7, columns=2, layout="constrained")
    left.plot(layers, perplexity, "-", color=style.X, marker="o")
    for place, value in zip(layers, perplexity, strict=True):
        left.annotate(f"{value:.2f}", (place, value), (3, 6), textcoords="offset points", fontsize=9.5)
    left.set(title="the paper, table 3", xlabel="layers", ylabel="perplexity", ylim=(4.5, 6.6), xlim=(1.4, 9.8))
    left.set_xticks(layers)
    for number, runs in reached.items():
        places = number + np.linspace(-0.12, 0.12, len(runs))
        right.plot(places, runs, "o", color=style.POSITION, markerfacecolor="none")
    right.axhline(back, color=style.MUTED, linewidth=1, linestyle=":")
    right.plot(list(reached), [np.mean(runs) for runs in reached.values()], "-", color=style.POSITION)
    right.set(title="four looks in a row", xlabel="layers", ylabel="share right", ylim=(0, 1.05), xlim=(0.6, 3.4))
    right.set_xticks(list(reached))
    for ax in (left, right):
        ax.grid(axis="y")
    return fig
