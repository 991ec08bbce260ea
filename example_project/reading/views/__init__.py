"""The pages, a module for each part of the kit that they show."""
