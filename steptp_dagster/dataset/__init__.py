"""From verified steps to a data set: schemas, stages, balance, splits, records, exports."""
