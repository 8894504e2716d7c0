"""What people have already: workflows and measurements of other tools, taken over."""
