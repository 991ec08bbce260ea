"""The common parts of indexes: generations, which a rebuild replaces as a whole, and the models that they follow."""
