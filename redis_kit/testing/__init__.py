"""Tools for the tests of a project: a real server and a job runner."""
