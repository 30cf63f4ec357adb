import type { Caller } from '../accounts/authentication/caller.ts'
import type { OpenHold } from '../accounts/ledger/open-hold.ts'
import type { Settlement } from '../domain/records/usage.ts'
import type { Settings } from '../domain/settings.ts'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { Body, FormBody } from './body-reader.ts'
import type { RequestReaderContext } from './dialects/dialect.ts'
import type { DialectFacts } from './dialects/dialect-facts.ts'
import type { IncomingCall } from './incoming-call.ts'
import type { FormRequest, JsonRequest } from './parse-request.ts'
import type { ParsedRequest } from './request-stages.ts'
import type { Routes } from './routing.ts'
import type { CallSession } from './session.ts'

/** Answers a request after its body was read. `next` answers it in the usual way, and may be given another response than the client's. */
export type AnswerRead = (
  request: ReadRequest,
  next: (incoming: IncomingCall) => Promise<void>,
) => Promise<void>

/** Answers a request by several calls, each of which the relay makes. Rejects with the error for the client. */
export type AnswerInCalls = (request: ScannedRequest) => Promise<void>

/** A request in JSON that was scanned, but not checked. */
export interface ScannedRequest {
  readonly body: Body
  readonly scan: ScannedObject
  readonly incoming: IncomingCall
  readonly caller: Caller
  readonly settings: Settings
}

/** A request after its body was read. */
export interface ReadRequest {
  readonly body: Pick<Body, 'bytes'> | FormBody
  readonly incoming: IncomingCall
  readonly caller: Caller
  readonly settings: Settings
  /** Set if the request needs no permission for the model that its record names. */
  readonly isForAnyModel?: true
}

/** A request that was checked, and has passed the limits of its key, its user and its model. */
export interface AdmittedRequest {
  readonly dialect: DialectFacts
  readonly body: Body | FormBody
  readonly caller: Caller
  readonly settings: Settings
  readonly request: ParsedRequest
  readonly routes: Routes
  /** The request before it was parsed, and what it was parsed with: a feature can parse it again with another body. */
  readonly read: JsonRequest | FormRequest
  readonly reader: RequestReaderContext
  /** What a feature has decided about the request, on which its answer depends, too. */
  readonly decisions?: RequestDecisions
  /** Set if another call that has reserved quota waits for this one, which must not wait for quota then. */
  readonly mayNotWait?: true
  /** The request as it was received, if a feature has changed it. */
  readonly received?: Body | FormBody
}

/** What a feature has decided about a request. */
export interface RequestDecisions {
  /** Equal requests have equal answers only if these values are equal, too. */
  readonly answerDependsOn: readonly unknown[]
  /** Headers at the beginning of a stream. */
  readonly streamHeaders: Readonly<Record<string, string>>
}

/** Reserves quota for a request and makes its call. `known` are states that features already have for the call. */
export interface Admission {
  admit(request: AdmittedRequest, incoming: IncomingCall, known?: KnownState): Promise<void>
}

/** States of the features that have answered the request by making a call. */
export interface KnownState {
  readonly feature: object
  readonly state: unknown
  readonly others: KnownState | undefined
}

/** The ways in which a feature can answer a request. */
export interface WaysToAnswer<State> {
  /**
   * Makes the call with this state of the feature, which does not take part in it if that is undefined. May be given another
   * response than the client's, and a changed request.
   */
  make(incoming: IncomingCall, state: State | undefined, changed?: AdmittedRequest): Promise<void>
  /** Called before the client is sent the answer of another call. */
  repeat(): WatchedRepeat
}

/** Callbacks of a feature for a request that gets the answer of another call. */
export interface RepeatWatcher {
  /** The charge is known. */
  settled?(repeat: SettledRepeat): void
  /** Called when the answer was charged and sent, or is not sent at all. */
  ended?(isCharged: boolean): void
}

/** The callbacks of all features. */
export type WatchedRepeat = Required<RepeatWatcher>

/** How a request that got the answer of another call was settled. */
export interface SettledRepeat {
  readonly hold: OpenHold
  readonly settlement: Settlement
  readonly session: CallSession | undefined
  /** Set if the content of the call is exported after it. */
  awaitsContent?: boolean
}

/** The moments of a feature that concern a request without a call. */
interface AnsweringFeature {
  answer?(request: AdmittedRequest, incoming: IncomingCall, ways: WaysToAnswer<unknown>): Promise<void>
  repeated?(request: AdmittedRequest, incoming: IncomingCall): RepeatWatcher | undefined
}

/** Answers a request with the first of these features, which makes the call with the others. */
export function answerWith(
  [first, ...others]: readonly AnsweringFeature[],
  all: readonly AnsweringFeature[],
  request: AdmittedRequest,
  incoming: IncomingCall,
  admission: Admission,
  known?: KnownState,
): Promise<void> {
  if (!first?.answer) return admission.admit(request, incoming, known)
  return first.answer(request, incoming, {
    make: (next, state, changed = request) =>
      answerWith(others, all, changed, next, admission, { feature: first, state, others: known }),
    repeat: () => watchedRepeat(all, request, incoming),
  })
}

function watchedRepeat(
  features: readonly AnsweringFeature[],
  request: AdmittedRequest,
  incoming: IncomingCall,
): WatchedRepeat {
  const watchers = features.flatMap((feature) => feature.repeated?.(request, incoming) ?? [])
  return {
    settled(repeat) {
      for (const watcher of watchers) watcher.settled?.(repeat)
    },
    ended(isCharged) {
      for (const watcher of watchers) watcher.ended?.(isCharged)
    },
  }
}

/** The state that a feature already has for a call; undefined if it has none. */
export function stateIn(known: KnownState | undefined, feature: object | undefined): unknown {
  for (let at = known; at; at = at.others) if (at.feature === feature) return at.state
  return undefined
}

/** Combines two features: `next` of the first one is the second one. */
export function answersAround(first: AnswerRead, second: AnswerRead): AnswerRead {
  return (request, next) => first(request, (incoming) => second({ ...request, incoming }, next))
}
