-- Search terms of languages without spaces between words have changed. The indexes are rebuilt after
-- this migration, in the same transaction.

TRUNCATE session_entry_text;
DELETE FROM search_term;
