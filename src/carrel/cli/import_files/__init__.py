"""`carrel import`: scans a directory, plans the changes and writes the files."""
