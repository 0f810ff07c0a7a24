// What Sphinx and its theme leave to do; see site.py.

// An excerpt of a found page would be fetched, which no browser allows from a disk.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// What scrolls sideways must be reached by the keyboard.
function reach() {
  for (const box of document.querySelectorAll("pre, .table-wrapper, .math-wrapper"))
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
}
addEventListener("load", reach);
addEventListener("resize", reach);
addEventListener("toggle", reach, true);

// On paper nothing folds.
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
});

document.addEventListener("DOMContentLoaded", () => {
  // On a phone a tap shows a picture at full size, and another tap fits it in again.
  for (const picture of document.querySelectorAll("article img"))
    picture.addEventListener("click", () => picture.classList.toggle("full-size"));
  document.querySelector("article img")?.insertAdjacentHTML(
    "afterend", '<small class="tap">Tap a figure to enlarge it.</small>');
  // A search finds lessons before worked solutions.
  if (typeof Scorer !== "undefined")
    Scorer.score = ([page, , , , score]) =>
      page.startsWith("notebooks/solutions/") ? score - 100 : score;
  // Sphinx calls the parts of the way headings, but of no level.
  for (const title of document.querySelectorAll(".caption[role=heading]"))
    title.removeAttribute("role");
  // What opens a hidden output is named by its text.
  for (const summary of document.querySelectorAll(".hide > summary"))
    summary.removeAttribute("aria-label");
  // Two sides of a page need two names.
  for (const [side, name] of [["sidebar", "The course"], ["toc", "This page"]])
    document.querySelector(`aside.${side}-drawer`)?.setAttribute("aria-label", name);
  // On a narrow screen both open with labels, which the theme leaves to the pointer.
  for (const label of document.querySelectorAll("label[class*=overlay-icon]")) {
    label.tabIndex = 0;
    label.role = "button";
    label.ariaLabel = label.control.ariaLabel;
    label.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      label.click();
    });
  }
});
