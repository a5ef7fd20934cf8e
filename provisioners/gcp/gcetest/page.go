package gcetest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

const maxPage = 500

// cutPage filters rows and cuts out the page that was asked for.
func (c Config) cutPage(r *http.Request, rows []object) (page []object, next string, err error) {
	keep, err := parseFilter(r.URL.Query().Get("filter"))
	if err != nil {
		return nil, "", err
	}
	rows = slices.DeleteFunc(rows, func(row object) bool { return !keep(row) })
	size := maxPage
	if text := r.URL.Query().Get("maxResults"); text != "" {
		if size, err = strconv.Atoi(text); err != nil || size < 0 || size > maxPage {
			return nil, "", newRefusal(http.StatusBadRequest, "invalid", "Invalid value for field 'maxResults': '%s'.",
				text)
		}
	}
	size = min(size, c.PageSize)
	from := 0
	if token := r.URL.Query().Get("pageToken"); token != "" {
		if from, err = strconv.Atoi(strings.TrimPrefix(token, "page-")); err != nil || from > len(rows) {
			return nil, "", newRefusal(http.StatusBadRequest, "invalid", "Invalid value for field 'pageToken': '%s'.",
				token)
		}
	}
	to := min(from+size, len(rows))
	if to < len(rows) {
		next = "page-" + strconv.Itoa(to)
	}
	return rows[from:to], next, nil
}

// parseFilter understands the AIP-160 expressions that clients like ours use: terms
// of a field, one of = != : and a value, joined by AND.
func parseFilter(expression string) (keep func(object) bool, err error) {
	var terms []func(object) bool
	for _, text := range strings.Split(expression, " AND ") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		term, err := parseTerm(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		terms = append(terms, term)
	}
	return func(row object) bool {
		for _, term := range terms {
			if !term(row) {
				return false
			}
		}
		return true
	}, nil
}

func parseTerm(text string) (func(object) bool, error) {
	at := strings.IndexAny(text, "=:!")
	if at <= 0 {
		return nil, newRefusal(http.StatusBadRequest, "invalid",
			"Invalid value for field 'filter': '%s'. Invalid list filter expression.", text)
	}
	path, operator, value := strings.TrimSpace(text[:at]), text[at:at+1], text[at+1:]
	if operator == "!" {
		value = strings.TrimPrefix(value, "=")
	}
	value = strings.Trim(strings.TrimSpace(value), `"`)
	return func(row object) bool {
		found := fieldAt(row, path)
		switch operator {
		case ":":
			return value == "*" && found != "" || strings.Contains(found, value)
		case "!":
			return found != value
		default:
			return found == value
		}
	}, nil
}

// fieldAt returns a string of the row by its dotted path.
func fieldAt(row object, path string) string {
	name, rest, nested := strings.Cut(path, ".")
	if nested {
		inner, _ := row[name].(object)
		return fieldAt(inner, rest)
	}
	text, _ := row[name].(string)
	return text
}
