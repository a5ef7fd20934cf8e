// Package audit says whether what people were told is true: it holds what they
// wrote down, and the cloud's own bill, against the ledger's rows. It is pure
// but for reading the rows.
package audit
