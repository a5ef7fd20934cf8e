package llm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/forewarm/forewarm/internal/obs"
)

// Config says which model to ask, and where.
type Config struct {
	BaseURL string     // of the OpenAI-compatible API, for example http://localhost:11434/v1
	Model   string     // name of the model there
	Key     obs.Secret // API key; empty for servers that want none
	// "max_tokens" (default; every server knows it) or "max_completion_tokens" (what some newer models insist on)
	TokensField string
}

// The values of Config.TokensField.
const (
	MaxTokens           = "max_tokens"
	MaxCompletionTokens = "max_completion_tokens"
)

// WithDefaults returns c with its zero fields filled in.
func (c Config) WithDefaults() Config {
	if c.TokensField == "" {
		c.TokensField = MaxTokens
	}
	return c
}

// Validate says what is wrong with c, or returns nil. It expects WithDefaults to
// have been applied.
func (c Config) Validate() error {
	u, err := url.Parse(c.BaseURL)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return errors.New("base_url: want http:// or https:// and a host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("base_url: must not hold a user, a query or a fragment; put the key into its own field")
	case c.Model == "":
		return errors.New("model: missing")
	case c.TokensField != MaxTokens && c.TokensField != MaxCompletionTokens:
		return fmt.Errorf("tokens_field: want %s or %s", MaxTokens, MaxCompletionTokens)
	default:
		return nil
	}
}

// Client is the Model behind an OpenAI-compatible chat/completions endpoint: the
// one interface that hosted models, Ollama and vLLM share.
type Client struct {
	cfg  Config
	http *http.Client
}

// NewClient returns a Client that calls through httpClient, which the caller
// makes and whose time limits and allowed destinations hold.
func NewClient(c Config, httpClient *http.Client) (*Client, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("checking the language model configuration: %w", err)
	}
	return &Client{cfg: c, http: httpClient}, nil
}

// Ask makes one call.
func (c *Client) Ask(ctx context.Context, r Request) (Reply, error) {
	doer := &recorder{client: c.http}
	config := openai.DefaultConfig(c.cfg.Key.Reveal())
	config.BaseURL = strings.TrimRight(c.cfg.BaseURL, "/")
	config.HTTPClient = doer
	response, err := openai.NewClientWithConfig(config).CreateChatCompletion(ctx, c.completionRequest(r))
	if err != nil {
		return Reply{}, doer.explainFailure(ctx, err)
	}
	reply := Reply{Model: response.Model, PromptTokens: response.Usage.PromptTokens,
		CompletionTokens: response.Usage.CompletionTokens}
	if len(response.Choices) != 1 {
		return reply, invalidAnswer("%d choices, want 1", len(response.Choices))
	}
	return readChoice(reply, response.Choices[0])
}

func (c *Client) completionRequest(r Request) openai.ChatCompletionRequest {
	request := openai.ChatCompletionRequest{
		Model: c.cfg.Model,
		Messages: []openai.ChatCompletionMessage{
			{Role: openai.ChatMessageRoleSystem, Content: r.System},
			{Role: openai.ChatMessageRoleUser, Content: r.User},
		},
		ResponseFormat: &openai.ChatCompletionResponseFormat{
			Type: openai.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{
				Name: r.SchemaName, Schema: r.Schema, Strict: true,
			},
		},
	}
	if c.cfg.TokensField == MaxCompletionTokens {
		request.MaxCompletionTokens = r.MaxTokens
	} else {
		request.MaxTokens = r.MaxTokens
	}
	return request
}

// readChoice takes the text out of a choice. The reply is returned beside the error
// too: its tokens were spent.
func readChoice(reply Reply, choice openai.ChatCompletionChoice) (Reply, error) {
	message := choice.Message
	switch {
	case message.Refusal != "":
		return reply, &Error{Kind: KindRefused}
	case len(message.ToolCalls) > 0 || message.FunctionCall != nil:
		return reply, invalidAnswer("it calls a tool, and there are none")
	case choice.FinishReason == openai.FinishReasonLength:
		return reply, invalidAnswer("it was cut off")
	case choice.FinishReason == openai.FinishReasonContentFilter:
		return reply, &Error{Kind: KindRefused}
	case strings.TrimSpace(message.Content) == "":
		return reply, invalidAnswer("it is empty")
	}
	reply.Text = message.Content
	return reply, nil
}

func invalidAnswer(format string, args ...any) *Error {
	return &Error{Kind: KindInvalid, Err: fmt.Errorf("reading the answer: "+format, args...)}
}

// retryAfter reads the header's form in seconds; dates are rare, and 0 means
// unknown. It is bounded, as everything a server says is.
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, 24*3600)) * time.Second
}
