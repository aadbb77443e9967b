"""A generator that learns from critics through gradients made private on their way back."""
