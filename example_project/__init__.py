"""A small reading site that uses every part of the kit; ``manage.py rk_demo`` runs it."""
