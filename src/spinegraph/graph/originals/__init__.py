"""The public originals of the paper's networks: fetched, checked and converted to one npz layout."""
