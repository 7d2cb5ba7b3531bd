"""What book/figure_style.py promises: colours that anyone can tell apart, and SVG that fits the page."""

import itertools
import re
import sys

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from .conftest import ROOT

sys.path.insert(0, str(ROOT / "book"))
import figure_style as style  # noqa: E402

THEMES = {"light": style.LIGHT, "dark": style.DARK}
ROLES = [role for role in style.LIGHT if role not in ("paper", "grid")]
STYLE_SHEET = (ROOT / "book" / "_static" / "book.css").read_text()

# How the three kinds of dichromats see linear RGB: Machado, Oliveira and Fernandes 2009, severity 1.
BLINDNESS = {
    kind: np.array(matrix).reshape(3, 3)
    for kind, matrix in {
        "none": [1, 0, 0, 0, 1, 0, 0, 0, 1],
        "protanopia": [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
        "deuteranopia": [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
        "tritanopia": [1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.3039],
    }.items()
}


def linear(colour):
    """The linear RGB values of "#rrggbb" or of three numbers from 0 to 1."""
    values = np.array(to_rgb(colour))
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def luminance(rgb):
    return rgb @ [0.2126, 0.7152, 0.0722]


def contrast(one, other):
    """WCAG's contrast ratio of two colours, 1 to 21."""
    low, high = sorted((luminance(linear(one)), luminance(linear(other))))
    return (high + 0.05) / (low + 0.05)


def oklab(rgb):
    to_cones = np.array([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
                         [0.0883024619, 0.2817188376, 0.6299787005]])  # fmt: skip
    to_lab = np.array([[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099],
                       [0.0259040371, 0.7827717662, -0.808675766]])  # fmt: skip
    return to_lab @ np.cbrt(to_cones @ np.clip(rgb, 0, 1))


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("role", ROLES)
def test_each_role_stands_out_from_the_page(theme, role):
    colours = THEMES[theme]
    assert contrast(colours[role], colours["paper"]) >= (4.5 if role in ("ink", "muted") else 3.0)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("pair", [p for group in style.GROUPS for p in itertools.combinations(group, 2)], ids="-".join)
def test_roles_that_meet_differ_in_grey_and_to_the_colour_blind(theme, pair):
    one, other = (THEMES[theme][role] for role in pair)
    assert contrast(one, other) >= 1.4, "too alike when printed in grey"
    for kind, matrix in BLINDNESS.items():
        distance = np.linalg.norm(oklab(matrix @ linear(one)) - oklab(matrix @ linear(other)))
        assert distance >= 0.09, kind


@pytest.mark.parametrize("map_, sign", [(style.MAGNITUDE, -1), (style.SIGNED, 1)], ids=["MAGNITUDE", "SIGNED"])
def test_colour_maps_go_one_way_in_grey(map_, sign):
    shades = [luminance(linear(colour)) for colour in map_(np.linspace(0, 1, 65))[:, :3]]
    assert (sign * np.diff(shades) > 0).all()
    assert max(shades[0], shades[-1]) - min(shades[0], shades[-1]) > 0.75


@pytest.mark.parametrize("theme", THEMES)
def test_the_style_sheet_has_the_same_colours(theme):
    block = re.search(rf'html\[data-theme="{theme}"\] \{{(.*?)\}}', STYLE_SHEET, flags=re.DOTALL).group(1)
    assert {name: value for name, value in re.findall(r"--figure-([\w-]+): (#\w+);", block)} == {
        role.replace("_", "-"): colour for role, colour in THEMES[theme].items()
    }


@pytest.mark.parametrize("theme", THEMES)
def test_the_pages_own_words_can_be_read(theme):
    block = re.search(rf'html\[data-theme="{theme}"\] \{{(.*?)\}}', STYLE_SHEET, flags=re.DOTALL).group(1)
    colour = dict(re.findall(r"--([\w-]+): (#\w{6});", block))
    for ink in ("pst-color-text-base", "pst-color-text-muted", "accent", "accent-strong", "warm"):
        for ground in ("pst-color-background", "wash", "accent-wash"):
            assert contrast(colour[ink], colour[ground]) >= 4.5, (ink, ground)


def drawn(label="position"):
    fig, ax = style.figure(style.NARROW, 2.0)
    ax.plot([0, 1, 4], color=style.QUERY, label="query")
    image = ax.imshow([[0.0, 0.5], [0.7, 1.0]], cmap=style.MAGNITUDE)
    style.colorbar(image, "weight")
    ax.set_xlabel(label)
    return fig


def ids(svg):
    return set(re.findall(r'\bid="([^"]+)"', svg))


def test_the_same_figure_gives_the_same_bytes():
    assert style.to_html(drawn(), "a line") == style.to_html(drawn(), "a line")


def test_two_figures_share_no_id():
    one, other = (ids(style.to_html(drawn(label), "a line")) for label in ("position", "width"))
    assert one and other and not one & other


def test_every_reference_inside_a_figure_resolves():
    svg = style.to_html(drawn(), "a line")
    used = set(re.findall(r'href="#([^"]+)"', svg)) | set(re.findall(r"url\(#([^)]+)\)", svg))
    assert used == ids(svg)


def test_a_figures_colours_are_the_pages():
    svg = style.to_html(drawn(), "a line")
    assert f"stroke: var(--figure-query, {style.QUERY})" in svg
    assert re.findall(r"(?<!, )#[0-9a-f]{6}\b", svg) == []  # no colour stands outside a variable's fallback
    assert svg.count('class="magnitude"') == 2  # the image and its colour bar
    assert "<style" not in svg  # it would reach the whole page


def test_a_photograph_is_not_turned_round_in_the_dark():
    fig, ax = style.figure(style.NARROW, 2.0)
    ax.imshow(np.zeros((2, 2, 3)))
    assert 'class="magnitude"' not in style.to_html(fig, "a black square")


def test_the_alternative_text_is_spoken():
    svg = style.to_html(drawn(), 'the "cat"\n   & <dog>')
    assert 'role="img" aria-label="the &quot;cat&quot; &amp; &lt;dog&gt;"' in svg


@pytest.mark.parametrize("alt", ["", "  \n "])
def test_a_figure_without_alternative_text_is_refused(alt):
    with pytest.raises(ValueError, match="say in words what the figure shows"):
        style.to_html(drawn(), alt)


@pytest.mark.parametrize(
    "value, spec, text", [(1234.5678, ",.1f", "1,234.6"), (-2, "", "−2"), (np.float32(0.5), ".2f", "0.50")]
)
def test_numbers_in_prose_are_plain_text(monkeypatch, value, spec, text):
    import myst_nb

    glued = {}
    monkeypatch.setattr(myst_nb, "glue", lambda name, shown, display: glued.update({name: shown}))
    style.number("value", value, spec)
    assert glued == {"value": text}
