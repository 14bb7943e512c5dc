"""From checked pages to a published site: what readers get, in each form in which they get it."""
