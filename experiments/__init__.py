"""Experiments: one module for each table or figure that is reproduced.

Such a module defines a grid of runs (`grid.Grid`) and a function that writes the tables of finished
ones, and hands both to `program.run`. This trains what is missing and keeps records of the results
below `docs/results`, from which alone the tables are made. The prose of a page is a file of
`templates/`. `bahdanau2015_length` is the pattern.
"""
