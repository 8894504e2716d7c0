"""Plans: the problem as arrays, planners, slack, limits of money and time."""
