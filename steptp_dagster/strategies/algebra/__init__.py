"""Algebra on the values of equations: small explicit rules, and what a strategy makes of them.

``trees`` reads sums and products off expressions, ``rules`` says what a rule is, ``conditions``
proves what a rule needs, ``magnitude`` bounds values, ``strategy`` turns rules into a strategy.
"""
