import type { Endpoint } from './endpoints.ts'

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
