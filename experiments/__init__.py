"""One module for each table or figure that is reproduced.

Such a module has a grid of runs (`grid.Grid`), a function that writes tables of the finished ones,
and hands both to `program.run`, which trains what is missing and keeps what it finds in records
below `docs/results`, from which alone the tables are made. `bahdanau2015_length` is the pattern.
"""
