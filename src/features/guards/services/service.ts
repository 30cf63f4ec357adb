import type { FoundToolCall } from '@sluice/wire/tool-calls-and-images'
import type { ServiceMatch } from '../../../domain/guard.ts'

/** A POST request to a guard's service. */
export interface PostRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** What a guard's service is asked to check. */
export interface CheckRequest {
  /** The texts to check, none of which is blank. The list may be empty if there are tool calls or images. */
  readonly texts: readonly string[]
  readonly toolCalls: readonly FoundToolCall[]
  /** Addresses of the images to check. */
  readonly images: readonly string[]
  readonly side: 'request' | 'response'
  /** The id of the gateway's call. */
  readonly callId: string
}

/** A match in a text: its position in UTF-16 code units, and its kind. */
export interface PlacedMatch {
  readonly start: number
  readonly end: number
  readonly kind: string
}

/** A service's decision about one text: the positions of matches, or the text to send in its place. */
export type TextJudgement = { readonly spans: readonly PlacedMatch[] } | { readonly text: string }

/** What a guard's service has decided about the texts of a request or a response. */
export interface Judgement {
  readonly matches: number
  /** Whether the whole request or answer is blocked, whatever the guard's action is. */
  readonly isBlocked: boolean
  /**
   * One decision for each text; absent if the service does not state where matches are, or has found nothing.
   */
  readonly texts?: readonly TextJudgement[]
}

/** Functions with which a guard's service sends requests. */
export interface ServiceContext {
  /** Sends a request and resolves to the JSON of its answer. Rejects with `ServiceFailure`. */
  readonly post: (request: PostRequest) => Promise<unknown>
  /** Has a model of the gateway moderate texts. Resolves to the JSON of its answer. */
  readonly moderate: (model: string, texts: readonly string[]) => Promise<unknown>
}

/** A service that decides for a guard, as the guard's `match` declares it. */
export interface Service {
  /** Rejects with `ServiceFailure` if it cannot decide. */
  judge(question: CheckRequest, context: ServiceContext): Promise<Judgement>
}

/** Why a service could not decide. The message contains nothing of the texts or the service's answer. */
export class ServiceFailure extends Error {}

/** Creates the service that a guard's `match` declares. */
export type ServiceMaker<Kind extends ServiceMatch['kind']> = (
  match: Extract<ServiceMatch, { readonly kind: Kind }>,
) => Service

/** The judgement of a service that has found nothing. */
export const NO_MATCHES: Judgement = { matches: 0, isBlocked: false }

/** Returns a member of an object in a service's answer; undefined if there is none. */
export function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined
}

/** Returns a list in a service's answer. Throws `ServiceFailure` if the value is not a list. */
export function requireList(value: unknown, what: string): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw new ServiceFailure(`it answered without ${what}`)
}
