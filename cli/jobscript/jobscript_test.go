package jobscript_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/jobscript"
)

func environment(name string) string { return "the " + name }

func parse(text string) (jobscript.Script, error) {
	return jobscript.Reader{Getenv: environment}.Read(text)
}

// A script of a Slurm cluster says what it needs, and its own lines count last.
func TestScriptOfSlurm(t *testing.T) {
	t.Parallel()
	const text = `#!/bin/bash -l
# Trains the model.
#SBATCH --job-name=train -p gpu
##SBATCH --exclusive
#SBATCH -N 2 --gres=gpu:a100:4   # four each

#SBATCH --time 1-12 -o out.%j --mem=64G -e err.%j
#SBATCH --mail-type=END
#FW --priority low --env 'NAME=a b'
echo "$@"
#SBATCH --nodes=9
`
	s, err := parse(text)
	require.NoError(t, err)
	require.Equal(t, []string{"--name=train", "--pool=gpu", "--model=a100", "--max-runtime=36h0m0s", "--nodes=2",
		"--gpus-per-node=4", "--env=SLURM_MEM_PER_NODE=65536", "--priority", "low", "--env", "NAME=a b"}, s.Flags)
	require.Len(t, s.Notes, 3)
	require.Contains(t, s.Notes[0], "left out: --output, --error: ")
	require.Contains(t, s.Notes[0], "forewarm jobs logs")
	require.Equal(t, []string{"/bin/bash", "-l", "-c", `eval "$(cat)"`, "train.sh", "x", "y z"},
		s.Command("train.sh", []string{"x", "y z"}))
	require.True(t, strings.HasSuffix(string(s.Input), text))
	require.NotContains(t, strings.TrimSuffix(string(s.Input), text), "\n", "lines keep their numbers")
}

// What sbatch takes for a comment is one here, too: what stands behind blanks, behind another # or behind the first
// command. That of the first is said, as it is hard to see.
func TestCommentsOfSlurm(t *testing.T) {
	t.Parallel()
	s, err := parse("#!/bin/sh\n  #SBATCH -J a --nosuch 'x\n##SBATCH -J b\n# SBATCH -J c\n\n#SBATCHX -J d\n" +
		"\t#FW --gpus 2\n#SBATCH \t-N1\t# -J e\n: a command\n#SBATCH -J f\n#FW --name g\n")
	require.NoError(t, err)
	require.Equal(t, []string{"--nodes=1", "--gpus", "2"}, s.Flags)
	require.Equal(t, []string{"line 2: it does not count, as blanks before #SBATCH make it a comment"}, s.Notes)
}

func tasks(all, perNode string) string {
	return "--env=SLURM_NTASKS=" + all + " --env=SLURM_NPROCS=" + all + " --env=SLURM_NTASKS_PER_NODE=" + perNode
}

func TestFlagsOfSlurm(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"-J x":                              "--name=x",
		"-Jx":                               "--name=x",
		"-t 90":                             "--max-runtime=1h30m0s",
		"-t90:30":                           "--max-runtime=1h30m30s",
		"-t 2:00:00":                        "--max-runtime=2h0m0s",
		"-t 1-2":                            "--max-runtime=26h0m0s",
		"-t 1-2:30":                         "--max-runtime=26h30m0s",
		"-t 1-0:0:5":                        "--max-runtime=24h0m5s",
		"--nodes=2-2":                       "--nodes=2",
		"-G 3":                              "--gpus=3",
		"--gpus=h100:3":                     "--model=h100 --gpus=3",
		"--gpus-per-node=4":                 "--gpus=4",
		"-N2 --gpus-per-node=h100:4":        "--model=h100 --nodes=2 --gpus-per-node=4",
		"--gres gpu":                        "--gpus=1",
		"--gres=gpu:2":                      "--gpus=2",
		"--gres=gpu:a100":                   "--model=a100 --gpus=1",
		"-p gpu":                            "--pool=gpu",
		"-c 8":                              "--env=SLURM_CPUS_PER_TASK=8",
		"-a 0-9:3":                          "--array=0-9:3",
		"--array=1,3-5%2":                   "--array=1,3-5%2",
		"-d afterok:job_1:job_2,afterany:x": "--after=job_1:afterok --after=job_2:afterok --after=x:afterany",
		"-D /data":                          "--dir=/data",
		"-C nvme&rack=r1":                   "--constraint=nvme --constraint=rack=r1",
		"--prefer=nvme":                     "--prefer=nvme",
		"-x nod_1,nod_2":                    "--exclude=nod_1 --exclude=nod_2",
		"--requeue":                         "--retries-lost=3",
		"--no-requeue":                      "--retries-lost=0",
		"--signal=B:USR1@60":                "--checkpoint=B:USR1@60s",
		"--signal=USR1@120 -t 1":            "--max-runtime=1m0s --checkpoint=USR1@59s",
		"--signal=B:USR1 -t 0:30":           "--max-runtime=30s --checkpoint=B:USR1@29s",
		"-t 2 --signal=USR1":                "--max-runtime=2m0s --checkpoint=USR1",
		"--signal=SIGTERM":                  "--checkpoint=TERM",
		"--signal=R:10@5":                   "--checkpoint=USR1@5s",
		"--begin=now+2hours":                "--not-before=in 2h0m0s",
		"--begin=now+90":                    "--not-before=in 1m30s",
		"-b 16:30:00":                       "--not-before=16:30",
		"--begin=2026-11-20":                "--not-before=2026-11-20T00:00",
		"--begin=2026-11-20T09:00:00":       "--not-before=2026-11-20T09:00:00",
		"--begin=tomorrow":                  "--not-before=tomorrow 00:00",
		"-H":                                "--hold",
		"--export=NONE":                     "",
		"--export=ALL,A=1,HOME":             "--env=A=1 --env=HOME=the HOME",
		"-n1 --ntasks-per-node=1 -c 8":      "--env=SLURM_CPUS_PER_TASK=8",
		"-n 4 --gpus-per-task=1":            "--gpus=4 --nodes=1 " + tasks("4", "4") + " --env=SLURM_GPUS_PER_TASK=1",
		"-n 4 -N 2 --gpus-per-node=2":       "--nodes=2 --gpus-per-node=2 " + tasks("4", "2"),
		"-N2 --ntasks-per-node=4 -G 8":      "--gpus=8 --nodes=2 " + tasks("8", "4"),
		"-n 8 --ntasks-per-node=4":          "--nodes=2 " + tasks("8", "4"),
		"-n 2 --ntasks-per-node=4":          "--nodes=1 " + tasks("2", "2"),
		"-N2 --gpus-per-task=h100:2":        "--model=h100 --nodes=2 --gpus-per-node=2 --env=SLURM_GPUS_PER_TASK=2",
		"--gpus-per-task=2":                 "--gpus=2 --env=SLURM_GPUS_PER_TASK=2",
		"--mem=2G":                          "--env=SLURM_MEM_PER_NODE=2048",
		"--mem=0 --mem-per-cpu=1500K":       "--env=SLURM_MEM_PER_CPU=2",
		"--mem-per-gpu=1T":                  "--env=SLURM_MEM_PER_GPU=1048576",
		"--exclusive -p gpu":                "--exclusive --pool=gpu",
		"-d afternotok:1,singleton -J x":    "--after=1:afternotok --after=singleton --name=x",
		"-s -O --priority=7 --contiguous":   "",
		"--comment='a b' -J c":              "--name=c",
		"-A lab --qos=high --nice -J c":     "--name=c",
		"--nice=5 --wckey=w --parsable":     "",
		"-Q -v --mail-user=a@b.c":           "",
	} {
		s, err := parse("#SBATCH " + given + "\ntrue\n")
		require.NoError(t, err, given)
		require.Equal(t, want, strings.Join(s.Flags, " "), given)
	}
}

// Memory is bounded on nodes that bound it, and what is said of it holds of those alone.
func TestNoteOnMemory(t *testing.T) {
	t.Parallel()
	s, err := parse("#SBATCH --mem=999G\ntrue\n")
	require.NoError(t, err)
	require.Contains(t, strings.Join(s.Notes, "\n"), "left out: --mem: where the node bounds memory, a job has that "+
		"of its nodes in proportion to its GPUs, which FOREWARM_MEMORY_BYTES says there")
}

// What cannot be had is refused by its name, and by its line.
func TestScriptsThatAreRefused(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"":                                      "it is empty",
		"a\x00b":                                "it is no text",
		"#!/bin/sh\r\ntrue\r\n":                 "dos2unix",
		"#!/usr/bin/env python3\n":              "is none of the shells",
		"#!\n":                                  "is none of the shells",
		strings.Repeat("x", 1<<18):              "262144 bytes",
		"\n#SBATCH --exclusive=user\n":          "line 2: --exclusive: user cannot be had",
		"#SBATCH -w n1\n":                       "--nodelist: it cannot be had: write --constraint",
		"#SBATCH --deadline=noon\n":             "--max-runtime",
		"#SBATCH --core-spek=a\n":               "does not know --core-spek",
		"#SBATCH -n 5 -N 2\n":                   "5 tasks on 2 nodes cannot be had",
		"#SBATCH -n 3 -G 2 --gpus-per-task=1\n": "are not as many as is said beside it",
		"#SBATCH -G 1 --gpus-per-node=2\n":      "--gpus: 1 is no multiple of --gpus-per-node: 2",
		"#SBATCH -G 5 --gpus-per-node=4\n":      "--gpus: 5 is no multiple of --gpus-per-node: 4",
		"#SBATCH -N 3 -G 4 --gpus-per-node=2\n": "--gpus: 4 are not 2 on each of 3 nodes",
		"#SBATCH -J x\xffy\n":                   "is not UTF-8",
		"#SBATCH --mem=lots\n":                  "is no size",
		"#SBATCH --mem=9999999T\n":              "no node has so much",
		"#SBATCH --open-mode=a\n":               "neither append nor truncate",
		"#SBATCH -c none\n":                     "must be a whole number of 1 or more",
		"#SBATCH --wait\n":                      "forewarm wait JOB",
		"#SBATCH --wrap=true\n":                 "for the command line of sbatch",
		"#SBATCH --test-only\n":                 "--dry-run",
		"#SBATCH -t UNLIMITED\n":                "UNLIMITED: no limit cannot be had: say how long it may run, at most",
		"#SBATCH -x n[1-3]\n":                   "one by one",
		"#SBATCH -C a|b\n":                      "joined by & alone",
		"#SBATCH -r\n":                          "does not know -r",
		"#SBATCH --N=2\n":                       "does not know --N",
		"#SBATCH gpu\n":                         `"gpu" is no flag`,
		"#SBATCH --time\n":                      "--time needs a value",
		"#SBATCH --hold=yes\n":                  "--hold takes no value",
		"#SBATCH -t soon\n":                     "--time: \"soon\" is no length of time",
		"#SBATCH -t 1:2:3:4\n":                  "is no length of time",
		"#SBATCH -t 0\n":                        "no limit cannot be had",
		"#SBATCH -N 2-4\n":                      "one number of nodes",
		"#SBATCH -G none\n":                     `"none" must be a whole number`,
		"#SBATCH --gres=gpu:2,license:1\n":      "there are GPUs alone",
		"#SBATCH --gres=gpus\n":                 "there are GPUs alone",
		"#SBATCH -p a,b\n":                      "one pool",
		"#SBATCH -d afterok:1?afterok:2\n":      "as in afterok:JOB",
		"#SBATCH -d after:1+5\n":                "cannot be had",
		"#SBATCH --begin=teatime\n":             "is no time",
		"#SBATCH -J 'x\n":                       "a quote in it has no end",
		"#FW --name \\":                         "a quote in it has no end",
	} {
		_, err := parse(text)
		require.ErrorContains(t, err, says, "%.40q", text)
	}
}

func TestInterpreters(t *testing.T) {
	t.Parallel()
	for first, want := range map[string]string{"": "/bin/sh", "#!/bin/zsh -e": "/bin/zsh -e",
		"#!/usr/bin/env bash": "/usr/bin/env bash", "#!/usr/bin/env -S bash -eu": "/usr/bin/env bash -eu"} {
		s, err := parse(first + "\ntrue\n")
		require.NoError(t, err, first)
		command := s.Command("x", nil)
		require.Equal(t, want, strings.Join(command[:len(command)-3], " "))
	}
}

// A script runs as its file would: with its arguments, and nothing of it for what it runs to read.
func TestScriptsRun(t *testing.T) {
	t.Parallel()
	s, err := parse("#!/bin/sh\nset -e\nread line || echo \"$0: $# of $*\"\ncat <<END\nhere $1\nEND\nexit 7\n")
	require.NoError(t, err)
	command := s.Command("job.sh", []string{"a b", "c"})
	shell := exec.Command(command[0], command[1:]...)
	shell.Stdin = bytes.NewReader(s.Input)
	out, err := shell.CombinedOutput()
	require.Equal(t, "job.sh: 2 of a b c\nhere a b\n", string(out))
	require.Equal(t, 7, shell.ProcessState.ExitCode(), err)
}

// Flags of the command line take the place of those of the script, and count before lines with #FW.
func TestCommandLineOfSbatch(t *testing.T) {
	t.Parallel()
	const text = "#SBATCH -J a -C x -G 4 --requeue -o o.txt -n 2 -W\n#FW --name b --gpus 9\ntrue\n"
	for _, c := range []struct {
		given []jobscript.Flag
		want  string
	}{
		{nil, "--name=a --constraint=x --retries-lost=3 --gpus=4 --nodes=1 " + tasks("2", "2") + " --name b --gpus 9"},
		{[]jobscript.Flag{{Long: "job-name", Value: "c"}, {Long: "no-requeue"}}, "--constraint=x --gpus=4 --nodes=1 " +
			tasks("2", "2") + " --name b --gpus 9 --name=c --retries-lost=0"},
		{[]jobscript.Flag{{Long: "gres", Value: "gpu:1"}, {Long: "ntasks", Value: "1"}, {Long: "constraint", Value: "y"}},
			"--name=a --retries-lost=3 --name b --gpus 9 --constraint=y --gpus=1"},
	} {
		s, err := jobscript.Reader{Getenv: environment, Sbatch: true, Given: c.given}.Read(text)
		require.NoError(t, err)
		require.Equal(t, c.want, strings.Join(s.Flags, " "))
		require.Equal(t, jobscript.Submission{Wait: true, Output: "o.txt"}, s.Submission)
		require.True(t, s.Slurm)
	}
	_, err := jobscript.Reader{Sbatch: true, Given: []jobscript.Flag{{Long: "uid", Value: "0"}}}.Read("x")
	require.EqualError(t, err, "--uid: it cannot be had: each attempt has a Unix user of its own")
}
