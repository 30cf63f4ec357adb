/** A provider as users choose it; `type` is its number in channels. */
export interface Provider {
  readonly type: number
  readonly name: string
  /** Whether a channel must have an address. */
  readonly needsUrl?: true
}

/** Providers with their own address, and the options for all others. */
export const PROVIDERS: readonly Provider[] = [
  { type: 1, name: 'OpenAI' },
  { type: 14, name: 'Anthropic' },
  { type: 24, name: 'Google Gemini' },
  { type: 20, name: 'OpenRouter' },
  { type: 43, name: 'DeepSeek' },
  { type: 42, name: 'Mistral' },
  { type: 48, name: 'xAI' },
  { type: 25, name: 'Moonshot' },
  { type: 26, name: 'Zhipu' },
  { type: 17, name: 'Alibaba' },
  { type: 40, name: 'SiliconFlow' },
  { type: 45, name: 'VolcEngine' },
  { type: 27, name: 'Perplexity' },
  { type: 34, name: 'Cohere' },
  { type: 38, name: 'Jina' },
  { type: 4, name: 'Ollama' },
]

/** Any upstream that speaks chat completions. */
export const COMPATIBLE_TYPE = 8
