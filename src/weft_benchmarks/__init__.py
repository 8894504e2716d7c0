"""What weft is measured by: `weft bench`."""
