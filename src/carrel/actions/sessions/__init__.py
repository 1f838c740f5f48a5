"""Sessions, their transcripts and transcript files."""
