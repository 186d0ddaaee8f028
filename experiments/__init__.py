"""One module for each table or figure that is reproduced."""
