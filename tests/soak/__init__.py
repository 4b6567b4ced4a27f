"""Many runs at once for a long time, while workers are killed and connections are cut."""
