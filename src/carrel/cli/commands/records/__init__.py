"""Commands that list, create, change and delete the records of the tenant."""
