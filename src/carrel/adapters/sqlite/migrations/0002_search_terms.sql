-- Search terms of languages without spaces between words have changed. The indexes are rebuilt after
-- this migration, in the same transaction.

INSERT INTO session_entry_text (session_entry_text) VALUES ('delete-all');
DELETE FROM search_term;
