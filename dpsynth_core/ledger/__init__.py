"""What each data set has spent: accounts and charges, kept in a database."""
