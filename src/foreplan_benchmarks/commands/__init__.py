"""The commands of `foreplan bench`."""
