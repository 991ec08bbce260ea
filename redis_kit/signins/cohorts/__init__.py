"""The sign-ins of all users of a model: active users, streaks, segments and retention."""
