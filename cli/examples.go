package cli

import (
	"strings"
)

// examples are what --help shows of each command, one or more lines each. Every
// one is run by a test, in a world in which what it names is there; those that a
// newcomer meets first run in forewarm up --demo as they stand.
var examplesOf = map[string]string{
	"allocate": "forewarm allocate --gpus 2 --model a100-80g --for 2h --name badger --wait\nforewarm " +
		"allocate --gpus 1 --pool demo-a100 --for 30m -n",
	"release":          "forewarm release otter",
	"extend":           "forewarm extend otter --by 1h",
	"allocations list": "forewarm allocations list\nforewarm allocations list --all --pool demo-a100",
	"allocations show": "forewarm allocations show otter",
	"exec": "forewarm exec heron -- hostname\nforewarm " +
		"exec heron --env SEED=7 -- sh -c 'echo $SEED $CUDA_VISIBLE_DEVICES'",
	"port": "forewarm port heron 8888\nforewarm port heron 0:8888",
	"cp":   "forewarm cp ./train.py heron:\nforewarm cp heron:train.py ./copy.py",
	"ssh": "forewarm ssh heron -- hostname\nforewarm " +
		"ssh heron --node 0 -- sh -c 'echo $CUDA_VISIBLE_DEVICES'",
	"env":              "forewarm env heron\nforewarm env heron --node 0 -o json",
	"wait":             "forewarm wait otter --timeout 5m\nforewarm wait prepare",
	"explain":          "forewarm explain otter\nforewarm explain a100\nforewarm explain nod_06h05jkfp1rxn8ak4tjdkaxhc4",
	"explain reserve":  "forewarm explain reserve --gpus 8 --model a100-80g --at 'tomorrow 09:00' --for 3h",
	"explain allocate": "forewarm explain allocate --gpus 8 --model a100-80g",
	"run": "forewarm run --gpus 2 --pool demo-a100 -- python3 -c 'print(6 * 7)'\n" +
		"forewarm run -d --gpus 1 --model a100-80g --max-runtime 2h --checkpoint USR1@60s --name train -- python3 " +
		"train.py\n" +
		"forewarm run -d --pool demo-a100 --array 0-9 --after prepare -- sh -c 'echo part $FOREWARM_ARRAY_INDEX'\n" +
		"forewarm run --script train.sh -- --epochs 3",
	"sbatch": "forewarm sbatch --parsable train.sh --epochs 3\n" +
		"forewarm sbatch --test-only -N 2 --gpus-per-node=4 -t 1-12 train.sh\n" +
		"forewarm sbatch -p demo-a100 -a 0-9%2 --wrap 'echo part $SLURM_ARRAY_TASK_ID'",
	"queue":       "forewarm queue\nforewarm queue --pool demo-a100",
	"jobs list":   "forewarm jobs list\nforewarm jobs list --all --mine --state failed,cancelled",
	"jobs show":   "forewarm jobs show prepare",
	"jobs events": "forewarm jobs events prepare\nforewarm jobs events -f prepare",
	"jobs logs":   "forewarm jobs logs prepare --tail 64KiB\nforewarm jobs logs -f prepare --since 10m",
	"jobs cancel": "forewarm jobs cancel train later\nforewarm jobs cancel --array arr_06h05jkfp1rxn8ak4tjdkaxhc4\n" +
		"forewarm jobs cancel --mine --state held --yes",
	"jobs requeue": "forewarm jobs requeue train\nforewarm jobs requeue --hold train",
	"jobs hold":    "forewarm jobs hold later",
	"jobs edit": "forewarm jobs edit later --max-runtime 2h --priority low\n" +
		"forewarm jobs edit later --to-pool demo-a100",
	"jobs release": "forewarm jobs release later",
	"jobs explain": "forewarm jobs explain later",
	"reserve": "forewarm reserve --gpus 2 --model a100-80g --at 'tomorrow 09:00' --for 3h\nforewarm " +
		"reserve --gpus 2 --pool demo-a100 --at 'mon 09:00' --for 3h --every weekday --tz Europe/Berlin --name morning",
	"reservations list":   "forewarm reservations list\nforewarm reservations list --state ready,booked",
	"reservations show":   "forewarm reservations show nightly",
	"reservations cancel": "forewarm reservations cancel nightly",
	"reservations claim":  "forewarm reservations claim nightly",
	"schedules list":      "forewarm schedules list",
	"schedules show":      "forewarm schedules show standup",
	"schedules pause":     "forewarm schedules pause standup",
	"schedules resume":    "forewarm schedules resume standup",
	"schedules delete":    "forewarm schedules delete standup --yes",
	"calendar":            "forewarm calendar demo-a100 --from 'mon 08:00' --for 12h --step 30m",
	"prewarm status":      "forewarm prewarm status",
	"prewarm pause":       "forewarm prewarm pause --for 2h --reason 'budget review'",
	"prewarm resume":      "forewarm prewarm resume",
	"plan show":           "forewarm plan show pln_06h05jkfp1rxn8ak4tjdkaxhc4",
	"plan reserve": "forewarm plan reserve --gpus 2 --model a100-80g --at 'tomorrow 09:00' --for 3h\n" +
		"forewarm plan reserve --gpus 4 --pool demo-a100 --not-before 'tomorrow 08:00' --not-after 'tomorrow 20:00' " +
		"--for 3h --name eval\n" +
		"forewarm plan reserve --gpus 8 --model a100-80g --nodes 2 --at 'mon 09:00' --for 3h --tz Europe/Berlin " +
		"--on-full queue -o json",
	"plan allocate": "forewarm plan allocate --gpus 2 --model a100-80g --for 2h",
	"plan claim":    "forewarm plan claim nightly",
	"plan release":  "forewarm plan release otter",
	"plan cancel":   "forewarm plan cancel nightly",
	"plan quota":    "forewarm plan quota beta --max-gpus 8",
	"plan pool":     "forewarm plan pool demo-a100 --max-nodes 6",
	"apply":         "forewarm apply pln_06h05jkfp1rxn8ak4tjdkaxhc4",
	"pools list":    "forewarm pools list -o wide",
	"pools show":    "forewarm pools show demo-a100",
	"pools create": "forewarm pools create lab --provisioner sim --instance-type sim-4xa100 --model a100-80g " +
		"--gpus-per-node 4 --memory 80 --max-nodes 2 --price 12.80 --simulated",
	"pools edit": "forewarm pools edit demo-a100 --max-nodes 6\nforewarm pools edit demo-a100 --paused=true\n" +
		"forewarm pools edit demo-a100 --idle-warn-after 1h --idle-reclaim-after 4h",
	"pools delete":     "forewarm pools delete spare --yes",
	"shares":           "forewarm shares demo-a100\nforewarm shares demo-a100 --users",
	"top":              "forewarm top --once\nforewarm top --once --pool demo-a100 -o jsonl",
	"nodes list":       "forewarm nodes list --state ready,booting",
	"nodes show":       "forewarm nodes show nod_06h05jkfp1rxn8ak4tjdkaxhc4",
	"nodes join":       "forewarm nodes join nod_06h05jkfp1rxn8ak4tjdkaxhc4",
	"nodes drain":      "forewarm nodes drain nod_06h05jkfp1rxn8ak4tjdkaxhc4",
	"nodes resume":     "forewarm nodes resume nod_06h05jkfp1rxn8ak4tjdkaxhc4",
	"pools label":      "forewarm pools label demo-a100 disk=nvme",
	"pools taint":      "forewarm pools taint demo-a100 licensed",
	"nodes label":      "forewarm nodes label nod_06h05jkfp1rxn8ak4tjdkaxhc4 disk=nvme",
	"nodes taint":      "forewarm nodes taint nod_06h05jkfp1rxn8ak4tjdkaxhc4 licensed",
	"nodes quarantine": "forewarm nodes quarantine nod_06h05jkfp1rxn8ak4tjdkaxhc4 --reason 'XID 79 on GPU 3' --yes",
	"events": "forewarm events --last 20\nforewarm events --subject nod_06h05jkfp1rxn8ak4tjdkaxhc4\n" +
		"forewarm events -f -o jsonl",
	"decisions list":     "forewarm decisions list --last 20",
	"decisions show":     "forewarm decisions show dec_06h05jkfp1rxn8ak4tjdkaxhc4",
	"replay":             "forewarm replay --pool demo-a100\nforewarm replay --pool demo-a100 --order arrival",
	"decisions replay":   "forewarm decisions replay dec_06h05jkfp1rxn8ak4tjdkaxhc4",
	"forecasts list":     "forewarm forecasts list --state closed --last 20",
	"forecasts show":     "forewarm forecasts show fct_06h05jkfp1rxn8ak4tjdkaxhc4",
	"report":             "forewarm report --last 1d",
	"report calibration": "forewarm report calibration --source llm --last 7d",
	"costs":              "forewarm costs --last 30d\nforewarm costs --by provisioner -o wide",
	"history":            "forewarm history --last 30d -o jsonl",
	"slurm check":        "forewarm slurm check --price 32.77\nforewarm slurm check --via 'ssh login1'",
	"slurm report": "forewarm slurm report --last 14d\n" +
		"forewarm slurm report --file jobs.sacct --suspend-time 5m --stays-up n1",
	"recovery show":    "forewarm recovery show",
	"recovery begin":   "forewarm recovery begin --reason 'restored the backup of 06:00'",
	"recovery confirm": "forewarm recovery confirm",
	"login": "forewarm login --server https://forewarm.example.com --key-file my.key\npass forewarm | " +
		"forewarm login --key-file -",
	"whoami":          "forewarm whoami",
	"contexts list":   "forewarm contexts list",
	"contexts delete": "forewarm contexts delete default -n",
	"contexts use":    "forewarm contexts use default",
	"orgs list":       "forewarm orgs list",
	"orgs show":       "forewarm orgs show beta",
	"orgs create":     "forewarm orgs create gamma --max-gpus 8 --speculation-per-day 50",
	"orgs delete":     "forewarm orgs delete beta --yes",
	"quota show":      "forewarm quota show beta",
	"quota usage":     "forewarm quota usage beta --hours 24",
	"quota set":       "forewarm quota set beta --max-gpus 32 --max-bookings none --cohort research --borrowing 8",
	"users list":      "forewarm users list",
	"users create":    "forewarm users create bob@example.com --role member",
	"users caps": "forewarm users caps ada@example.com --max-gpus 4 --max-per-day 50 --max-lead 7d " +
		"--max-window 8h",
	"users delete": "forewarm users delete ada@example.com --yes",
	"key create": "forewarm key create agent-1 --kind agent --max-gpus 8 --max-per-day 20 --max-lead 1d " +
		"--max-window 4h --out agent.key",
	"key list":   "forewarm key list",
	"key adopt":  "forewarm key adopt ci",
	"key revoke": "forewarm key revoke ci --yes",
	"api": "forewarm api GET /v1/allocations\nforewarm api POST /v1/allocations -d " +
		"'{\"gpus\":1,\"model\":\"a100-80g\"}'",
	"version": "forewarm version",
}

// exampleOf is the example of a command, as help texts show it.
func exampleOf(path string) string {
	text, ok := examplesOf[strings.TrimPrefix(path, "forewarm ")]
	if !ok {
		return ""
	}
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}
