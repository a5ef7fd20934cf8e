package jobscript_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/cli/jobscript"
)

func parse(text string) (jobscript.Script, error) {
	return jobscript.Parse(text, func(name string) string { return "the " + name })
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
		"--gpus-per-node=4", "--priority", "low", "--env", "NAME=a b"}, s.Flags)
	require.Len(t, s.Notes, 3)
	require.Contains(t, s.Notes[0], "left out: --output, --error: ")
	require.Contains(t, s.Notes[0], "forewarm jobs logs")
	require.Equal(t, []string{"/bin/bash", "-l", "-c", `eval "$(cat)"`, "train.sh", "x", "y z"},
		s.Command("train.sh", []string{"x", "y z"}))
	require.Equal(t, text, string(s.Input))
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

// What cannot be had is refused by its name, and by its line.
func TestScriptsThatAreRefused(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"":                                 "it is empty",
		"a\x00b":                           "it is no text",
		"#!/bin/sh\r\ntrue\r\n":            "dos2unix",
		"#!/usr/bin/env python3\n":         "is none of the shells",
		"#!\n":                             "is none of the shells",
		strings.Repeat("x", 1<<18):         "262144 bytes",
		"\n#SBATCH --exclusive\n":          "line 2: --exclusive: it cannot be had: ask for all GPUs of a node",
		"#SBATCH --exclusive=user\n":       "ask for all GPUs of a node",
		"#SBATCH -w n1\n":                  "--nodelist: it cannot be had: write --constraint",
		"#SBATCH --deadline=noon\n":        "--max-runtime",
		"#SBATCH --core-spec=a\n":          "does not know --core-spec",
		"#SBATCH -t UNLIMITED\n":           "UNLIMITED: no limit cannot be had: say how long it may run, at most 30 days",
		"#SBATCH --ntasks-per-node=4\n":    "once on each node",
		"#SBATCH -x n[1-3]\n":              "one by one",
		"#SBATCH -C a|b\n":                 "joined by & alone",
		"#SBATCH -s\n":                     "does not know -s",
		"#SBATCH --N=2\n":                  "does not know --N",
		"#SBATCH gpu\n":                    `"gpu" is no flag`,
		"#SBATCH --time\n":                 "--time needs a value",
		"#SBATCH --hold=yes\n":             "--hold takes no value",
		"#SBATCH -t soon\n":                "--time: \"soon\" is no length of time",
		"#SBATCH -t 1:2:3:4\n":             "is no length of time",
		"#SBATCH -t 0\n":                   "no limit cannot be had",
		"#SBATCH -N 2-4\n":                 "one number of nodes",
		"#SBATCH -G none\n":                `"none" is no number`,
		"#SBATCH --gres=gpu:2,license:1\n": "there are GPUs alone",
		"#SBATCH --gres=gpus\n":            "there are GPUs alone",
		"#SBATCH -p a,b\n":                 "one pool",
		"#SBATCH -d singleton\n":           "runs one at a time",
		"#SBATCH -d afterok:1?afterok:2\n": "as in afterok:JOB",
		"#SBATCH -d after:1+5\n":           "cannot be had",
		"#SBATCH --begin=teatime\n":        "is no time",
		"#SBATCH -n 4\n":                   "once on each node",
		"#SBATCH -J 'x\n":                  "a quote in it has no end",
		"#FW --name \\":                    "a quote in it has no end",
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
