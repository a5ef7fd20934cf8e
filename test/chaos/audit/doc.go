// Package audit checks whether what people were told is true: it compares what
// they wrote down, and the cloud's own bill, with the ledger's rows. Apart from
// reading the rows, it is pure.
package audit
