import { OPENAI_SCHEMAS, serverSchemas, type ServerSchemas } from './schemas/chat-servers.ts'

/** What the servers at an address require or accept, beyond the protocol that they speak. */
export interface ServerRules {
  /** Whether a chat message may have a list of several texts in any role, tool results included. */
  readonly takesTextParts: boolean
  /** Lowest maximum of output tokens in a responses request. */
  readonly minOutputTokens: number
  /** Whether ids of tool calls must consist of nine letters and digits. */
  readonly hasShortIds: boolean
  /** Whether names of tools must begin with a letter or an underscore, and have at least three characters. */
  readonly hasLongToolNames: boolean
  /** What it accepts of schemas. */
  readonly schemas: ServerSchemas
}

/**
 * Servers of which nothing is known. Many refuse a list of texts (DeepSeek: "invalid type: sequence, expected
 * a string"; templates of models on vLLM, SGLang and llama.cpp expect a string), and accept any maximum.
 */
export const PLAIN_SERVER: ServerRules = {
  takesTextParts: false,
  minOutputTokens: 1,
  hasShortIds: false,
  hasLongToolNames: false,
  schemas: OPENAI_SCHEMAS,
}

type Row = readonly [hosts: RegExp, rules: Partial<ServerRules>]

/** OpenAI's lowest `max_output_tokens`: "Expected a value >= 16". */
const OF_OPENAI = { takesTextParts: true, minOutputTokens: 16 } as const
/** Azure's addresses of models of any vendor. */
const OF_AZURE = { minOutputTokens: 16 } as const

/**
 * Rules by host name. Sources:
 * - OpenAI, API reference: `content` of every role is a string or an array of text parts;
 *   `max_output_tokens` is at least 16. Azure serves the same models and checks.
 * - OpenRouter, API reference: `content` is a string or `ContentPart[]` for user messages and for cache marks
 *   of all others; each provider gets the form that it takes.
 * - Google, OpenAI compatibility: parts are converted to Gemini's parts.
 * - Mistral, API reference: `content` of every role is a string or a list of chunks; ids of calls "must be
 *   a-z, A-Z, 0-9, with a length of 9".
 * - Moonshot, https://platform.kimi.ai/docs/api/tool-use: names of tools match `^[a-zA-Z_][a-zA-Z0-9-_]{2,63}$`.
 *
 * Other servers get one string as content, which every chat API takes. What each accepts of schemas is in
 * `schemas/chat-servers.ts`.
 */
const ROWS: readonly Row[] = [
  [/^(?:[a-z]{2}\.)?api\.openai\.com$/, OF_OPENAI],
  [/\.openai\.azure\.(?:com|us|cn)$/, OF_OPENAI],
  [/\.(?:cognitiveservices|services\.ai)\.azure\.(?:com|us|cn)$/, OF_AZURE],
  [/(?:^|\.)openrouter\.ai$/, { takesTextParts: true }],
  [/^generativelanguage\.googleapis\.com$/, { takesTextParts: true }],
  [/(?:^|\.)mistral\.ai$/, { takesTextParts: true, hasShortIds: true }],
  [/(?:^|\.)(?:moonshot\.(?:ai|cn)|kimi\.com)$/, { hasLongToolNames: true }],
]

/** Models of OpenAI, by the upstream's name, with or without a vendor's prefix. */
const OPENAI_MODELS = /(?:^|\/)(?:gpt-\d|chatgpt-|o\d(?![\w.]))/i
/** Models whose own templates accept ids of nine letters and digits alone, wherever they are served. */
const SHORT_ID_MODELS = /(?:^|[^a-z])(?:mistral|mixtral|ministral|codestral|devstral|magistral|pixtral)/i

/**
 * Finds the rules of the servers at an address for a model, by the upstream's name of it. `provider`: the kind of
 * service, because Azure may have any address.
 */
export function serverRulesOf(
  { base_url, provider }: { readonly base_url: string; readonly provider?: string },
  model: string,
): ServerRules {
  const host = URL.parse(base_url)?.hostname ?? ''
  const found = ROWS.find(([hosts]) => hosts.test(host))?.[1] ?? (provider === 'azure' ? OF_AZURE : undefined)
  const rules = { ...PLAIN_SERVER, ...found }
  return {
    ...rules,
    takesTextParts: rules.takesTextParts || OPENAI_MODELS.test(model),
    hasShortIds: rules.hasShortIds || SHORT_ID_MODELS.test(model),
    schemas: serverSchemas(host),
  }
}
