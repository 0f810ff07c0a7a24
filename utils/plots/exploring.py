"""Pictures that answer: redrawn when a control above them is moved."""

import traceback
from html import escape

from IPython import get_ipython

from utils.plots.publishing import captured, expect, show, to_html


def explore(draw, **controls) -> None:
    """Redraw a picture whenever one of the controls above it is moved.

    Args:
        draw: a function that takes the values of the controls by name and calls one
            drawing function of this module.
        controls: ipywidgets controls by keyword; one without a description gets
            its keyword.

    The picture at the starting values is published with the controls, so a page that
    shows no widgets shows it alone.

    >>> from types import SimpleNamespace
    >>> from utils.plots import chart
    >>> explore(lambda weight: chart.heat([[weight]], title="One weight"),
    ...         weight=SimpleNamespace(value=0.5))
    Heat map: One weight. Rows (query): 0. Columns (key): 0. (interactive: weight)
    """
    png, alt = _draw_once(draw, controls)
    views = {}
    if get_ipython() is not None:
        panel = _panel(draw, controls, to_html(png, alt))
        view = {"version_major": 2, "version_minor": 0, "model_id": panel.model_id}
        views["application/vnd.jupyter.widget-view+json"] = view
    show(png, f"{alt} (interactive: {', '.join(controls)})", **views)


def _draw_once(draw, controls):
    """Call `draw` with the values of the controls; return its one picture."""
    captured.append([])
    try:
        draw(**{name: control.value for name, control in controls.items()})
    finally:
        pictures = captured.pop()
    expect(len(pictures) == 1, "draw", "one picture", len(pictures))
    return pictures[0]


def _panel(draw, controls, first):
    """Return the controls above their picture, tied together."""
    import ipywidgets  # only here: other pictures need none

    picture, trouble = ipywidgets.HTML(value=first), ipywidgets.HTML()

    def redraw(change):
        try:
            picture.value, trouble.value = to_html(*_draw_once(draw, controls)), ""
        except Exception:  # in a callback a traceback would vanish in the log
            trouble.value = f"<pre>{escape(traceback.format_exc(limit=-2))}</pre>"

    for name, control in controls.items():
        control.description = control.description or name.replace("_", " ")
        control.tooltip = control.description  # else the label's reads "null"
        control.style.description_width = "initial"  # else long names are cut
        control.layout.width = "400px"  # room for the steps of a slider
        control.observe(redraw, names="value")
    return ipywidgets.VBox([*controls.values(), picture, trouble])
