"""The views: a module for each component that they show."""
