"""Export of the file catalog to an object store."""
