/** An example of a call for one program. */
export interface Snippet {
  readonly name: string
  readonly code: string
}

/** The placeholder for the key until the user inserts it. */
export const KEY_PLACEHOLDER = '$SLUICE_KEY'

/** Example calls with the URL of the gateway, a model, and the key or the placeholder for it. */
export function snippetsOf({
  origin,
  model,
  key,
}: {
  readonly origin: string
  readonly model: string
  readonly key: string | undefined
}): readonly Snippet[] {
  const isVariable = key === undefined
  const shell = key ?? KEY_PLACEHOLDER
  const python = isVariable ? 'os.environ["SLUICE_KEY"]' : JSON.stringify(key)
  const imports = isVariable ? 'import os\n' : ''
  const named = JSON.stringify(model)
  return [
    {
      name: 'curl',
      code: `curl ${origin}/v1/chat/completions \\
  -H "Authorization: Bearer ${shell}" \\
  -H "Content-Type: application/json" \\
  -d '${quoted(JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }))}'`,
    },
    {
      name: 'OpenAI',
      code: `${imports}from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key=${python})
completion = client.chat.completions.create(
    model=${named},
    messages=[{"role": "user", "content": "Hello"}],
)
print(completion.choices[0].message.content)`,
    },
    {
      name: 'Anthropic',
      code: `${imports}from anthropic import Anthropic

client = Anthropic(base_url="${origin}", api_key=${python})
message = client.messages.create(
    model=${named},
    max_tokens=1024,
    messages=[{"role": "user", "content": "Hello"}],
)
print(message.content[0].text)`,
    },
    {
      name: 'Claude Code',
      code: `export ANTHROPIC_BASE_URL=${origin}
export ANTHROPIC_AUTH_TOKEN=${shell}
export ANTHROPIC_MODEL=${model}
claude`,
    },
    {
      name: 'opencode',
      code: `// opencode.json
${JSON.stringify(
  {
    $schema: 'https://opencode.ai/config.json',
    provider: {
      sluice: {
        npm: '@ai-sdk/openai-compatible',
        options: { baseURL: `${origin}/v1`, apiKey: key ?? '{env:SLUICE_KEY}' },
        models: { [model]: {} },
      },
    },
    model: `sluice/${model}`,
  },
  null,
  2,
)}`,
    },
    {
      name: 'codex',
      code: `# ~/.codex/config.toml
model = ${named}
model_provider = "sluice"

[model_providers.sluice]
name = "Sluice"
base_url = "${origin}/v1"
env_key = "SLUICE_KEY"
wire_api = "responses"

# before codex is started
export SLUICE_KEY=${isVariable ? 'sk-…' : key}`,
    },
  ]
}

/** Quotes a text for a shell, in single quotes. */
function quoted(text: string): string {
  return text.replaceAll("'", `'\\''`)
}
