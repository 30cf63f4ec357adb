import type { FoundCall } from '@sluice/wire/guarded-calls'
import type { ServiceMatch } from '../../../domain/guard.ts'
import type { PostRequest } from './service-client.ts'

/** What a service is asked about. */
export interface Question {
  /** Never blank; there may be none if there are calls of tools or images. */
  readonly texts: readonly string[]
  readonly toolCalls: readonly FoundCall[]
  /** Addresses of images. */
  readonly images: readonly string[]
  readonly side: 'request' | 'response'
  /** The id of the gateway's call. */
  readonly callId: string
}

/** A match: positions in UTF-16 code units, and its kind. */
export interface PlacedMatch {
  readonly start: number
  readonly end: number
  readonly kind: string
}

/** What a service has decided about a text: where its matches are, or the text as it may go on. */
export type TextJudgement = { readonly spans: readonly PlacedMatch[] } | { readonly text: string }

/** What a service has decided. */
export interface Judgement {
  readonly matches: number
  /** Whether nothing may go on, whatever the guard does about matches. */
  readonly isBlocked: boolean
  /** One for each text; absent if the service names no places, or has found nothing. */
  readonly texts?: readonly TextJudgement[]
}

/** How a service reaches what answers it. */
export interface ServiceContext {
  /** Sends a request and resolves to the JSON of its answer. Rejects with `ServiceFailure`. */
  readonly post: (request: PostRequest) => Promise<unknown>
  /** Has a model of the gateway moderate texts. Resolves to the JSON of its answer. */
  readonly moderate: (model: string, texts: readonly string[]) => Promise<unknown>
}

/** A service of guards, as its `match` declares it. */
export interface Service {
  /** Rejects with `ServiceFailure` if it cannot decide. */
  judge(question: Question, context: ServiceContext): Promise<Judgement>
}

/** Why a service could not decide. The message contains nothing of texts and answers. */
export class ServiceFailure extends Error {}

/** Makes the service of a match. */
export type ServiceMaker<Kind extends ServiceMatch['kind']> = (
  match: Extract<ServiceMatch, { readonly kind: Kind }>,
) => Service

/** Nothing was found. */
export const NO_MATCHES: Judgement = { matches: 0, isBlocked: false }

/** A member of a service's answer. */
export function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined
}

/** A list in a service's answer. Throws `ServiceFailure` if it is none. */
export function listIn(value: unknown, what: string): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw new ServiceFailure(`it answered without ${what}`)
}
