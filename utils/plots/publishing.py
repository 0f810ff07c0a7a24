"""Publish pictures: their texts, their image, and the text that stands for them."""

import base64
import functools
import io
import textwrap
from html import escape

import matplotlib.style
import numpy as np
import torch
from IPython import get_ipython
from IPython.display import display
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont
from matplotlib.ft2font import FT2Font
from matplotlib.textpath import TextPath
from matplotlib.transforms import Bbox
from PIL import Image

from utils.plots.theme import DPI, LABEL, NUM_COLORS, PIXELS, STYLE, TITLE, WIDTH
from utils.validation import raise_unless, raise_value_error

GLYPHS = FT2Font(findfont("DejaVu Sans")).get_charmap()
# --- arguments --------------------------------------------------------------------


def expect_length(size, what, values):
    """Raise ValueError unless there are `size` values."""
    raise_unless(len(values) == size, f"{size} of them", len(values), where=what)


def expect_dict(what, values):
    """Raise ValueError unless it is a dict of one entry or more, by names."""
    is_dict = isinstance(values, dict) and all(isinstance(name, str) for name in values)
    raise_unless(is_dict, "a dict from names", f"{values!r:.80}", where=what)
    raise_unless(values, "one or more", "none", where=what)


def to_array(values, what, ndim=None):
    """Return a NumPy copy of a tensor, an array or nested lists of numbers."""
    try:
        array = np.array(_to_lists(values), dtype=float)
    except (TypeError, ValueError):
        raise_value_error(
            "numbers, in rows of one length", f"{values!r:.80}", where=what
        )
    if ndim is not None:
        raise_unless(array.ndim == ndim, f"{ndim} axes", array.shape, where=what)
    raise_unless(array.size, "one number or more", array.shape, where=what)
    return array


def _to_lists(values):
    """Return lists without tensors and arrays in them."""
    values = values.tolist() if hasattr(values, "tolist") else values
    return [*map(_to_lists, values)] if isinstance(values, list | tuple) else values


def to_finite(values, what, ndim=0, log=None):
    """Return a NumPy copy of finite numbers; with `log`, as in "log_x", above 0."""
    array = to_array(values, what, ndim)
    unusable = array[~np.isfinite(array)]
    raise_unless(not unusable.size, "finite numbers", *unusable[:1], where=what)
    is_drawn = not log or (array > 0).all()
    raise_unless(is_drawn, f"numbers above 0 for {log}", array.min(), where=what)
    return array


def to_mask(mask, shape):
    """Return a boolean array, True = may attend; without a mask all may."""
    mask = torch.as_tensor(True if mask is None else mask).cpu().numpy()
    raise_unless(mask.dtype == bool, "mask of booleans, True = may attend", mask.dtype)
    expected = shape[len(shape) - mask.ndim :]
    raise_unless(mask.shape == expected, f"mask of shape {expected}", mask.shape)
    return np.broadcast_to(mask, shape)


def to_names(labels, size, what):
    """Return the labels as visible texts, if there are `size` of them."""
    expect_length(size, what, labels)
    return [visible(label) for label in labels]


# --- texts ------------------------------------------------------------------------


def drawable(text):
    """Return the text with escapes for the characters that the font lacks."""
    return "".join(
        c if c == "\n" or ord(c) in GLYPHS else c.encode("unicode_escape").decode()
        for c in text
    )


def visible(piece):
    """Return a token as text with its spaces, breaks and bytes made visible."""
    if isinstance(piece, (bytes, bytearray)):
        piece = bytes(piece).decode("utf-8", errors="backslashreplace")
    shown = str(piece).replace("\n", "↵").replace("\t", "→")
    stripped = shown.lstrip(" ")
    shown = "·" * (len(shown) - len(stripped)) + stripped
    return drawable(shown if stripped.strip() else shown.replace(" ", "·"))


def format_number(value, digits=2):
    """Return a number as the pictures write it, rounded alike on every processor."""
    rounded = round(round(float(value), 6), digits) + 0.0  # -0.0 becomes 0.0
    return f"{rounded:,.{digits}f}".replace("-", "−").replace("inf", "∞")


def short_number(value, digits=2):
    """Return a number with at most so many decimals: 1, 0.5 and −0.25."""
    return format_number(value, digits).rstrip("0").removesuffix(".")


def num_digits(values):
    """Return the decimals that values are written with: none if all are whole."""
    finite_values = np.asarray(values)[np.isfinite(values)]
    return 0 if (finite_values == finite_values.round()).all() else 2


@functools.lru_cache(maxsize=4096)
def text_width(text, size=LABEL, weight="normal"):
    """Return the width of the longest line of a text, in inches."""
    font = FontProperties(family="DejaVu Sans", weight=weight)
    lines = [line for line in text.split("\n") if line.strip()]
    paths = [TextPath((0, 0), line, size, prop=font) for line in lines]
    return max((path.get_extents().width for path in paths), default=0) / 72


def shorten(text, width):
    """Return the text, cut to about `width` inches."""
    full = text_width(text)
    return text if full <= width else f"{text[: int(len(text) * width / full)]}…"


def wrap(text, width, size=LABEL, weight="normal"):
    """Return the text broken into lines of at most `width` inches."""
    full_width = text_width(text, size, weight) + 0.01
    return textwrap.fill(text, max(8, int(len(text) * 0.97 * width / full_width)))


def describe(kind, title, *sentences):
    """Return the text that stands for a picture: its kind, its title and sentences."""
    raise_unless(isinstance(title, str) and title, "title as a text", repr(title))
    texts = f"{kind}: {title}", *sentences
    return " ".join(text if text[-1] in ".!?" else f"{text}." for text in texts)


# --- figures ----------------------------------------------------------------------


# A decorated function neither sees nor changes the reader's own style.
in_course_style = matplotlib.style.context(STYLE, after_reset=True)


def text_color(background):
    """Return white for a dark background, and black for a light one."""
    brightness = np.dot(to_rgb(background), (0.21, 0.72, 0.07))
    return "black" if brightness > 0.46 else "white"


def new_figure(height, layout=None):
    """Return a figure without pyplot: nothing global opens, so nothing stays open."""
    return Figure(figsize=(WIDTH, height), dpi=DPI, layout=layout)


def publish(fig, kind, title, parts, num_colors=NUM_COLORS):
    """Write the title above the figure and show it as one image with its text.

    parts: sentences of the text, or a dict from the name of a part to its labels
    """
    if isinstance(parts, dict):
        for name, labels in parts.items():
            raise_unless(labels is not None, "a text", "None", where=name)
        shown = {k: v if isinstance(v, str) else ", ".join(v) for k, v in parts.items()}
        parts = [f"{name}: {labels}" for name, labels in shown.items() if labels]
    text = describe(kind, title, *parts)
    [image] = draw_images([fig], title, num_colors)
    show(image_html(image, text), image, text)


def draw_images(figures, title, num_colors=NUM_COLORS):
    """Return an image for each figure, all below the title, of one size and palette."""
    for fig in figures:
        fig.draw_without_rendering()
        fig.set_layout_engine("none")
    style = {"fontsize": TITLE, "fontweight": "bold", "va": "bottom"}
    lines = wrap(title, WIDTH - 0.2, TITLE, "bold")
    top = max(fig.get_tightbbox().y1 for fig in figures) + 0.1
    for fig in figures:
        fig.text(0.1 / WIDTH, top / fig.get_figheight(), lines, **style)
    box = Bbox.union([fig.get_tightbbox() for fig in figures])
    is_inside = -0.02 <= box.x0 and box.x1 <= WIDTH + 0.02
    received = f"marks from {box.x0:.2f} to {box.x1:.2f}"
    raise_unless(is_inside, f"a picture of {WIDTH} inches", received, where=title)
    crop = Bbox.from_extents(0, box.y0 - 0.06, WIDTH, box.y1 + 0.08)
    images = [_draw_image(fig, crop) for fig in figures]
    width, height = images[0].size
    sheet = Image.new("RGB", (width, height * len(images)))
    for i, image in enumerate(images):
        sheet.paste(image, (0, i * height))
    sheet = sheet.quantize(num_colors, dither=0)
    tops = range(0, sheet.height, height)
    return [sheet.crop((0, y, width, y + height)) for y in tops]


def _draw_image(fig, crop):
    """Return a part of a figure as an image, and clear the figure."""
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", bbox_inches=crop)
    fig.clear()
    return Image.open(buffer).convert("RGB")


def encode(image, kind="png"):
    """Return the bytes of an image as base64: "png", or "webp", which is smaller."""
    buffer = io.BytesIO()
    if kind == "png":
        image.save(buffer, "png", optimize=True)
    else:
        image.convert("RGB").save(buffer, kind, lossless=True)
    return base64.b64encode(buffer.getvalue()).decode()


def image_html(image, alt):
    """Return the HTML of a picture with its alternative text, on white paper."""
    return (
        f'<img alt="{escape(alt)}" width="{PIXELS}" '
        'style="max-width: none; background: white; padding: 8px" '
        f'src="data:image/webp;base64,{encode(image, "webp")}">'
    )


def show(html, image, text):
    """Show a picture, or outside a notebook print the text that stands for it.

    As HTML, because no viewer puts the text of an image/png output on its page, and as
    a PNG for what shows no HTML: a PDF, some code hosts.
    """
    if get_ipython() is None:
        print(text)
        return
    bundle = {"text/html": html, "image/png": encode(image), "text/plain": text}
    display(bundle, metadata={"image/png": {"width": PIXELS}}, raw=True)
