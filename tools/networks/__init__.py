"""The networks behind `zoo.build`, one module per kind, and the builder that they share."""
