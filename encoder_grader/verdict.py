"""What `check` says: points and reasons, as text and as HTML."""

from __future__ import annotations

import base64
import html
import io
from dataclasses import dataclass

from torch import Tensor

LONGEST = 2_000  # characters of one reason or note
MOST_NOTES = 10
PICTURE_WIDTH = 150  # pixels, of each of the two pictures


@dataclass(frozen=True)
class Result:
    """One claim's outcome.

    `reason` is None where the claim holds; `misconception` is the name of the one behind it, where one is recognised;
    `picture` is (yours, expected) where one helps.
    """

    claim: str
    says: str
    points: float
    holds: bool
    reason: str | None = None
    misconception: str | None = None
    picture: tuple[Tensor, Tensor] | None = None

    def __post_init__(self):
        if self.reason is not None and len(self.reason) > LONGEST:
            object.__setattr__(self, "reason", self.reason[:LONGEST] + " …")


@dataclass(frozen=True)
class Verdict:
    """The outcome of one check. `str` gives it as text; a notebook shows it as HTML."""

    exercise: str
    title: str
    results: tuple[Result, ...]
    notes: tuple[str, ...] = ()
    printed: str = ""

    def __post_init__(self):
        notes = [note if len(note) <= LONGEST else note[:LONGEST] + " …" for note in self.notes]
        more = [f"and {len(notes) - MOST_NOTES} more of this kind"] if len(notes) > MOST_NOTES else []
        object.__setattr__(self, "notes", (*notes[:MOST_NOTES], *more))

    @property
    def points(self) -> float:
        """What was earned: a builtin float between 0 and `maximum`."""
        return float(sum(result.points for result in self.results if result.holds))

    @property
    def maximum(self) -> float:
        """What could be earned."""
        return float(sum(result.points for result in self.results))

    @property
    def heading(self) -> str:
        """The exercise and its points in one line."""
        return f"{self.title}: {self.points:g} of {self.maximum:g} points"

    def __str__(self) -> str:
        lines = [self.heading]
        for result in self.results:
            earned = f"{result.points if result.holds else 0:g}/{result.points:g}"
            lines.append(f"  {'✓' if result.holds else '✗'} {earned:>5}  {result.says}")
            if result.reason:
                lines.append(f"           → {result.reason}")
        lines += [f"  note: {note}" for note in self.notes]
        if self.printed.strip():
            lines += ["  your code printed:"] + [f"    {line}" for line in self.printed.strip().splitlines()]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The same as a small table; every text from the learner is escaped. Colours work on light and dark pages."""
        rows = "".join(_row(result) for result in self.results)
        notes = "".join(f"<div style='{NOTE}'>Note: {html.escape(note)}</div>" for note in self.notes)
        if printed := html.escape(self.printed.strip()):
            notes += f"<div style='{NOTE}'>Your code printed:</div>"
            notes += f"<pre style='margin:.2em 0;white-space:pre-wrap'>{printed}</pre>"
        colour = GREEN if self.points == self.maximum else RED if self.points == 0 else AMBER
        box = f"border-left:4px solid {colour};padding:.3em .9em;margin:.4em 0;max-width:52em"
        points = f"<span style='color:{colour};white-space:nowrap'>{self.points:g} of {self.maximum:g} points</span>"
        head = f"<div style='font-weight:600;margin-bottom:.2em'>{html.escape(self.title)} {points}</div>"
        label = html.escape(self.heading)
        kind = "verdict tex2jax_ignore mathjax_ignore"  # what a learner's code says is no mathematics
        return f"<div class='{kind}' role='group' aria-label='{label}' style='{box}'>{head}{rows}{notes}</div>"


NOTE = "margin-top:.4em;opacity:.8"
GREEN, AMBER, RED = "#2a9d5c", "#b7791f", "#d1495b"  # at least 3:1 on white and on JupyterLab's dark background


def _row(result: Result) -> str:
    colour, mark = (GREEN, "✓") if result.holds else (RED, "✗")
    earned = f"{result.points if result.holds else 0:g}/{result.points:g}"
    reason = f"<div style='margin:.15em 0 .35em'>{_code(result.reason)}</div>" if result.reason else ""
    return (
        "<div style='display:flex;gap:.6em;align-items:baseline;margin:.15em 0'>"
        f"<span style='color:{colour};font-weight:700' aria-hidden='true'>{mark}</span>"
        f"<span style='white-space:nowrap;opacity:.75;min-width:2.6em'>{earned}</span>"
        f"<span>{_code(result.says)}{reason}{_pictures(result)}</span></div>"
    )


def _code(text: str) -> str:
    """Escaped text in which `backquoted` parts are set as code."""
    parts = html.escape(text).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))


def _pictures(result: Result) -> str:
    if result.picture is None:
        return ""
    images = ""
    for whose, tensor in zip(("yours", "expected"), result.picture, strict=True):
        alt = f"{whose}: {tensor.shape[0]} by {tensor.shape[1]} numbers as grey values"
        style = "image-rendering:pixelated;border:1px solid #888"
        image = f"<img src='{_png(tensor)}' width='{PICTURE_WIDTH}' alt='{alt}' style='{style}'>"
        images += f"<figure style='margin:.2em 1em .2em 0'>{image}<figcaption>{whose}</figcaption></figure>"
    return f"<div style='display:flex;flex-wrap:wrap'>{images}</div>"


def _png(tensor: Tensor) -> str:
    """A 2-D tensor as a grey PNG in a data address."""
    from PIL import Image  # only a failing claim with a picture needs it

    values = tensor.double().nan_to_num()
    low, high = values.min(), values.max()
    grey = ((values - low) / (high - low).clamp(min=1e-12) * 255).byte().numpy()
    buffer = io.BytesIO()
    Image.fromarray(grey).save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
