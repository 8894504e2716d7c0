"""IC-optimal scheduling: Hall, Rosenberg and Venkataramani, section 5; and volunteers."""
