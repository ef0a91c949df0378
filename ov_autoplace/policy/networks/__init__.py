"""The network that is trained and how it is saved, with torch; ``networks/papers`` holds the rivals' parts.

Imports the rest of ``policy``.
"""
