package sqlledger

// packLabels leaves the column empty of a node without labels.
func packLabels(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	return packValue(labels)
}

// packTaints leaves the column empty of a node without taints.
func packTaints(taints []string) string {
	if len(taints) == 0 {
		return ""
	}
	return packValue(taints)
}

// unpackOptional returns the value of a column; the zero value of an empty one.
func unpackOptional[T any](column, text string) (v T, err error) {
	if text == "" {
		return v, nil
	}
	return unpackValue[T](column, text)
}
