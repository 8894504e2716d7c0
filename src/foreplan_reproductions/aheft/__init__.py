"""AHEFT: Yu and Shi, section 4."""
