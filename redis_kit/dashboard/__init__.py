"""The components' figures and buttons in the Django admin."""
