"""What foreplan is measured by: `foreplan bench`."""
