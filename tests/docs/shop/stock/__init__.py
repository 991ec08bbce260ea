"""The component of the page about own components; its modules are the blocks of that page."""
