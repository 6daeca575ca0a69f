"""Stage files elsewhere than in a local folder: on any filesystem that fsspec knows."""
