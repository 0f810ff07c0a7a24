"""How answers are run, compared and explained, whatever the exercise."""
