"""What earlier studies found in the phase study's runs, asked once more of seeds that nobody had looked at."""
