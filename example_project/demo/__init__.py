"""What ``manage.py rk_demo`` runs: a server, the site, a worker, visitors, and checks of all that."""
