import type { ServedProtocol } from '@sluice/wire/protocols'
import type { Caller } from '../accounts/authentication/caller.ts'
import type { Endpoint } from '../domain/endpoints.ts'
import type { Token } from '../domain/records/token.ts'
import type { Settings } from '../domain/settings.ts'
import {
  type AdmittedRequest,
  type Admission,
  type AnswerRead,
  answerWith,
  answersAround,
  type KnownState,
  stateIn,
} from './answer-request.ts'
import { CallFeatures } from './call-features.ts'
import type { IncomingCall } from './incoming-call.ts'
import { ReadingFeatures } from './reading-features.ts'
import type {
  CallFeature,
  ConcernsKey,
  KeptAnswer,
  KeptAnswerCheck,
  MakeHeaders,
  PlannedCall,
  ResumedCall,
} from './feature.ts'

/** The features of the gateway, and which of them concern which calls. */
export class LifeCycle {
  readonly #features: readonly CallFeature<unknown>[]
  readonly #bySettings = new WeakMap<Settings, Map<Endpoint, FeaturesOfEndpoint>>()

  constructor(features: readonly CallFeature<unknown>[]) {
    this.#features = features
  }

  /** Adds headers to a response. They are made with its head, so that they include calls that came in the meantime. */
  addHeaders(incoming: IncomingCall, caller: Caller, protocol: ServedProtocol | undefined): void {
    let make: MakeHeaders | undefined
    for (let at = 0; at < this.#features.length; at++) {
      const next = this.#features[at]?.headers?.(incoming, caller, protocol)
      if (next) make = make ? merged(make, next) : next
    }
    if (make) incoming.response.headersAtHead = make
  }

  /** Adds headers to the response of a request that is refused. */
  async refuse(incoming: IncomingCall, caller: Caller, protocol: ServedProtocol | undefined): Promise<void> {
    this.addHeaders(incoming, caller, protocol)
    for (const feature of this.#features) await feature.refused?.(incoming, caller)
  }

  /** Returns the function that answers a request after its body was read; undefined if no feature does. */
  read(incoming: IncomingCall, settings: Settings): AnswerRead | undefined {
    let answer: AnswerRead | undefined
    for (let at = 0; at < this.#features.length; at++) {
      const next = this.#features[at]?.read?.(incoming, settings)
      if (next) answer = answer ? answersAround(answer, next) : next
    }
    return answer
  }

  /** The features that take part in reading a caller's requests to an endpoint. */
  reading(settings: Settings, caller: Caller, endpoint: Endpoint): ReadingFeatures {
    return this.#concerned(settings, caller, endpoint).reading
  }

  /** Lets the features answer a request, or makes its call if none does. */
  answer(request: AdmittedRequest, incoming: IncomingCall, admission: Admission): Promise<void> {
    const { settings, caller, dialect } = request
    const { answering, features } = this.#concerned(settings, caller, dialect.endpoint)
    // Without such a feature, a call allocates nothing here.
    if (answering.length === 0) return admission.admit(request, incoming)
    return answerWith(answering, features, request, incoming, admission)
  }

  /** Returns what checks an earlier answer that is read again; undefined if no feature does. */
  kept(answer: KeptAnswer): KeptAnswerCheck | undefined {
    for (const feature of this.#features) {
      const check = feature.kept?.(answer)
      if (check) return check
    }
    return undefined
  }

  /** The state of a feature for a call whose request was made earlier, from what it returned then. */
  resumed(suspended: string | undefined, call: ResumedCall): KnownState | undefined {
    const feature = this.#features.find((one) => one.resumed !== undefined)
    if (suspended === undefined || !feature) return undefined
    return { feature, state: feature.resumed?.(suspended, call), others: undefined }
  }

  /** The features that take part in a call. */
  begin(call: PlannedCall, known?: KnownState): CallFeatures {
    const concerned = this.#concerned(call.settings, call.caller, call.dialect.endpoint)
    const { shared } = concerned
    let { features } = concerned
    let states: unknown[] | undefined
    // A feature that the settings do not name any more still has to end what it began.
    if (known && !features.includes(known.feature)) features = [known.feature, ...features]
    for (let at = 0; at < features.length; at++) {
      const state = stateIn(known, features[at]) ?? features[at]?.begin?.(call)
      if (state === undefined) continue
      states ??= features.map(stateWithoutCall)
      states[at] = state
    }
    return states ? new CallFeatures(features, states) : shared
  }

  /** Ends the background work of the features. */
  close(): void {
    for (const feature of this.#features) feature.close?.()
  }

  #concerned(settings: Settings, caller: Caller, endpoint: Endpoint): ConcernedFeatures {
    let byEndpoint = this.#bySettings.get(settings)
    if (!byEndpoint) this.#bySettings.set(settings, (byEndpoint = new Map()))
    let features = byEndpoint.get(endpoint)
    if (!features)
      byEndpoint.set(endpoint, (features = new FeaturesOfEndpoint(this.#features, settings, endpoint)))
    return features.of(caller)
  }
}

/** The features that may take part in calls of an endpoint under some settings. */
class FeaturesOfEndpoint {
  readonly #features: readonly CallFeature<unknown>[]
  readonly #decisions: readonly ConcernsKey[]
  /** By the decisions about a key, so that keys with equal decisions share an object. */
  readonly #byDecisions = new Map<string, ConcernedFeatures>()
  readonly #byKey = new WeakMap<Token, ConcernedFeatures>()
  /** Undefined if a feature decides for each key. */
  readonly #ofAllKeys: ConcernedFeatures | undefined

  constructor(all: readonly CallFeature<unknown>[], settings: Settings, endpoint: Endpoint) {
    const concerned = all.map((feature) => feature.concerns?.(settings, endpoint) ?? true)
    this.#features = all
    this.#decisions = concerned.map((one) => (typeof one === 'function' ? one : () => one))
    const decidesForKeys = concerned.some((one) => typeof one === 'function')
    this.#ofAllKeys = decidesForKeys ? undefined : concernedFeatures(all.filter((_, at) => concerned[at]))
  }

  of(caller: Caller): ConcernedFeatures {
    return this.#ofAllKeys ?? this.#byKey.get(caller.token) ?? this.#decide(caller)
  }

  #decide(caller: Caller): ConcernedFeatures {
    const decided = this.#decisions.map((concerns) => concerns(caller))
    const name = String(decided)
    let concerned = this.#byDecisions.get(name)
    if (!concerned)
      this.#byDecisions.set(
        name,
        (concerned = concernedFeatures(this.#features.filter((_, at) => decided[at]))),
      )
    this.#byKey.set(caller.token, concerned)
    return concerned
  }
}

/** The features that may take part in calls of an endpoint with an API key. */
interface ConcernedFeatures {
  readonly features: readonly CallFeature<unknown>[]
  readonly reading: ReadingFeatures
  /** Those that answer requests. */
  readonly answering: readonly CallFeature<unknown>[]
  /** Used for all calls in which only features without a state take part. */
  readonly shared: CallFeatures
}

function concernedFeatures(features: readonly CallFeature<unknown>[]): ConcernedFeatures {
  return {
    features,
    reading: new ReadingFeatures(features),
    answering: features.filter((feature) => feature.answer !== undefined),
    shared: new CallFeatures(features, features.map(stateWithoutCall)),
  }
}

/** The state of a feature that takes part in every call and has none; undefined for one that decides for each call. */
function stateWithoutCall(feature: CallFeature<unknown>): null | undefined {
  return feature.begin === undefined && feature.answer === undefined ? null : undefined
}

function merged(first: MakeHeaders, second: MakeHeaders): MakeHeaders {
  return () => {
    const [headers, others] = [first(), second()]
    return headers && others ? { ...headers, ...others } : (headers ?? others)
  }
}
