"""Layout of the catalog that is exported to an object store."""
