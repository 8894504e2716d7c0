"""The experiments of the papers: `foreplan reproduce`."""
