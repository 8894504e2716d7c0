"""GTP: Hernandez and Cole, section 7."""
