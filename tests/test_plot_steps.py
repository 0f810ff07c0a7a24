"""What a reader sees of a drawing in several states, with scripts and without."""

import pytest

from tests.browser import use_slider
from tests.step_pictures import draw_steps

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


def test_on_paper_all_texts_are_listed(browser, published):
    draw_steps("t")
    page = browser.new_page()
    page.set_content(published[0]["text/html"])
    page.pdf()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("ol").is_visible()
    assert page.locator("[aria-live]").inner_text() == "4 of 4. State 4 & <more>."
    page.close()
