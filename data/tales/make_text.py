"""Make the text that the model of tales was trained on from a folder of books.

    python data/tales/make_text.py BOOKS FOLDER

BOOKS has a folder for each author with a file for each book, as the repository
rcdm-uga/Gutenberg_Text on GitHub does. FOLDER gets train.txt and a file for each book
that is held out. README.md lists the books, each with the hash of its cleaned text, and
a book whose text differs stops the script.
"""

import hashlib
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
START = re.compile(
    r"^.*(\*\*\* ?START OF|\*END\*? ?THE SMALL PRINT|^\*END\*|"
    r"Project Gutenberg.?s? Etext|START: FULL LICENSE).*$",
    re.I | re.M,
)
END = re.compile(
    r"^.*(\*\*\* ?END OF|End of (the |this )?Project Gutenberg).*$", re.I | re.M
)
BRACKETS = re.compile(r"\[(illustration|footnote|sidenote|transcriber)[^\]]*\]", re.I)
CREDITS = re.compile(
    r"gutenberg|e-?text|electronic work|refund of|illustrations?[\]:]|proofread|"
    r"transcri|ascii|http|www\.|copyright|isbn|produced by|published by|illustrated by",
    re.I,
)
QUOTES = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "`": "'", "´": "'", "—": "--"}
)


def main(books: Path, folder: Path) -> None:
    """Write train.txt and the held-out books."""
    folder.mkdir(parents=True, exist_ok=True)
    seen: set[str] = set()
    train = []
    rows = sorted(list_books(), key=lambda row: row[4] == "train")  # held out first
    paths = {(p.parent.name, title_of(p)): p for p in books.glob("*/*.txt")}
    for author, title, _, digest, part in rows:
        text = clean(read_book(paths[author, title]))
        if hashlib.sha256(text.encode()).hexdigest()[:16] != digest:
            raise SystemExit(f"{author}, {title}: another text than README.md lists")
        if part == "train":
            train.append(without_repeats(text, seen))
        else:
            without_repeats(text, seen)  # a page of it in a collection is left out
            (folder / f"{part}.txt").write_text(text, encoding="utf-8")
    (folder / "train.txt").write_text("\n\n".join(filter(None, train)) + "\n", "utf-8")


def list_books() -> list[list[str]]:
    """Return author, title, number, hash and part of each book in README.md."""
    lines = (HERE / "README.md").read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
    return [
        row for row in rows if len(row) == 5 and re.fullmatch("[0-9a-f]{16}", row[3])
    ]


def title_of(path: Path) -> str:
    """Return the title in a file's name, which may be broken into lines."""
    return " ".join(path.stem.split())


def read_book(path: Path) -> str:
    """Read a book in whichever of two encodings it was stored."""
    content = path.read_bytes()
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")


def clean(text: str) -> str:
    """Return the paragraphs of a book, one line each, with empty lines between them.

    Headers and licences go, and so do illustrations' captions, page numbers, contents
    and verse. Quotation marks and dashes become those of a typewriter.
    """
    text = text.replace("\r\n", "\n").translate(QUOTES)
    starts = [match.end() for match in START.finditer(text[: len(text) // 3])]
    text = text[starts[-1] :] if starts else text
    end = END.search(text, len(text) // 2)
    text = text[: end.start()] if end else text
    text = BRACKETS.sub("", text)
    text = re.sub(r"[\[{(]?\b(?:pg|p\.) ?\d+[\])}]|\[\d+\]|\{\d+\}", "", text)
    text = re.sub(r"[_=~^|\\]|\*+", "", text).replace("---", "--")
    paragraphs = (tidy(block) for block in re.split(r"\n\s*\n", text))
    return "\n\n".join(filter(None, paragraphs))


def tidy(block: str) -> str:
    """Join the lines of a paragraph; return nothing for what is no prose."""
    lines = [line for line in block.split("\n") if line.strip()]
    paragraph = re.sub(r"\s+", " ", " ".join(lines)).strip()
    is_broken_short = len(lines) > 1 and max(map(len, map(str.strip, lines))) < 52
    letters = sum(character.isalpha() or character == " " for character in paragraph)
    is_prose = (
        re.search("[a-z]{2}", paragraph)
        and re.search(r"[.!?:;,'\"-]$", paragraph)
        and letters > 0.85 * len(paragraph)
        and paragraph.isprintable()
    )
    is_foreign = sum(ord(character) > 255 for character in paragraph) > 2
    keep = is_prose and not is_broken_short and not is_foreign
    return paragraph if keep and not CREDITS.search(paragraph) else ""


def without_repeats(text: str, seen: set[str]) -> str:
    """Leave out paragraphs of an earlier book: many stories are in two collections."""
    kept = []
    for paragraph in text.split("\n\n"):
        key = re.sub("[^a-z]", "", paragraph.lower())
        if len(key) < 60 or key not in seen:
            kept.append(paragraph)
        seen.add(key)
    return "\n\n".join(kept)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
