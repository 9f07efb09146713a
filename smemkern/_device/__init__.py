"""What is known of a device: its resources, peak rates, transfers and arrays."""
