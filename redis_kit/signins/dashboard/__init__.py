"""The dashboard's page about sign-ins."""
