"""What is asked: a cost table under constraints, in units that stay together, and how answers are scored."""
