"""The steps that several exercises share, right and wrong."""
