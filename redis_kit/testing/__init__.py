"""What a project's own tests need to run on a real server."""
