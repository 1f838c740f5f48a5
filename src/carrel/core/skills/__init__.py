"""Agent Skills: folders `skills/<name>` with a SKILL.md."""
