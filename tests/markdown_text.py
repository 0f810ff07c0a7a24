"""What the tests of pages need to know of markdown."""

import re

FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$\n]+\$", re.DOTALL)
FENCE = re.compile(r"^(```+).*?^\1", re.DOTALL | re.MULTILINE)


def without_code(source):
    """Return markdown without its code, in which nothing is markup."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", source))
