"""Several models on one machine: what is asked of them, who could run them how, and the race of it all."""
