"""The database's own record of days, from which the sign-ins are stored again after Redis lost them."""
