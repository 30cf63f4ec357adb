import { CLIENT_PROTOCOLS, type ProtocolName, PROTOCOLS, type ServedProtocol } from '@sluice/wire/protocols'
import type { Price } from './price.ts'
import { UPSTREAM_PROTOCOLS } from './protocols.ts'

interface EndpointRow {
  /** Whether a channel's `system_prompt` and `param_override` are applied to requests of this endpoint. */
  readonly isEdited: boolean
  /**
   * Whether a suffix of the model's name that controls thinking is turned into a request field for the
   * messages protocol. For other clients the suffix is part of the name, as in `kimi-k2-thinking`.
   */
  readonly hasThinkingSuffix: boolean
  /** Whether providers offer service tiers for this endpoint. */
  readonly hasTiers: boolean
}

/** The endpoints for model calls, by the names that model lists and the usage log use. */
export const ENDPOINTS = {
  chat: { isEdited: true, hasThinkingSuffix: true, hasTiers: true },
  messages: { isEdited: true, hasThinkingSuffix: false, hasTiers: true },
  responses: { isEdited: true, hasThinkingSuffix: false, hasTiers: true },
  gemini: { isEdited: true, hasThinkingSuffix: false, hasTiers: true },
  completions: { isEdited: true, hasThinkingSuffix: true, hasTiers: true },
  embeddings: { isEdited: false, hasThinkingSuffix: false, hasTiers: false },
  images: { isEdited: false, hasThinkingSuffix: false, hasTiers: false },
  speech: { isEdited: false, hasThinkingSuffix: false, hasTiers: false },
  transcriptions: { isEdited: false, hasThinkingSuffix: false, hasTiers: false },
  moderations: { isEdited: false, hasThinkingSuffix: false, hasTiers: false },
  rerank: { isEdited: false, hasThinkingSuffix: false, hasTiers: false },
  /** Requests to MCP servers, which no model list names. */
  tool: { isEdited: false, hasThinkingSuffix: false, hasTiers: false },
} as const satisfies Record<ServedProtocol, EndpointRow> & Record<string, EndpointRow>

/** Name of an endpoint for model calls. */
export type Endpoint = keyof typeof ENDPOINTS

/** Endpoint of a call in the usage log; empty for a charge that estimates the calls of a lost node. */
export type CallKind = Endpoint | ''

/** Kind of API in a model's `supported_endpoint_types`: `docs/api.md: Model objects`. */
export type EndpointType = 'vendor' | 'compat'

/** The API kinds that serve a model, by the protocols of its channels. The rerank protocol has none. */
export function endpointTypes(protocols: ReadonlySet<ProtocolName>): EndpointType[] {
  const types = new Set([...protocols].map((name) => UPSTREAM_PROTOCOLS[name].endpointType))
  return (['vendor', 'compat'] as const).filter((type) => types.has(type))
}

/**
 * The endpoints that serve a model, given the protocols of its channels: `docs/api.md: Model objects`. A
 * model that is not for conversations has the endpoint that its name implies, or otherwise the one that its
 * price implies.
 */
export function endpointsFor(
  protocols: ReadonlySet<ProtocolName>,
  model: string,
  price: Price | undefined,
): Endpoint[] {
  const named = endpointByName(model) ?? (price && endpointByPrice(price))
  const names = [...protocols]
  const others = new Set<Endpoint>(names.flatMap((name) => UPSTREAM_PROTOCOLS[name].serves))
  if (named !== undefined && others.has(named)) return [named]
  return [
    // A model for conversations has all endpoints for conversations, because the gateway converts between
    // their protocols.
    ...(names.some((name) => PROTOCOLS[name].isConversation)
      ? ([...CLIENT_PROTOCOLS, 'completions'] as const)
      : []),
    ...(others.has('rerank') ? (['rerank'] as const) : []),
  ]
}

/** The endpoint that a model's price implies; undefined if the price is for tokens and calls only. */
export function endpointByPrice({ image, characters, second }: Price): Endpoint | undefined {
  if (Object.keys(image).length > 0) return 'images'
  if (characters.digits > 0n) return 'speech'
  return second.digits > 0n ? 'transcriptions' : undefined
}

/** The endpoint that a model's name implies; `none` if the gateway does not have that endpoint. */
type NamedEndpoint =
  | Extract<Endpoint, 'embeddings' | 'moderations' | 'images' | 'speech' | 'transcriptions'>
  | 'none'

/**
 * Patterns of model names that imply an endpoint other than conversations and rerank. The gateway has no
 * endpoint for live connections, video, text recognition, or the task names of Midjourney and Suno.
 */
const PATTERNS: readonly (readonly [NamedEndpoint, RegExp])[] = [
  ['embeddings', /(?:^|[-._/])(?:embed|embeddings?)(?:[-._]|$)/i],
  ['embeddings', /(?:^|\/)(?:text-embedding|m3e|bge-(?!reranker)|e5-|gte-)/i],
  ['moderations', /(?:^|[-._/])moderation(?:[-._]|$)/i],
  ['none', /(?:^|[-._/])(?:realtime|live|native-audio|ocr)(?:[-._]|$)/i],
  ['speech', /(?:^|[-._/])tts(?:[-._]|$)|(?:^|\/)speech-0/i],
  ['transcriptions', /(?:^|[-._/])(?:transcribe|whisper)(?:[-._]|$)|(?:^|\/)canary-/i],
  ['none', /(?:^|\/)(?:mj_|midjourney)/i],
  [
    'images',
    /(?:^|\/)(?:dall-e|gpt-image|chatgpt-image|imagen|flux|stable-diffusion|sd3|wanx?|cogview|seedream)/i,
  ],
  ['none', /(?:^|\/)(?:sora|veo|kling|cogvideo|hailuo|runway|suno)/i],
]

/**
 * The endpoint that a model's name implies; undefined for conversations, for rerank, and if the gateway does
 * not have the endpoint.
 */
export function endpointByName(model: string): Endpoint | undefined {
  const found = namedEndpoint(model)
  return found === 'none' ? undefined : found
}

/** Whether a model's name implies an endpoint that the gateway does not have. */
export function isForUnsupportedEndpoint(model: string): boolean {
  return namedEndpoint(model) === 'none'
}

function namedEndpoint(model: string): NamedEndpoint | undefined {
  return PATTERNS.find(([, pattern]) => pattern.test(model))?.[0]
}
