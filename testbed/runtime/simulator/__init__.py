"""What the simulator image's stand-ins do; shipped into the image, and tested outside of it."""
