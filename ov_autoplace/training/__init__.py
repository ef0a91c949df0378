"""Training of the learned policy; what needs torch imports it where it is needed."""
