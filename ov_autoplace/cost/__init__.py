"""What running a group on a device and crossing devices costs: tables, targets, and their files.

Imports ``graph`` and below; nothing here measures.
"""
