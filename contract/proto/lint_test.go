// Package proto_test holds the .proto files to the rules that the linter of buf calls MINIMAL, BASIC and STANDARD, by
// their names there, as far as they apply: files import each other nowhere, and Go is the only language whose options
// they set. From its COMMENTS it takes those of services, calls, messages and enumerations.
package proto_test

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	_ "github.com/forewarm/forewarm/contract/proto/compat/algogpu"
	_ "github.com/forewarm/forewarm/contract/proto/forewarm/v1"
)

// exceptions are what old systems' shapes break, by rule and by name. Each must still be needed.
var exceptions = map[string]string{
	"PACKAGE_DIRECTORY_MATCH algogpu": "its clients call it by that name",
	"PACKAGE_VERSION_SUFFIX algogpu":  "as above",

	"SERVICE_SUFFIX algogpu.GPUScheduler":                           "as above",
	"RPC_REQUEST_STANDARD_NAME algogpu.GPUScheduler.SubmitTask":     "go-scheduler's TaskRequest",
	"RPC_REQUEST_STANDARD_NAME algogpu.GPUScheduler.GetTaskStatus":  "go-scheduler's TaskStatusRequest",
	"RPC_RESPONSE_STANDARD_NAME algogpu.GPUScheduler.SubmitTask":    "go-scheduler's TaskResponse",
	"RPC_RESPONSE_STANDARD_NAME algogpu.GPUScheduler.GetTaskStatus": "go-scheduler's TaskStatusResponse",
	"RPC_RESPONSE_STANDARD_NAME algogpu.GPUScheduler.GetGPUStatus":  "go-scheduler's GPUStatusResponse",
	"RPC_RESPONSE_STANDARD_NAME algogpu.GPUScheduler.TaskEvents":    "go-scheduler's TaskEvent",

	"ENUM_ZERO_VALUE_SUFFIX algogpu.TASK_STATUS_PENDING": "go-scheduler's zero is a state",
}

// lint collects what breaks a rule.
type lint struct {
	broken []string
	used   map[string]int // how often a message is a request or a response
}

func (l *lint) check(ok bool, rule string, name any) {
	if !ok {
		l.broken = append(l.broken, fmt.Sprintf("%s %v", rule, name))
	}
}

var (
	pascal     = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	lowerSnake = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	upperSnake = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$`)
	versioned  = regexp.MustCompile(`\.v[1-9][0-9]*$`)
)

func (l *lint) file(f protoreflect.FileDescriptor) {
	name := f.Package()
	l.check(name != "", "PACKAGE_DEFINED", f.Path())
	l.check(strings.ReplaceAll(string(name), ".", "/") == path.Dir(f.Path()), "PACKAGE_DIRECTORY_MATCH", name)
	l.check(versioned.MatchString(string(name)), "PACKAGE_VERSION_SUFFIX", name)
	for part := range strings.SplitSeq(string(name), ".") {
		l.check(lowerSnake.MatchString(part), "PACKAGE_LOWER_SNAKE_CASE", name)
	}
	l.check(lowerSnake.MatchString(strings.TrimSuffix(path.Base(f.Path()), ".proto")), "FILE_LOWER_SNAKE_CASE", f.Path())
	l.check(f.Syntax() == protoreflect.Proto3, "SYNTAX_SPECIFIED", f.Path())
	options := f.Options().(*descriptorpb.FileOptions) //nolint:forcetypeassert // protobuf says so
	l.check(strings.HasSuffix(options.GetGoPackage(), ";"+strings.ReplaceAll(string(name), ".", "")),
		"PACKAGE_SAME_GO_PACKAGE", f.Path())
	l.check(f.Imports().Len() == 0, "IMPORT_USED", f.Path()) // see the package's comment
	for i := range f.Services().Len() {
		l.service(f.Services().Get(i))
	}
	l.messages(f.Messages())
	l.enums(f.Enums())
}

func (l *lint) service(s protoreflect.ServiceDescriptor) {
	l.check(pascal.MatchString(string(s.Name())), "SERVICE_PASCAL_CASE", s.FullName())
	l.check(strings.HasSuffix(string(s.Name()), "Service"), "SERVICE_SUFFIX", s.FullName())
	for i := range s.Methods().Len() {
		m := s.Methods().Get(i)
		l.check(pascal.MatchString(string(m.Name())), "RPC_PASCAL_CASE", m.FullName())
		l.check(isNamed(m, m.Input(), "Request"), "RPC_REQUEST_STANDARD_NAME", m.FullName())
		l.check(isNamed(m, m.Output(), "Response"), "RPC_RESPONSE_STANDARD_NAME", m.FullName())
		l.used[string(m.Input().FullName())]++
		l.used[string(m.Output().FullName())]++
	}
}

// isNamed reports whether a message is named after its call, with or without its service.
func isNamed(m protoreflect.MethodDescriptor, d protoreflect.MessageDescriptor, suffix string) bool {
	return d.Name() == m.Name()+protoreflect.Name(suffix) ||
		d.Name() == m.Parent().Name()+m.Name()+protoreflect.Name(suffix)
}

func (l *lint) messages(all protoreflect.MessageDescriptors) {
	for i := range all.Len() {
		m := all.Get(i)
		if m.IsMapEntry() {
			continue
		}
		l.check(pascal.MatchString(string(m.Name())), "MESSAGE_PASCAL_CASE", m.FullName())
		for j := range m.Fields().Len() {
			l.check(lowerSnake.MatchString(string(m.Fields().Get(j).Name())), "FIELD_LOWER_SNAKE_CASE",
				m.Fields().Get(j).FullName())
		}
		for j := range m.Oneofs().Len() {
			o := m.Oneofs().Get(j)
			l.check(o.IsSynthetic() || lowerSnake.MatchString(string(o.Name())), "ONEOF_LOWER_SNAKE_CASE", o.FullName())
		}
		l.messages(m.Messages())
		l.enums(m.Enums())
	}
}

func (l *lint) enums(all protoreflect.EnumDescriptors) {
	for i := range all.Len() {
		e := all.Get(i)
		l.check(pascal.MatchString(string(e.Name())), "ENUM_PASCAL_CASE", e.FullName())
		l.check(!e.Options().(*descriptorpb.EnumOptions).GetAllowAlias(), //nolint:forcetypeassert // protobuf says so
			"ENUM_NO_ALLOW_ALIAS", e.FullName())
		prefix := upperSnakeOf(string(e.Name())) + "_"
		for j := range e.Values().Len() {
			v := e.Values().Get(j)
			l.check(upperSnake.MatchString(string(v.Name())), "ENUM_VALUE_UPPER_SNAKE_CASE", v.FullName())
			l.check(strings.HasPrefix(string(v.Name()), prefix), "ENUM_VALUE_PREFIX", v.FullName())
		}
		first := e.Values().Get(0)
		l.check(first.Number() == 0, "ENUM_FIRST_VALUE_ZERO", e.FullName())
		l.check(string(first.Name()) == prefix+"UNSPECIFIED", "ENUM_ZERO_VALUE_SUFFIX", first.FullName())
	}
}

var words = regexp.MustCompile(`[A-Z]+[a-z0-9]*`)

func upperSnakeOf(name string) string {
	return strings.ToUpper(strings.Join(words.FindAllString(name, -1), "_"))
}

var declaration = regexp.MustCompile(`^\s*(service|rpc|message|enum) (\w+)`)

// comments has each declaration of a file stand below a comment.
func (l *lint) comments(t *testing.T, f protoreflect.FileDescriptor) {
	text, err := os.ReadFile(f.Path())
	require.NoError(t, err)
	before := ""
	for line := range strings.Lines(string(text)) {
		if d := declaration.FindStringSubmatch(line); d != nil {
			l.check(strings.HasPrefix(strings.TrimSpace(before), "//"), "COMMENT_"+strings.ToUpper(d[1]), d[2])
		}
		before = line
	}
}

func TestProtoFilesKeepTheRulesOfBuf(t *testing.T) {
	t.Parallel()
	l, files := lint{used: map[string]int{}}, 0
	for f := range allFiles() {
		files++
		l.file(f)
		l.comments(t, f)
	}
	require.Equal(t, 3, files, "those of this folder")
	for name, times := range l.used {
		l.check(times == 1, "RPC_REQUEST_RESPONSE_UNIQUE", name)
	}
	needed := map[string]bool{}
	l.broken = slices.DeleteFunc(l.broken, func(b string) bool {
		needed[b] = true
		return exceptions[b] != ""
	})
	require.Empty(t, l.broken)
	for e := range exceptions {
		require.True(t, needed[e], "the exception %s is not needed any more", e)
	}
}

// allFiles are those of this folder.
func allFiles() func(yield func(protoreflect.FileDescriptor) bool) {
	return func(yield func(protoreflect.FileDescriptor) bool) {
		protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
			if !strings.HasPrefix(f.Path(), "forewarm/") && !strings.HasPrefix(f.Path(), "compat/") {
				return true
			}
			return yield(f)
		})
	}
}
