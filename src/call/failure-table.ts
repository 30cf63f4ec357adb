// The table of `docs/operations.md: Decisions after a failure`; `test/routing/failure-table.test.ts` compares the two and tries each row.

/** What a failure is blamed on. */
export type Blamed = 'none' | 'request' | 'key' | 'key and model' | 'model' | 'channel' | 'gateway'

/**
 * What later calls avoid, and for how long. `minute`: what is blamed, for a minute or as long as the answer
 * demands; `backoff`: as long as the answer demands, otherwise for a second, which doubles up to a minute;
 * `breaker`: the channel, after five consecutive failures or as long as the answer demands.
 */
export type RestRule = 'none' | 'minute' | 'backoff' | 'breaker'

/**
 * What is tried next. `same`: the same key, once; `keys`: the next key, then the next channel; `channels`: the
 * next channel, then the remaining keys of this one if it has answered; both go on with the fallback models.
 */
export type NextAttempt = 'nothing' | 'same' | 'keys' | 'channels' | 'context_fallback' | 'content_fallback'

/**
 * What the client gets if nothing else answers. `words`: the provider's status and words; `hidden`: a 500
 * without them; `limited`: the provider's words with the shortest rest of an account as `retry-after`; `own`:
 * an error of the gateway.
 */
export type ClientGets = 'words' | 'hidden' | 'limited' | 'own' | 'nothing'

/** What follows from a failure. */
export interface FailureRule {
  readonly blames: Blamed
  readonly rest: RestRule
  readonly next: NextAttempt
  readonly client: ClientGets
  /** Whether the log, the metrics and the health of the channel count it. */
  readonly counts: boolean
  /** The alert that it may lead to. */
  readonly alert: 'channel.no_key' | 'channel.resting' | null
}

/** All kinds of failures of an attempt. */
export const FAILURES = {
  request_refused: {
    blames: 'request',
    rest: 'none',
    next: 'nothing',
    client: 'words',
    counts: true,
    alert: null,
  },
  too_long: {
    blames: 'request',
    rest: 'none',
    next: 'context_fallback',
    client: 'words',
    counts: true,
    alert: null,
  },
  filtered: {
    blames: 'request',
    rest: 'none',
    next: 'content_fallback',
    client: 'words',
    counts: true,
    alert: null,
  },
  key_refused: {
    blames: 'key',
    rest: 'minute',
    next: 'keys',
    client: 'hidden',
    counts: true,
    alert: 'channel.no_key',
  },
  account_fault: {
    blames: 'key',
    rest: 'minute',
    next: 'keys',
    client: 'hidden',
    counts: true,
    alert: 'channel.no_key',
  },
  account_lacks_model: {
    blames: 'key and model',
    rest: 'minute',
    next: 'keys',
    client: 'hidden',
    counts: true,
    alert: 'channel.no_key',
  },
  limited: {
    blames: 'key and model',
    rest: 'backoff',
    next: 'keys',
    client: 'limited',
    counts: true,
    alert: null,
  },
  model_missing: {
    blames: 'model',
    rest: 'minute',
    next: 'channels',
    client: 'words',
    counts: true,
    alert: null,
  },
  server_error: {
    blames: 'channel',
    rest: 'breaker',
    next: 'channels',
    client: 'words',
    counts: true,
    alert: 'channel.resting',
  },
  other_status: {
    blames: 'channel',
    rest: 'breaker',
    next: 'channels',
    client: 'hidden',
    counts: true,
    alert: 'channel.resting',
  },
  /** The model ended its answer with something that cannot be used, such as a call that cannot be read. */
  failed_end: {
    blames: 'none',
    rest: 'none',
    next: 'channels',
    client: 'words',
    counts: true,
    alert: null,
  },
  /** The server does not have the endpoint, or was started without it. */
  not_supported: {
    blames: 'none',
    rest: 'none',
    next: 'channels',
    client: 'words',
    counts: true,
    alert: null,
  },
  no_answer: {
    blames: 'channel',
    rest: 'breaker',
    next: 'channels',
    client: 'hidden',
    counts: true,
    alert: 'channel.resting',
  },
  connection_lost: {
    blames: 'none',
    rest: 'none',
    next: 'same',
    client: 'hidden',
    counts: true,
    alert: null,
  },
  endpoint_missing: {
    blames: 'none',
    rest: 'none',
    next: 'nothing',
    client: 'words',
    counts: false,
    alert: null,
  },
  undeliverable: {
    blames: 'gateway',
    rest: 'none',
    next: 'nothing',
    client: 'own',
    counts: true,
    alert: null,
  },
  unwritten: {
    blames: 'gateway',
    rest: 'none',
    next: 'nothing',
    client: 'own',
    counts: false,
    alert: null,
  },
  stopping: {
    blames: 'gateway',
    rest: 'none',
    next: 'nothing',
    client: 'own',
    counts: false,
    alert: null,
  },
  call_stopped: {
    blames: 'none',
    rest: 'none',
    next: 'nothing',
    client: 'own',
    counts: false,
    alert: null,
  },
  client_left: {
    blames: 'none',
    rest: 'none',
    next: 'nothing',
    client: 'nothing',
    counts: false,
    alert: null,
  },
} as const satisfies Readonly<Record<string, FailureRule>>

export type FailureKind = keyof typeof FAILURES

/** The row of the table for a failure. */
export function ruleOf({ kind }: { readonly kind: FailureKind }): FailureRule {
  return FAILURES[kind]
}

/** What the statuses of providers mean. Any other status is `other_status`. */
export const KIND_OF_STATUS: ReadonlyMap<number, FailureKind> = new Map<number, FailureKind>([
  [400, 'request_refused'],
  [401, 'key_refused'],
  [402, 'account_fault'],
  [403, 'key_refused'],
  [404, 'model_missing'],
  [405, 'not_supported'],
  [407, 'key_refused'],
  [409, 'request_refused'],
  [413, 'request_refused'],
  [422, 'request_refused'],
  [429, 'limited'],
  [451, 'request_refused'],
  [500, 'server_error'],
  [501, 'not_supported'],
  [503, 'server_error'],
  [529, 'server_error'],
])
