"""What `pip install .` gets to hear: the course is a folder to work in, no package."""

WHY = """\
The course is no package: its notebooks, its data and `utils` belong into one folder.
`pip install -r requirements.txt` installs what it needs, and Python finds `utils` when
it is started in that folder."""


def refuse(*arguments):
    """End the installation with a sentence."""
    raise SystemExit(WHY)


get_requires_for_build_wheel = get_requires_for_build_editable = refuse
get_requires_for_build_sdist = build_wheel = build_editable = build_sdist = refuse
