"""A directory's files on their way to a server: looked at, compared, written one by one."""
