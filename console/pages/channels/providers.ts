/** A provider in the list that users choose from; `type` is the number that channels store for it. */
export interface Provider {
  readonly type: number
  readonly name: string
  /** The beginning of suggested channel names, if it differs from the provider's name. */
  readonly short?: string
  /** Whether a channel must have an address. */
  readonly needsUrl?: true
}

/** Type of a channel at Azure; `other` is its API version. */
export const AZURE_TYPE = 3
/** Type of a channel at Bedrock; `other` is its region. */
export const BEDROCK_TYPE = 33
/** Type of a channel at Vertex AI; `other` is its location. */
export const VERTEX_TYPE = 41

/** Known providers. A channel to any other upstream counts as OpenAI-compatible. */
export const PROVIDERS: readonly Provider[] = [
  { type: 1, name: 'OpenAI' },
  { type: 14, name: 'Anthropic' },
  { type: 24, name: 'Google Gemini' },
  { type: AZURE_TYPE, name: 'Azure OpenAI', short: 'azure', needsUrl: true },
  { type: BEDROCK_TYPE, name: 'AWS Bedrock', short: 'bedrock' },
  { type: VERTEX_TYPE, name: 'Google Vertex AI', short: 'vertex' },
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

/** Type of a channel to any upstream that offers chat completions. */
export const OPENAI_COMPATIBLE_TYPE = 8

/** Whether a channel of a type must have an address. */
export function needsUrl(type: number): boolean {
  return type === OPENAI_COMPATIBLE_TYPE || PROVIDERS.find((one) => one.type === type)?.needsUrl === true
}

/** The beginning of the suggested name for a channel of this type. */
export function channelNamePrefix(type: number): string {
  const provider = PROVIDERS.find((one) => one.type === type)
  return provider?.short ?? provider?.name.toLowerCase().replaceAll(' ', '-') ?? 'channel'
}
