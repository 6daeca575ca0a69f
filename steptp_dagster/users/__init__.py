"""Programs that users bring: found in a folder, run in isolated processes, returned as data."""
