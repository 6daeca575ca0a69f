"""What is wrong with a data folder: stage files, ids, references, versions, warehouse, export."""
