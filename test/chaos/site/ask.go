package site

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/forewarm/forewarm/internal/httpx"
)

// AskRack hands what a script is asked to the rack at a URL, and writes its answer.
func AskRack(ctx context.Context, url string, in io.Reader, out io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, in)
	if err != nil {
		return fmt.Errorf("asking the rack: %w", err)
	}
	resp, err := httpx.NewClient(httpx.Config{Timeout: 30 * time.Second}).Do(req)
	if err != nil {
		return fmt.Errorf("asking the rack: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the rack answers %s", resp.Status)
	}
	if _, err := io.Copy(out, resp.Body); err != nil {
		return fmt.Errorf("reading what the rack says: %w", err)
	}
	return nil
}
