import { cacheVerdictText } from '@sluice/wire/cache-diagnosis'
import type { CallFeature } from '../../call/feature.ts'
import type { Plan } from '../../call/request-stages.ts'
import { sessionInRow } from '../../call/session.ts'
import type { CallAffinity, SessionAffinity } from './affinity.ts'
import type { CacheBreaks, CallCacheBreaks } from './cache-breaks.ts'
import { withCacheDiagnosisRequest } from './cache-diagnosis-request.ts'
import { withCacheKey } from './cache-key.ts'

/** The session of a call; empty if only the calls of each key are counted. */
interface CallOfSession {
  readonly affinity: CallAffinity | undefined
  readonly breaks: CallCacheBreaks | undefined
}

/** Keeps sessions with the channel and key that cache their prompt, and finds why calls miss it: `docs/caches.md`. */
export function sessionAffinity(affinity: SessionAffinity, breaks: CacheBreaks): CallFeature<CallOfSession> {
  return {
    begin({ incoming, caller: { user }, request, session, plans }) {
      if (request.charging === 'free' || (!session && !plans.some(isConcerned))) return undefined
      // Providers cache only prompts of conversations, so that other calls are not compared with previous ones.
      const compared = request.json?.dialect.conversation ? sessionInRow(session) : ''
      return {
        affinity: affinity.of(user.id, session, plans),
        breaks: breaks.of(user.id, compared, incoming.startedMs),
      }
    },
    plan: (call, plans) => call.affinity?.arranged(plans) ?? plans,
    keys: (call, plan, { channel }, _, keys) => call.affinity?.ordered(plan, channel, keys) ?? keys,
    adapt(call, _, request, channel) {
      if (!call.affinity) return request
      const body = withCacheKey(request, channel, call.affinity)
      return body === request.body ? request : { ...request, body }
    },
    adapted({ breaks: previous }, _, request, channel) {
      if (!previous || !channel.cache_diagnostics) return request
      const id = previous.answerIdAt(channel.name)
      return id instanceof Promise
        ? id.then((later) => withCacheDiagnosisRequest(request, later))
        : withCacheDiagnosisRequest(request, id)
    },
    attempted(call, { plan }, target) {
      if (call.affinity) call.affinity.attempted(plan, target)
      else affinity.counted(plan, target)
    },
    answered(call, { plan }, { target, usage, basis, isReported, row }) {
      if (basis && target.channel.cache_diagnostics) row.cache_verdict = cacheVerdictText(basis.diagnosis)
      call.affinity?.answered(plan, target, usage, isReported)
      if (!basis || !isReported) return undefined
      const told = call.breaks?.answered({ plan, target, usage, diagnosis: basis.diagnosis })
      if (told instanceof Promise) return told.then((reason) => void (row.cache_break = reason))
      if (told) row.cache_break = told
      return undefined
    },
  }
}

/** Whether calls without a session matter: those of each key are counted, or the provider states why a cache was missed. */
function isConcerned({ channels }: Plan): boolean {
  return channels.some(({ channel }) => channel.keys.length > 1 || channel.cache_diagnostics)
}
