"""What a reader sees of a drawing in several states, with scripts and without."""

import base64
import re

import pytest

from tests.browser import use_slider
from tests.pictures import STEP_SCENES, draw_steps, parts_of
from utils import plots

LINES = [f"{i}. State {i} & <more>." for i in (1, 2, 3, 4)]
# As Colab shows an output: in a frame of its own that holds nothing else.
FRAME = "<style>body {{ margin: 0 }} iframe {{ border: 0; width: 100% }}</style>"
FRAME += '<iframe srcdoc="{}" sandbox="allow-scripts"></iframe>'


@pytest.mark.parametrize("draw", STEP_SCENES.values(), ids=STEP_SCENES)
def test_every_state_is_small_and_has_its_text(draw, published):
    draw(title="A finding")
    [bundle] = published
    html, (alt, last) = bundle["text/html"], parts_of(bundle["text/html"])
    first, *lines = bundle["text/plain"].splitlines()
    assert alt == first == f"Picture in {len(lines)} states: A finding."
    assert [line.split(". ")[0] for line in lines] == [
        *map(str, range(1, len(lines) + 1))
    ]
    others = re.findall('data:image/webp;base64,([^"]*)', html)
    assert len(others) == len(lines) - 1
    assert max(len(base64.b64decode(other)) for other in others) < 25_000
    assert len(last) < 35_000
    assert len(html) < 250_000


@pytest.mark.parametrize("number", [3, 13])
def test_too_few_or_too_many_states_are_an_error(number):
    message = f"frames: expected 4 to 12 of them, got {number}"
    with pytest.raises(ValueError, match=message):
        plots.steps([(plots.Picture(), "Nothing.")] * number, title="t")


@pytest.mark.parametrize("width", [360, 1280])
def test_the_slider_works_in_a_frame_and_nothing_is_wider(width, browser, published):
    draw_steps("t")
    page, problems = browser.new_page(viewport={"width": width, "height": 900}), []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    html = published[0]["text/html"].replace("&", "&amp;").replace('"', "&quot;")
    page.set_content(FRAME.format(html))
    [_, frame] = page.frames
    use_slider(frame)
    wide = "document.documentElement.scrollWidth > innerWidth"
    assert not page.evaluate(wide) and not frame.evaluate(wide)
    assert problems == []
    page.close()


def test_two_drawings_on_one_page_do_not_interfere(browser, published):
    draw_steps("one")
    draw_steps("two")
    page = browser.new_page()
    page.set_content("".join(bundle["text/html"] for bundle in published) * 2)
    assert page.get_by_role("slider").count() == 4
    page.get_by_role("slider").nth(1).press("ArrowRight")
    assert page.locator("[aria-live]").all_inner_texts() == [
        LINES[0], LINES[1], LINES[0], LINES[0]
    ]  # fmt: skip
    page.close()


def test_it_plays_once_on_request_and_not_at_all_with_reduced_motion(
    browser, published
):
    draw_steps("t")
    page = browser.new_page()
    page.clock.install()
    page.set_content(published[0]["text/html"])
    page.clock.run_for(10_000)
    assert page.locator("[aria-live]").inner_text() == LINES[0], "it began by itself"
    page.get_by_role("button", name="Play").click()
    page.clock.run_for(2_500)
    assert page.locator("[aria-live]").inner_text() == LINES[2]
    page.clock.run_for(10_000)
    assert page.locator("[aria-live]").inner_text() == LINES[3]
    assert page.get_by_role("button", name="Play").is_visible()
    page.emulate_media(reduced_motion="reduce")
    page.set_content(published[0]["text/html"])
    assert page.get_by_role("slider").is_visible()
    assert not page.get_by_role("button").is_visible()
    page.close()


def test_without_scripts_and_on_paper_all_texts_are_listed(browser, published):
    draw_steps("t")
    html = published[0]["text/html"]
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_content(html)
    assert page.locator("li").all_inner_texts() == [line[3:] for line in LINES]
    assert page.get_by_role("slider").count() == 0
    context.close()
    page = browser.new_page()
    page.set_content(html)
    page.pdf()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("ol").is_visible()
    assert page.locator("[aria-live]").inner_text() == LINES[3]
    page.close()
