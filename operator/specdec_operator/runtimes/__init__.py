"""What each backend can do, and how a valid spec becomes files and commands for it."""
