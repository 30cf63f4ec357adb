import { CLIENT_PROTOCOLS, type ProtocolName, PROTOCOLS, type ServedProtocol } from '@sluice/wire/protocols'
import type { Price } from './price.ts'
import { UPSTREAM_PROTOCOLS } from './protocols.ts'

interface EndpointRow {
  /** Whether a channel's `system_prompt` and `param_override` apply to its requests. */
  readonly isEdited: boolean
  /** Whether a thinking suffix of a model's name becomes a field of messages requests. */
  readonly hasThinkingSuffix: boolean
  /** Whether providers serve its requests in tiers of service. */
  readonly hasTiers: boolean
}

/** Endpoints of calls, by their names in the field `endpoints` of model lists and in the usage log. */
export const ENDPOINTS = {
  chat: { isEdited: true, hasThinkingSuffix: true, hasTiers: true },
  messages: { isEdited: true, hasThinkingSuffix: false, hasTiers: true },
  responses: { isEdited: true, hasThinkingSuffix: false, hasTiers: true },
  gemini: { isEdited: true, hasThinkingSuffix: false, hasTiers: true },
  completions: { isEdited: true, hasThinkingSuffix: false, hasTiers: true },
  embeddings: { isEdited: false, hasThinkingSuffix: false, hasTiers: false },
  images: { isEdited: false, hasThinkingSuffix: false, hasTiers: false },
  speech: { isEdited: false, hasThinkingSuffix: false, hasTiers: false },
  transcriptions: { isEdited: false, hasThinkingSuffix: false, hasTiers: false },
  moderations: { isEdited: false, hasThinkingSuffix: false, hasTiers: false },
  rerank: { isEdited: false, hasThinkingSuffix: false, hasTiers: false },
} as const satisfies Record<ServedProtocol, EndpointRow> & Record<string, EndpointRow>

/** Endpoint of a call. */
export type Endpoint = keyof typeof ENDPOINTS

/** Endpoint of a call in the usage log; empty for the estimated charge of a lost node. */
export type CallKind = Endpoint | ''

/** Endpoint type of a model in model lists: `docs/api.md: Model objects`. */
export type EndpointType = 'vendor' | 'compat'

/** Endpoint types for the protocols of a model's channels. The rerank protocol has none. */
export function endpointTypes(protocols: ReadonlySet<ProtocolName>): EndpointType[] {
  const types = new Set([...protocols].map((name) => UPSTREAM_PROTOCOLS[name].endpointType))
  return (['vendor', 'compat'] as const).filter((type) => types.has(type))
}

/**
 * The endpoints that serve a model, by the protocols of its channels: `docs/api.md: Model objects`. Of the
 * endpoints that are not conversations, a model has the one that its name implies, or otherwise its price.
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
    // Conversations are available whichever of their protocols the channels speak, because calls are converted.
    ...(names.some((name) => PROTOCOLS[name].isConversation)
      ? ([...CLIENT_PROTOCOLS, 'completions'] as const)
      : []),
    ...(others.has('rerank') ? (['rerank'] as const) : []),
  ]
}

/** Endpoint of a model by its prices; undefined if only tokens and calls have one. */
export function endpointByPrice({ image, characters, second }: Price): Endpoint | undefined {
  if (Object.keys(image).length > 0) return 'images'
  if (characters.digits > 0n) return 'speech'
  return second.digits > 0n ? 'transcriptions' : undefined
}

/** Endpoint that the name of a model implies; `none` if the gateway does not have that endpoint. */
type NamedEndpoint =
  | Extract<Endpoint, 'embeddings' | 'moderations' | 'images' | 'speech' | 'transcriptions'>
  | 'none'

/**
 * Model names of endpoints other than conversations and rerank. Live connections, video, text recognition,
 * and the task names of Midjourney and Suno have no endpoint here.
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
 * Endpoint of a model by its name; undefined for conversations, rerank, and endpoints that are not served.
 */
export function endpointByName(model: string): Endpoint | undefined {
  const found = namedEndpoint(model)
  return found === 'none' ? undefined : found
}

/** Whether a model, by its name, belongs to an endpoint that the gateway does not have. */
export function isForUnsupportedEndpoint(model: string): boolean {
  return namedEndpoint(model) === 'none'
}

function namedEndpoint(model: string): NamedEndpoint | undefined {
  return PATTERNS.find(([, pattern]) => pattern.test(model))?.[0]
}
