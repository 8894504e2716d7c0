"""weft: an adaptive workflow scheduler."""
