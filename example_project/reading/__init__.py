"""The one app of the example site: articles, votes, letters, a report and a check-in."""
