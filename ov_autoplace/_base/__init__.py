"""What knows nothing of models: arrays, files, JSON, locks, statistics, text. Imports no other room."""
