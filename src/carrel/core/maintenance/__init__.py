"""Consistency checks of a store and the tables of a backup."""
