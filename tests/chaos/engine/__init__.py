"""What all programs of this folder share: a command line, a stage, processes, faults and a report."""
