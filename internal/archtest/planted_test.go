package archtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// plantedTree is a tree of sources that exist nowhere, keyed by file name.
func plantedTree(t *testing.T, sources map[string]string) Tree {
	t.Helper()
	tree := Tree{Module: modulePath, Std: func(path string) bool { return !strings.Contains(path, ".") }}
	for name, source := range sources {
		file, err := parseFile(name, []byte(source))
		require.NoError(t, err)
		dir := name[:strings.LastIndex(name, "/")]
		tree.Packages = append(tree.Packages, Package{Path: dir, Name: file.Syntax.Name.Name, Files: []File{file}})
	}
	return tree
}

// fileImporting writes a file of the package with one import.
func fileImporting(pkg, path string) string {
	return "// Package " + pkg + " is planted.\npackage " + pkg + "\n\nimport _ \"" + path + "\"\n"
}

// fileWith writes a file of the package with declarations and one named import.
func fileWith(pkg, path, decls string) string {
	return "// Package " + pkg + " is planted.\npackage " + pkg + "\n\nimport \"" + path + "\"\n\n" + decls + "\n"
}

// withoutGhosts drops the search for ghosts and for idle exceptions: a planted tree has few files.
func withoutGhosts(found []Violation) []Violation {
	return slices.DeleteFunc(found, func(v Violation) bool { return v.Why == whyNames })
}

func TestPlantedViolationsAreFound(t *testing.T) {
	t.Parallel()
	const ours = modulePath + "/"
	for name, c := range map[string]struct{ file, source, rule, what string }{
		"core imports a later package": {"core/capacity/a.go", fileImporting("capacity", ours+"core/plan"), "D1",
			"core/capacity imports"},
		"core imports a sibling": {"core/node/a.go", fileImporting("node", ours+"core/job"), "D1",
			"core/node imports"},
		"core opens files":     {"core/capacity/a.go", fileImporting("capacity", "os"), "D1", "imports os"},
		"core takes a context": {"core/plan/a.go", fileImporting("plan", "context"), "D1", "imports context"},
		"core uses a module": {"core/plan/a.go", fileImporting("plan", "github.com/google/uuid"), "D1",
			"imports github.com/google/uuid"},
		"core reads the clock": {"core/plan/a.go", fileWith("plan", "time", "func f() { _ = time.Now() }"),
			"D1", "uses time.Now"},
		"core reads a renamed clock": {"core/plan/a.go",
			"// Package plan is planted.\npackage plan\n\nimport t \"time\"\n\nfunc f() { t.Sleep(1) }\n", "D1",
			"uses time.Sleep"},
		"core starts a goroutine": {"core/plan/a.go", fileWith("plan", "sort", "func f() { go sort.Ints(nil) }"),
			"D1", "starts a goroutine"},
		"core keeps state": {"core/plan/a.go", fileWith("plan", "sync", "var mu sync.Mutex"), "D1",
			"package variable mu"},
		"core keeps a counter": {"core/plan/a.go",
			fileWith("plan", "errors", "var n = 3\n\nvar E = errors.New(\"e\")"), "D1", "package variable n"},
		"core writes its table": {"core/plan/a.go",
			fileWith("plan", "sort", "var t = []int{1}\n\nfunc f() { t[0] = 2; sort.Ints(nil) }"), "D1",
			"writes package variable t"},
		"core empties its table": {"core/plan/a.go",
			fileWith("plan", "sort", "var t = map[int]int{1: 1}\n\nfunc f() { delete(t, 1); sort.Ints(nil) }"), "D1",
			"writes package variable t"},
		"core has a package without place": {"core/magic/a.go", fileImporting("magic", "sort"), "D13",
			"no boundary names"},
		"contract speaks HTTP": {"contract/a.go", fileImporting("contract", "net/http"), "D2",
			"imports net/http"},
		"contract imports core": {"contract/a.go", fileImporting("contract", ours+"core/capacity"), "D2",
			"contract imports"},
		"client imports core": {"client/a.go", fileImporting("client", ours+"core/capacity"), "D2",
			"client imports"},
		"ledger speaks SQL": {"ledger/a.go", fileImporting("ledger", "database/sql"), "D4",
			"imports database/sql"},
		"ledger imports the server": {"ledger/a.go", fileImporting("ledger", ours+"server"), "D3", "ledger imports"},
		"the commands import the ledger": {"cli/a.go", fileImporting("cli", ours+"ledger"), "D2",
			"cli imports"},
		"worker uses gorm": {"worker/tasks/a.go", fileImporting("tasks", "gorm.io/gorm"), "D4",
			"imports gorm.io/gorm"},
		"store imports the worker": {"ledger/sqlledger/a.go", fileImporting("sqlledger", ours+"worker"), "D4",
			"sqlledger imports"},
		"plan restores a node": {"worker/tasks/a.go",
			fileWith("tasks", ours+"core/node", "var _ = node.Restore"), "D4", "uses node.Restore"},
		"gin outside the server": {"worker/tasks/a.go", fileImporting("tasks", "github.com/gin-gonic/gin"), "D5",
			"imports github.com/gin-gonic/gin"},
		"server imports the agent": {"server/a.go", fileImporting("server", ours+"agent/place"), "D5",
			"server imports"},
		"server imports the worker": {"server/api/a.go", fileImporting("api", ours+"worker/queue"), "D5",
			"server/api imports"},
		"asynq outside its adapter": {"worker/relay/a.go", fileImporting("relay", "github.com/hibiken/asynq"), "D6",
			"imports github.com/hibiken/asynq"},
		"worker imports the vocabulary": {"worker/tasks/a.go", fileImporting("tasks", ours+"contract"), "D6",
			"worker/tasks imports"},
		"worker imports an adapter": {"worker/tasks/a.go", fileImporting("tasks", ours+"provisioners/sim"), "D6",
			"worker/tasks imports"},
		"port brings an SDK": {"provisioners/a.go",
			fileImporting("provisioners", "github.com/NVIDIA/go-nvml/pkg/nvml"), "D7", "provisioners imports"},
		"adapter imports a sibling": {"provisioners/local/a.go", fileImporting("local", ours+"provisioners/sim"),
			"D8", "provisioners/local imports"},
		"agent imports the ledger": {"agent/place/a.go", fileImporting("place", ours+"ledger"), "D9",
			"agent/place imports"},
		"agent imports admission": {"agent/place/a.go", fileImporting("place", ours+"core/admission"), "D9",
			"agent/place imports"},
		"agent builds an HTTP client": {"agent/llm/a.go", fileWith("llm", "net/http", "var c = &http.Client{}"), "D9",
			"uses http.Client"},
		"agent binary borrows a client": {"cmd/forewarm-agent/a.go",
			"// Command x.\npackage main\n\nimport \"net/http\"\n\nvar c = http.DefaultClient\n", "D9",
			"uses http.DefaultClient"},
		"migrations compute": {"migrations/a.go", fileImporting("migrations", "os"), "D10", "imports os"},
		"prompts import core": {"prompts/a.go", fileImporting("prompts", ours+"core/capacity"), "D10",
			"prompts imports"},
		"web serves itself": {"web/a.go", fileImporting("web", "net/http"), "D10", "imports net/http"},
		"ground floor imports us": {"internal/httpx/a.go", fileImporting("httpx", ours+"internal/clock"), "D10",
			"internal/httpx imports"},
		"somebody imports cmd": {"server/a.go", fileImporting("server", ours+"cmd/forewarm/cli"), "D11",
			"server imports cmd/forewarm/cli"},
		"a test imports cmd": {"server/a_test.go", fileImporting("server", ours+"cmd/forewarm/cli"), "D11",
			"server imports cmd/forewarm/cli"},
		"one binary imports another": {"cmd/forewarm-sim/a.go", fileImporting("main", ours+"cmd/forewarm/cli"), "D11",
			"imports cmd/forewarm/cli"},
		"a binary ships a suite": {"cmd/forewarm/a.go", fileImporting("main", ours+"ledger/ledgertest"), "D12",
			"cmd/forewarm imports"},
		"a binary ships the simulator": {"cmd/forewarm/a.go", fileImporting("main", ours+"test/sim"), "D12",
			"cmd/forewarm imports"},
		"testing in shipped code":   {"ledger/a.go", fileImporting("ledger", "testing"), "D12", "imports testing"},
		"a package without comment": {"server/a.go", "package server\n", "D13", "has no package comment"},
		"a comment about something else": {"server/a.go", "// This is code.\npackage server\n", "D13",
			"does not begin with"},
		"a name that says nothing": {"server/util/a.go", fileImporting("util", "sort"), "D13", "is called util"},
		"a folder that says nothing": {"server/helper/a.go", fileImporting("assist", "sort"), "D13",
			"is called assist"},
		"a function has a retired name": {"server/a.go", fileWith("server", "sort",
			"func poolMisfit() { sort.Ints(nil) }"),
			"D14", "poolMisfit says misfit, which is now needs own tx"},
		"a method has a retired name": {"server/a_test.go", fileWith("server", "sort",
			"type t struct{ sort.Interface }\n\nfunc (t) Rehearse() {}"),
			"D14", "Rehearse says rehearse"},
		"a field has a retired name": {"server/a.go", fileWith("server", "sort",
			"type t struct{ sort.Interface; mainLane int }"),
			"D14", "mainLane says lane"},
		"a type has two retired words": {"server/a.go", fileWith("server", "sort",
			"type HTTPPoolUnit struct{ sort.Interface }"),
			"D14", "HTTPPoolUnit says pool unit"},
		"a parameter has a retired name": {"server/a.go", fileWith("server", "sort", "func f(deed sort.Interface) {}"),
			"D14", "deed says deed"},
		"a local variable has a retired name": {"server/a.go",
			fileWith("server", "sort", "func f() { sink := 1; sort.Ints([]int{sink}) }"),
			"D14", "sink says sink"},
		"a loop has a retired name": {"server/a.go", fileWith("server", "sort",
			"func f() { for _, desk := range []int{1} { sort.Ints([]int{desk}) } }"),
			"D14", "desk says desk"},
		"a text has a retired prefix": {"server/a.go", fileWith("server", "sort",
			"const p = \"gpa_live\"\n\nfunc f() { sort.Ints(nil) }"),
			"D14", "a text says gpa_, which is now fw_"},
		"a line is too long": {"server/a.go", fileWith("server", "sort", "func f() { sort.Ints(nil) } //"+columns(91)),
			"D15", "has 121 columns of at most 120"},
		"a test's string is too long": {"server/a_test.go", fileWith("server", "sort",
			"var s = sort.StringSlice{`\n"+columns(121)+"\n`}"),
			"D15", "has 121 columns of at most 120"},
		"a file is too long": {"server/a.go", fileWith("server", "sort",
			"func f() { sort.Ints(nil) }"+strings.Repeat("\n", 400)), "D15", "lines of at most 400"},
		"a new folder that no rule governs": {"magic/a.go", fileImporting("magic", "sort"), "D13", "no boundary names"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := withoutGhosts(Check(plantedTree(t, map[string]string{c.file: c.source}), House()))
			require.NotEmpty(t, found)
			i := slices.IndexFunc(found, func(v Violation) bool {
				return v.Rule == c.rule &&
					strings.Contains(v.What, c.what)
			})
			require.GreaterOrEqual(t, i, 0, "found only %v", found)
			require.True(t, strings.HasPrefix(c.file, strings.Split(found[i].File, ":")[0]), "names the file")
			require.NotEmpty(t, found[i].Why)
		})
	}
}

func TestLawfulSourcesPass(t *testing.T) {
	t.Parallel()
	const ours = modulePath + "/"
	table := `var machineTable = machine.Table[string, string]{Name: "x"}

var ErrX, zones = errorsLike, []string{"a"}

type SizeError struct{}

var big = &SizeError{}

var _ error = big

func f() { zones := append([]string{}, zones...); _ = zones }
`
	for file, source := range map[string]string{
		"core/plan/a.go": fileWith("plan", ours+"core/statemachine",
			strings.ReplaceAll(table, "ErrX, zones = errorsLike, ", "zones = ")),
		"core/capacity/a.go":      fileWith("capacity", "errors", `var ErrSize = errors.New("size")`),
		"core/calendar/a.go":      fileWith("calendar", "time", "func f(a, b time.Time) bool { return a.After(b) }"),
		"core/capacity/a_test.go": fileImporting("capacity_test", "os"),
		"server/a_test.go":        fileImporting("server_test", ours+"ledger/sqlledger"),
		"agent/llm/a.go":          fileWith("llm", "net/http", "func f(c *http.Client) *http.Client { return c }"),
		"agent/egress/a.go":       fileWith("egress", "net/http", "var c = &http.Client{}"),
		"provisioners/local/a.go": fileImporting("local", ours+"provisioners/local/devices"),
		"agent/place/a.go":        fileImporting("place", ours+"client"),
		"cmd/forewarm/a.go": "// Command forewarm is planted.\npackage main\n\nimport _ \"" + ours +
			"cmd/forewarm/cli\"\n",
		"cmd/forewarm-sim/a.go":  fileImporting("main", ours+"test/sim"),
		"ledger/sqlledger/a.go":  fileImporting("sqlledger", "gorm.io/gorm"),
		"ledger/ledgertest/a.go": fileImporting("ledgertest", "testing"),
		"server/words.go": fileWith("server", "sort",
			"func f(planet, blowfish, unitPool int) { sort.Ints(nil) }"),
		"server/lines.go": fileWith("server", "sort", "func f() { sort.Ints(nil) } //"+columns(90)),
		"server/generated.go": "// Code generated by hand. DO NOT EDIT.\n\n" +
			fileWith("server", "sort", "func f() { sort.Ints(nil) } //"+columns(200)),
		"server/words_test.go": fileWith("server", "sort", "const old = \"gpa_live\"\n\nfunc f() { sort.Sort(nil) }"),
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			require.Empty(t, withoutGhosts(Check(plantedTree(t, map[string]string{file: source}), House())))
		})
	}
}

func TestTwoPackageComments(t *testing.T) {
	t.Parallel()
	tree := plantedTree(t, map[string]string{"server/a.go": fileImporting("server", "sort")})
	tree.Packages[0].Files = append(tree.Packages[0].Files, tree.Packages[0].Files[0])
	found := withoutGhosts(Check(tree, House()))
	require.Len(t, found, 1)
	require.Equal(t, "has more than one package comment", found[0].What)
}

func TestClosures(t *testing.T) {
	t.Parallel()
	for dep, rule := range map[string]string{
		"github.com/gin-gonic/gin/binding": "D9", "gorm.io/gorm": "D9", modulePath + "/ledger": "D9",
		modulePath + "/provisioners": "D9", "testing": "D12",
	} {
		tree := plantedTree(t, map[string]string{"cmd/forewarm-agent/a.go": fileImporting("main", "sort")})
		tree.Packages[0].Deps = []string{"sort", dep}
		found := withoutGhosts(Check(tree, House()))
		require.Len(t, found, 1, dep)
		require.Equal(t, rule, found[0].Rule)
		require.Contains(t, found[0].What, dep)
	}
}

func TestGhosts(t *testing.T) {
	t.Parallel()
	tree := plantedTree(t, map[string]string{"server/api/a.go": fileImporting("api", "sort")})
	tree.Modules = []string{"example.org/real"}
	ghosts := func(planned []string, imports ...string) []string {
		var whats []string
		for _, v := range checkNames(tree, Rules{Bans: []Ban{{Imports: imports, In: []string{"server/..."}}},
			Planned: planned}) {
			whats = append(whats, v.What)
		}
		return whats
	}
	require.Empty(t, ghosts(nil, "example.org/real/sub/...", "sort", "server/api"))
	require.Equal(t, []string{"a rule names example.org/gone, which does not exist"},
		ghosts(nil, "example.org/gone/..."))
	require.Empty(t, ghosts([]string{"example.org/gone"}, "example.org/gone/..."))
	require.Equal(t, []string{"example.org/real exists: take it out of planned"},
		ghosts([]string{"example.org/real"}, "example.org/real/..."))
	require.Equal(t, []string{"x.org/never is planned, but no rule names it"}, ghosts([]string{"x.org/never"}, "sort"))
}

func TestViolationNamesRuleFileAndReason(t *testing.T) {
	t.Parallel()
	v := Violation{"D1", "core/capacity/a.go:3", "imports os", "no I/O"}
	require.Equal(t, "D1 core/capacity/a.go:3: imports os (why: no I/O)", v.String())
}

func TestSplitCamel(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"newHTTPClient": "new http client", "HTTPPoolUnit": "http pool unit", "poolID": "pool id", "x": "x", "_": "",
		"gpa_live": "gpa live", "Test_Sink": "test sink", "readA": "read a",
	} {
		require.Equal(t, want, strings.Join(splitCamel(name), " "), name)
	}
}
