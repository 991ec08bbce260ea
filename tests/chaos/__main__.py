"""``python -m tests.chaos`` lists the programs, ``python -m tests.chaos bloom.kill_loop 1000`` runs one."""

import sys

from tests.chaos.engine.program import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
