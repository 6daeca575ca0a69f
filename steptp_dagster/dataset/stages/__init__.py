"""The stages, from programs to records: each brings one program's partition up to date.

``sources → leir → steps → verdicts → records``; ``zoo`` tries the verifier itself.
"""
