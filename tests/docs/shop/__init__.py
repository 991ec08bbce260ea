"""The site of the docs: code blocks of README and docs run in it as ``shop``."""
