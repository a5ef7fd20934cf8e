// Package load is the people and agents of several tenants, who book without
// pause, send every request again until it is answered, and write down what
// they were told. What they wrote down is what must be true at the end.
package load
