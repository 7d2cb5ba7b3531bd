r"""One look for every figure of the book.

A page imports this module once, draws with matplotlib, and hands the figure over with a name and a description:

    ```{code-cell} ipython3
    :tags: [remove-input]
    import figure_style as style

    fig, ax = style.figure(height=2.6)
    ax.plot(positions, norms, color=style.POSITION)
    style.glue_figure("norms", fig, "A line that rises from 0 to 22 and then stays flat.")
    ```

    ```{glue:figure} norms
    :name: fig-norms

    The caption. Elsewhere, {numref}`fig-norms` makes a link to the figure with its number.
    ```

The figure becomes inline SVG. Its colours are variables of the page, so it changes with the light and the dark theme;
its words are paths, so it looks the same on every machine; and the same figure gives the same bytes. Inside a string
with mathematics write $\to$ and $\sqrt{d}$ rather than → and √: there matplotlib has no second font to turn to.
`number` does for numbers in prose what `glue_figure` does for figures.
"""

import hashlib
import html
import io
import re
from pathlib import Path

import matplotlib

matplotlib.use("agg")  # no window and no inline backend: a figure appears where `show` puts it, and only there

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import font_manager
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.image import AxesImage

# ---------------------------------------------------------------------------------------------------------------------
# Colours. Each role has one on light paper and one on dark: a figure is drawn with the first, and the page swaps them.

LIGHT = {
    "ink": "#1d2433",           # words, axes
    "muted": "#5c6475",         # second-rank words, ticks
    "grid": "#d9dce3",          # grid lines, faint frames
    "paper": "#ffffff",         # the page itself
    "x": "#1b2f8f",             # the residual stream
    "embedding": "#7d40c8",     # what the embedding makes
    "position": "#d07803",      # what the positional encoding adds
    "query": "#86013c",
    "key": "#057c5d",
    "value": "#349bcf",
    "attention": "#7b226d",     # the attention sub-layer
    "feed_forward": "#866617",  # the feed-forward sub-layer
    "norm": "#48a161",          # Add & Norm
    "padding": "#858a91",       # always hatched or crossed as well
    "wrong": "#d42325",         # a mistake; always dashed or marked with a cross as well
}
DARK = {
    "ink": "#e6e9ef",
    "muted": "#a3abba",
    "grid": "#333b48",
    "paper": "#11161d",
    "x": "#d1defd",
    "embedding": "#a87eeb",
    "position": "#f3ae58",
    "query": "#e85983",
    "key": "#59cda6",
    "value": "#b3e3fb",
    "attention": "#cc68b9",
    "feed_forward": "#d0b56a",
    "norm": "#9ff1b1",
    "padding": "#7c8186",
    "wrong": "#f75e54",
}
# Roles that meet in one figure: they differ in lightness as well as in hue, so they survive grey and colour blindness.
GROUPS = (("x", "embedding", "position"), ("query", "key", "value"), ("attention", "feed_forward", "norm"))

INK, MUTED, GRID, PAPER = LIGHT["ink"], LIGHT["muted"], LIGHT["grid"], LIGHT["paper"]
X, EMBEDDING, POSITION = LIGHT["x"], LIGHT["embedding"], LIGHT["position"]
QUERY, KEY, VALUE = LIGHT["query"], LIGHT["key"], LIGHT["value"]
ATTENTION, FEED_FORWARD, NORM = LIGHT["attention"], LIGHT["feed_forward"], LIGHT["norm"]
PADDING, WRONG = LIGHT["padding"], LIGHT["wrong"]

# Both maps rise or fall in lightness all the way, so they can be read in grey.
# MAGNITUDE: 0 is pale, large is dark (attention weights, norms). On a dark page it is turned round: large is bright.
MAGNITUDE = LinearSegmentedColormap.from_list(
    "magnitude", ["#f3f4fa", "#c3cdf0", "#8397da", "#4a5fbd", "#1b2f8f", "#0b1547"]
)
# SIGNED: dark blue below zero, grey at zero, pale orange above; pass vmin=-limit and vmax=limit.
SIGNED = LinearSegmentedColormap.from_list("signed", ["#0b1f6b", "#4a62b0", "#979aa8", "#e2a765", "#ffe9c4"])
for _map in (MAGNITUDE, SIGNED):
    matplotlib.colormaps.register(_map, force=True)

# ---------------------------------------------------------------------------------------------------------------------
# Sizes, in inches. A column is as wide as the text; a narrow figure also fits a phone without scrolling.

COLUMN, NARROW = 7.0, 3.4
_SMALLEST_SCALE = 0.72  # 10-point words stay above 9 px; a phone scrolls a wider figure inside its own box
_PIXELS_PER_INCH = 96
_PHONE = 320  # pixels a phone leaves for a figure

_FONTS = Path(__file__).parent / "_static" / "fonts"
for _font in sorted(_FONTS.glob("*.ttf")):
    font_manager.fontManager.addfont(_font)

plt.rcParams.update({
    "font.family": ["Source Sans 3", "DejaVu Sans"],
    "font.size": 10.5, "axes.titlesize": 11, "axes.labelsize": 10.5,
    "xtick.labelsize": 9.5, "ytick.labelsize": 9.5, "legend.fontsize": 9.5,
    "mathtext.fontset": "cm",
    "figure.facecolor": "none", "axes.facecolor": "none", "savefig.facecolor": "none",
    "text.color": INK, "axes.labelcolor": INK, "axes.titlecolor": INK, "axes.edgecolor": MUTED,
    "xtick.color": MUTED, "ytick.color": MUTED, "xtick.labelcolor": INK, "ytick.labelcolor": INK,
    "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.8,
    "axes.titlelocation": "left", "axes.titlepad": 8,
    "grid.color": GRID, "grid.linewidth": 0.8, "axes.axisbelow": True,
    "lines.linewidth": 1.8, "lines.markersize": 5, "patch.linewidth": 0.8, "hatch.linewidth": 0.8,
    "legend.frameon": False, "image.cmap": "magnitude", "image.interpolation": "nearest",
    "axes.prop_cycle": plt.cycler(color=[X, POSITION, EMBEDDING, VALUE, KEY, QUERY]),
    "svg.fonttype": "path", "svg.hashsalt": "transformer-encoder-course",
})


def figure(width=COLUMN, height=2.8, rows=1, columns=1, **options):
    """`plt.subplots` in inches: returns (figure, axes)."""
    return plt.subplots(rows, columns, figsize=(width, height), layout=options.pop("layout", "compressed"), **options)


def colorbar(mappable, label, **options):
    """A colour bar with a name, drawn as one image so that the SVG stays small."""
    bar = mappable.axes.figure.colorbar(mappable, ax=mappable.axes, **options)
    bar.set_label(label)
    bar.outline.set_visible(False)
    bar.solids.remove()
    low, high = mappable.get_clim()
    ramp = np.linspace(low, high, 256).reshape((-1, 1) if bar.orientation == "vertical" else (1, -1))
    bar.ax.imshow(
        ramp, cmap=mappable.get_cmap(), norm=mappable.norm, origin="lower", aspect="auto",
        extent=(*bar.ax.get_xlim(), *bar.ax.get_ylim()),
    )
    return bar


def glue_figure(name, fig, alt, shrink=False):
    """Keep `fig` under a name, for {glue:figure}`name` to place it with a caption and a number.

    Args:
        name: the name, free in this page.
        fig: the matplotlib figure.
        alt: what the figure shows, in words.
        shrink: True lets the figure become as small as the page; for figures with few or no words.
    """
    from IPython.display import HTML
    from myst_nb import glue

    glue(name, HTML(to_html(fig, alt, shrink)), display=False)
    plt.close(fig)


def show(fig, alt, shrink=False):
    """Show `fig` where the cell stands, without caption or number. The arguments are those of `glue_figure`."""
    from IPython.display import HTML, display

    display(HTML(to_html(fig, alt, shrink)))
    plt.close(fig)


def to_html(fig, alt, shrink=False):
    """One HTML element: a box that scrolls on a narrow page, and in it the SVG with its alternative text."""
    alt = " ".join(alt.split())
    if not alt:
        raise ValueError(f"alt={alt!r}: say in words what the figure shows, for readers who cannot see it")
    _mark_maps(fig)
    file = io.StringIO()
    fig.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = file.getvalue()
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<style.*?</style>\s*", "", svg, flags=re.DOTALL)  # it would reach the whole page
    svg = _own_ids(svg)
    svg = _page_colours(svg)

    view_box = re.search(r'viewBox="([^"]+)"', svg).group(1)
    width = round(fig.get_figwidth() * _PIXELS_PER_INCH)
    smallest = 0 if shrink else round(width * _SMALLEST_SCALE)
    head = (
        f'<svg role="img" aria-label="{html.escape(alt, quote=True)}" '
        f'style="width: 100%; max-width: {width}px; min-width: {smallest}px; height: auto; '
        'stroke-linejoin: round; stroke-linecap: butt" '
        f'viewBox="{view_box}" '
        'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    svg = head + svg[svg.index(">") + 1:].strip()
    reachable = ' tabindex="0"' if smallest > _PHONE else ""  # so that the arrow keys can scroll it
    return f'<div class="figure-box"{reachable}>{svg}</div>'


def number(name, value, spec=""):
    """Make a computed value usable in prose: `number("ratio", r, ".1f")`, then {glue:text}`ratio` in the text."""
    from myst_nb import glue

    if hasattr(value, "item"):  # a tensor or an array with one element
        value = value.item()
    # a plain string: {glue:text} evaluates what it is given, and would make two numbers of 78,848
    glue(name, value if isinstance(value, str) else format(value, spec).replace("-", "−"), display=False)


def _mark_maps(fig):
    """Name the images drawn with MAGNITUDE, so that the page can turn them round in the dark theme."""
    for image in fig.findobj(AxesImage):
        if image.get_cmap().name == "magnitude" and image.get_array().ndim == 2:
            image.set_gid("magnitude")


def _own_ids(svg):
    """Give the ids a prefix of this figure's own, so that two figures on a page never share one; drop unused ids."""
    prefix = "f" + hashlib.sha256(svg.encode()).hexdigest()[:8] + "-"
    used = set(re.findall(r'href="#([^"]+)"', svg)) | set(re.findall(r"url\(#([^)]+)\)", svg))

    def rename(match):
        name = match.group(1)
        if name == "magnitude":
            return 'class="magnitude"'
        return f'id="{prefix}{name}"' if name in used else ""

    svg = re.sub(r'\bid="([^"]+)"', rename, svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}\1"', svg)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}\1)", svg)


def _page_colours(svg):
    """Replace each role's colour by the page's variable of that role."""
    for role, colour in LIGHT.items():
        variable = f"var(--figure-{role.replace('_', '-')}, {colour})"
        svg = re.sub(rf"(?<![\w-]){colour}(?!\w)", variable, svg, flags=re.IGNORECASE)
    return svg
