package problem

// Closest returns the name that is fewest typing errors away, if that is close
// enough to be meant.
func Closest(wrong string, names []string) (string, bool) {
	best, least := "", min(max(2, len(wrong)/3), len(wrong)-1)+1 // what shares no letter is not meant
	for _, name := range names {
		if d := editDistance(wrong, name); d < least {
			best, least = name, d
		}
	}
	return best, best != ""
}

// editDistance counts the insertions, deletions and replacements of bytes that turn
// a into b (Levenshtein 1966). What is far too long is not compared.
func editDistance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			above := row[j]
			row[j] = min(above+1, row[j-1]+1, diagonal+replacementCost(a[i-1], b[j-1]))
			diagonal = above
		}
	}
	return row[len(b)]
}

func replacementCost(a, b byte) int {
	if a == b {
		return 0
	}
	return 1
}
