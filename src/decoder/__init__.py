"""One small decoder with every design choice as a named option."""
