"""Workers as whole processes: what each measurement needs, and the measurements."""
