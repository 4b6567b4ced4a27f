"""Agent Skills: know-how as folders with `SKILL.md`."""
