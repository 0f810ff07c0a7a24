"""What a reader sees of a drawing in several states, with scripts and without."""

import pytest

from tests.browser import use_slider
from tests.step_pictures import draw_steps
from utils import plots

# As Colab shows an output: in a frame of its own that holds nothing else.
FRAME = "<style>body {{ margin: 0 }} iframe {{ border: 0; width: 100% }}</style>"
FRAME += '<iframe srcdoc="{}" sandbox="allow-scripts"></iframe>'


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


@pytest.mark.parametrize("sizing", ["content-box", "border-box"])
def test_the_picture_grows_as_far_as_a_state_needs_and_does_not_shrink(
    sizing, browser, published
):
    frames = []
    for number in (1, 2, 3, 4):
        picture = plots.Picture()
        for row in range(number):
            picture.grid((0.3, 0.3 + row), range(4))
        frames.append((picture, f"{number} rows."))
    plots.steps(frames, title="t")
    page = browser.new_page()
    style = f"<style>img {{ box-sizing: {sizing} }}</style>"
    page.set_content(style + published[0]["text/html"])
    slider, shown = page.get_by_role("slider"), []
    for key in ("Home", "ArrowRight", "End", "Home"):
        slider.press(key)
        shown.append(page.locator("img").bounding_box())
    one, two, four, again = (box["height"] for box in shown)
    assert two - one > 50 and four - two > 100 and again == four
    assert {box["y"] for box in shown} == {shown[0]["y"]}
    whole = page.locator("img").evaluate("img => img.naturalHeight / img.naturalWidth")
    assert four / shown[2]["width"] == pytest.approx(whole, abs=0.01)
    page.close()


def test_on_paper_all_texts_are_listed(browser, published):
    draw_steps("t")
    page = browser.new_page()
    page.set_content(published[0]["text/html"])
    page.pdf()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("ol").is_visible()
    assert page.locator("[aria-live]").inner_text() == "4 of 4. State 4 & <more>."
    page.close()
