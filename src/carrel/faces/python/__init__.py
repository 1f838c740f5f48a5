"""The face for programs that run Carrel in their own process."""
