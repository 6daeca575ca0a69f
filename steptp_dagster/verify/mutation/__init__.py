"""Wrong programs made from right ones: is every one that truly differs rejected?

``catalogue.KINDS`` holds the kinds of mistake, ``generate.mutants`` makes programs of them,
``witness.Judge`` says apart from the verdict whether one really computes something else, and
``score.judge`` asks the verdict and counts.
"""
