"""Does a test fail when `utils` does something else? mutmut changes it, to find out.

    python -m tests.mutants [attention cache.KeyValueCache.append ...]

mutmut makes mutants of every function: a `<` becomes `<=`, a number grows by one, an
argument is left out, a text is written in capitals. With each it runs the tests that
call the function. A mutant that no test notices is either named in `equivalent.toml`,
with the reason why it does the same, or it is alive: it is printed and asks for a test.
"""
