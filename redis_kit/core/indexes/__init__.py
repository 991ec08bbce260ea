"""What indexes have in common: generations, which a rebuild replaces as a whole, and the models that they follow."""
