"""Input sensitivity: raise each input of a page and see which of its numbers move."""
