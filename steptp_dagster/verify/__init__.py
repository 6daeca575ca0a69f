"""Does a candidate program compute what its original computes? Verdicts with evidence."""
