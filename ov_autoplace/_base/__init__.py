"""What knows nothing of models: arrays, files, JSON, locks, statistics, text. Imports nothing else of it."""
