"""One drawing in several states, with a slider that needs no kernel and no network."""

import functools
import hashlib
from html import escape

from utils.plots.publishing import (
    describe,
    draw_images,
    encode,
    image_html,
    in_course_style,
    show,
)
from utils.plots.theme import DRAWING_COLORS
from utils.validation import raise_unless

# Where scripts don't run, the last state and the texts of all states remain. Where they
# run, the list becomes a slider with one line of text above the image, in sight even if
# the image is cut off below. A cell that runs again, or a second view of an output,
# finds its own boxes by the name of their content. In JupyterLab an arrow key would
# move on to the next cell, if not for `data-lm-…`.
HTML = """<div class="steps-{name}" style="max-width: 100%">
<div style="overflow-x: auto">{image}</div>
<ol>{items}</ol>
<script>
for (const box of document.querySelectorAll(".steps-{name}:not(:has(input))")) {{
  const image = box.querySelector("img"), list = box.querySelector("ol");
  const frames = [{others}, image.src];
  const texts = [...list.children].map((item) => item.textContent);
  box.insertAdjacentHTML("afterbegin", `
    <div style="display: flex; gap: 8px; margin: 8px 0; max-width: 759px">
      <input type="range" min="1" max="${{frames.length}}" value="1"
        aria-label="State" data-lm-suppress-shortcuts="true"
        style="flex: 1; min-width: 0; height: 28px; accent-color: #0072B2">
      <button type="button" data-lm-suppress-shortcuts="true"
        style="width: 5em">Play</button>
    </div>
    <p aria-live="polite" style="min-height: 3em; max-width: 759px; margin: 0"></p>`);
  const slider = box.querySelector("input"), play = box.querySelector("button");
  const show = (number) => {{
    slider.value = number;
    image.src = frames[number - 1];
    const place = `${{number}} of ${{frames.length}}`;
    slider.setAttribute("aria-valuetext", place);
    box.querySelector("p").textContent = `${{place}}. ${{texts[number - 1]}}`;
  }};
  let timer = 0;
  const stop = () => {{
    timer = clearInterval(timer);
    play.textContent = "Play";
  }};
  const next = () => {{
    show(+slider.value + 1);
    if (slider.value === slider.max || !box.isConnected) stop();
  }};
  slider.oninput = () => (stop(), show(+slider.value));
  // JupyterLab stays at the cell that follows, so Shift + Enter goes on with that.
  for (const type of ["mousedown", "focusin"])
    slider.parentElement.addEventListener(type, (event) => event.stopPropagation());
  slider.onkeydown = play.onkeydown = (event) => {{
    const active = document.querySelector(".jp-Cell.jp-mod-active");
    if (["Shift", "Control", "Meta", "Escape"].includes(event.key))
      active?.focus({{ preventScroll: true }});
    else event.stopPropagation();
  }};
  play.onclick = () => {{
    if (timer) return stop();
    show(slider.value === slider.max ? 1 : +slider.value);
    timer = setInterval(next, 4000);
    play.textContent = "Pause";
  }};
  play.hidden = matchMedia("(prefers-reduced-motion: reduce)").matches;
  addEventListener("beforeprint", () => (show(frames.length), (list.hidden = false)));
  addEventListener("afterprint", () => (list.hidden = true));
  list.hidden = true;
  show(1);
  // After a run JupyterLab has gone on to the next cell, and perhaps past the picture.
  if (box.closest(".jp-Cell")?.nextElementSibling?.matches(".jp-mod-active"))
    setTimeout(() => box.scrollIntoView({{ block: "nearest" }}), 300);
}}
</script>
</div>"""
FEWEST, MOST = 4, 12


@in_course_style
def steps(frames, *, title: str) -> None:
    """Show one drawing in several states, with a slider and a text for each state.

    All states have one canvas, so only what differs between them moves. Where scripts
    don't run, the last state and a numbered list of the texts are shown.

    frames: 4 to 12 pairs (`Picture`, text), where each text is one sentence

    >>> from utils.plots.picture import Picture
    >>> frames = []
    >>> for number in range(4):
    ...     picture = Picture()
    ...     _ = picture.grid((0.3, 0.3), range(number + 1))
    ...     frames.append((picture, f"The row has {number + 1} of 4 numbers."))
    >>> steps(frames, title="A row grows")
    Picture in 4 states: A row grows.
    1. The row has 1 of 4 numbers.
    2. The row has 2 of 4 numbers.
    3. The row has 3 of 4 numbers.
    4. The row has 4 of 4 numbers.
    """
    count = len(frames := [*frames])
    raise_unless(FEWEST <= count <= MOST, f"{FEWEST} to {MOST} frames", count)
    is_valid = all(isinstance(f, tuple | list) and len(f) == 2 for f in frames)
    raise_unless(is_valid, "frames as pairs (Picture, text)", f"{frames!r:.80}")
    pictures, texts = zip(*frames)
    alt = describe(f"Picture in {count} states", title)
    text = "\n".join([alt, *(f"{i}. {line}" for i, line in enumerate(texts, 1))])
    figures = [picture.draw() for picture in pictures]
    images = draw_images(figures, title, DRAWING_COLORS)
    *others, last = images
    others = [f'"data:image/webp;base64,{encode(image, "webp")}"' for image in others]
    name = hashlib.sha256("".join([*others, text]).encode()).hexdigest()[:8]
    html = HTML.format(
        name=name,
        image=image_html(last, alt),
        items="".join(f"<li>{escape(line)}</li>" for line in texts),
        others=", ".join(others),
    )
    show(html, last, text)


def in_steps(draw):
    """Let a function that yields the frames of `steps` show them below a `title`."""

    @functools.wraps(draw)
    def show_steps(*args, title, **kwargs):
        steps(draw(*args, **kwargs), title=title)

    return show_steps
