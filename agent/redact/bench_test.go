package redact_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/forewarm/forewarm/agent/redact"
)

// mix makes the lines that a benchmark reads.
type mix struct {
	name string
	line func(r *rand.Rand, i int) string
}

// ordinary are the lines that logs are full of.
var ordinary = []mix{{"training", trainingLine}, {"sacct", sacctLine}, {"nginx", nginxLine},
	{"traceback", tracebackLine}}

func pickWord(r *rand.Rand, words ...string) string { return words[r.IntN(len(words))] }

func trainingLine(r *rand.Rand, i int) string {
	at := fmt.Sprintf("2026-07-01T09:%02d:%02dZ", i/60%60, i%60)
	switch r.IntN(6) {
	case 0:
		return fmt.Sprintf("%s INFO [rank%d] Saving checkpoint step_%d (loss %.4f, best %.4f)",
			at, r.IntN(8), i*100, r.Float64(), r.Float64())
	case 1:
		return fmt.Sprintf("GPU %d: NVIDIA H100 80GB HBM3, %d C, %d W, %d MiB / 81559 MiB",
			r.IntN(8), 40+r.IntN(40), 100+r.IntN(600), r.IntN(81559))
	case 2:
		return fmt.Sprintf("train: %3d%%|######    | %d/48000 [%02d:%02d<1:02:%02d, %.2fit/s]",
			r.IntN(100), i, i/60%60, i%60, i%60, 3*r.Float64())
	case 3:
		return fmt.Sprintf("[%s][__main__][INFO] - val/acc@1: %.3f val/acc@5: %.3f (seed=%d)",
			at, r.Float64(), r.Float64(), r.IntN(100))
	default:
		return fmt.Sprintf("%s INFO epoch %d/90 step %d of 48000 loss=%.4f lr=%.1e tokens/s=%.1f mem %.1fGiB",
			at, i/500, i, r.Float64(), 1e-4*r.Float64(), 20000*r.Float64(), 80*r.Float64())
	}
}

func sacctLine(r *rand.Rand, i int) string {
	return fmt.Sprintf("%d|%s|%s|%s|%d|2026-07-01T%02d:%02d:00|2026-07-01T%02d:%02d:30|"+
		"billing=%d,cpu=%d,gres/gpu=%d,mem=%dG,node=1",
		812000+i, pickWord(r, "train_resnet50", "sweep-lr", "eval", "interactive"),
		pickWord(r, "gpu", "gpu-long", "debug"),
		pickWord(r, "COMPLETED", "FAILED", "RUNNING", "CANCELLED"), r.IntN(100000), r.IntN(24), r.IntN(60), r.IntN(24),
		r.IntN(60),
		r.IntN(128), r.IntN(128), r.IntN(8), r.IntN(512))
}

func nginxLine(r *rand.Rand, i int) string {
	agent := pickWord(r,
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
		"curl/8.5.0", "python-requests/2.32.3")
	return fmt.Sprintf(`10.%d.%d.%d - - [01/Jul/2026:09:%02d:%02d +0000] "%s /%s HTTP/1.1" %d %d "-" "%s"`,
		r.IntN(256), r.IntN(256), r.IntN(256), i/60%60, i%60, pickWord(r, "GET", "POST"),
		pickWord(r, "v1/jobs?limit=100", "healthz", "static/app.js", "v1/chat/completions"), 200+r.IntN(4)*100,
		r.IntN(1<<20), agent)
}

func tracebackLine(r *rand.Rand, _ int) string {
	return pickWord(r,
		"Traceback (most recent call last):",
		fmt.Sprintf(`  File "/opt/conda/lib/python3.11/site-packages/torch/nn/modules/module.py", line %d, in _call_impl`,
			r.IntN(2000)),
		"    return forward_call(*args, **kwargs)",
		fmt.Sprintf(`  File "/app/train.py", line %d, in <module>`, r.IntN(500)),
		"    outputs = model(inputs, attention_mask=mask)",
		"    loss = self.criterion(outputs.logits, batch['labels'])",
		fmt.Sprintf("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate %.2f GiB. GPU %d has a "+
			"total capacity of 79.11 GiB",
			20*r.Float64(), r.IntN(8)),
		"RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
		`ValueError: invalid literal for int() with base 10: 'auto'`,
	)
}

func secretLine(r *rand.Rand, i int) string {
	word := make([]byte, 24)
	for j := range word {
		word[j] = alphabets["r"][r.IntN(len(alphabets["r"]))]
	}
	return fmt.Sprintf(pickWord(r,
		"export WANDB_API_KEY=%s for /home/alice/run%d.py on 10.0.0.7",
		"postgres://app:%s@db%d.lab.example.com/lab user=bsmith",
		`{"password": "%s", "token": "hunter%d", "host": "trainer7"}`,
		"curl -u alice:%s https://git.example.com/api/%d -H 'Authorization: Bearer abcdef123456'",
		"hf_%s and mail bob.smith%d@example.co.uk from fe80::1ff:fe23:4567:890a",
	), word, i)
}

func benchLines(line func(*rand.Rand, int) string, n int) []string {
	random := rand.New(rand.NewPCG(1, 2))
	lines := make([]string, n)
	for i := range lines {
		lines[i] = line(random, i)
	}
	return lines
}

func ordinaryLine(r *rand.Rand, i int) string { return ordinary[r.IntN(len(ordinary))].line(r, i) }

// BenchmarkRedact measures the lines a second that one core redacts. 20,000 of ordinary logs and 5,000 full of secrets
// keep an agent from falling behind.
func BenchmarkRedact(b *testing.B) {
	r := newScrubber(b, redact.Config{})
	for _, mix := range append([]mix{{"ordinary", ordinaryLine}, {"secrets", secretLine}}, ordinary...) {
		b.Run(mix.name, func(b *testing.B) {
			lines, stream, n := benchLines(mix.line, 1000), r.NewStream(), 0
			for b.Loop() {
				stream.Redact(lines[n%len(lines)])
				n++
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}
