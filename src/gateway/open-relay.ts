import type { Logger } from 'pino'
import { DrainedResponses } from '../call/drained-responses.ts'
import { FailureLog } from '../call/failure-log.ts'
import { LifeCycle } from '../call/life-cycle.ts'
import { MediaFetcher } from '../call/media-fetcher.ts'
import { Relay, type RelayServices } from '../call/relay.ts'
import { AnswerCache, type AnswerCacheServices } from '../features/equal-calls/answer-cache.ts'
import { IdempotentCalls, type IdempotentCallServices } from '../features/equal-calls/idempotent-calls.ts'
import { ChannelLoad } from '../upstreams/channel-load.ts'
import { callFeatures, type FeatureServices } from './features.ts'

/** What calls and their features need, but for what is made here. */
type RelayInputs = Omit<RelayServices, 'lifeCycle' | 'load' | 'drains' | 'failureLog' | 'media'> &
  Omit<FeatureServices, 'idempotent' | 'cache' | 'ownCalls' | 'failureLog'> &
  AnswerCacheServices &
  IdempotentCallServices & { readonly log: Logger }

/** The relay, and what others need of its features. */
export interface OpenedRelay extends AsyncDisposable {
  readonly relay: Relay
  readonly lifeCycle: LifeCycle
  readonly idempotent: IdempotentCalls
}

/** Opens the relay with the features that take part in its calls. */
export function openRelay(services: RelayInputs, nowMs: () => number): OpenedRelay {
  const failureLog = new FailureLog(services.log)
  const idempotent = new IdempotentCalls(services)
  const cache = new AnswerCache(services)
  const lifeCycle = new LifeCycle(
    callFeatures({ ...services, idempotent, cache, failureLog, ownCalls: () => relay }),
  )
  const media = new MediaFetcher(() => services.settings().options.media, nowMs)
  const relay: Relay = new Relay({
    ...services,
    lifeCycle,
    load: new ChannelLoad(),
    drains: new DrainedResponses(nowMs),
    failureLog,
    media,
  })
  return {
    relay,
    lifeCycle,
    idempotent,
    [Symbol.asyncDispose]() {
      relay.close()
      return media.close()
    },
  }
}
