"""The survey's mechanisms, one module each: what other designs put in the place of attention, feed-forward or head."""
