"""Data integrity: blocks of responses that cannot be what they say they are.

A block is what one model answered of one benchmark. Its evidence is the agreement with the other
models of that benchmark; no item parameters are fitted, so nothing has to converge first.
"""
