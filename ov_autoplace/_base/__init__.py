"""What knows nothing of models: arrays, files, JSON fields, locks, statistics, text. Imports no other room."""
