"""What is placed, compiled and raced: models, networks, cost tables, and the best that is known of them."""
