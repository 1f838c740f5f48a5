"""What is true: pure values and decisions, with no I/O, no await and no clock."""
