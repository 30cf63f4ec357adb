import type { CallFeature } from '../../call/feature.ts'
import type { AnswerCache } from './answer-cache.ts'
import type { IdempotentCalls } from './idempotent-calls.ts'
import type { AskedCall } from './shared-answer.ts'

/** Gives equal calls one answer: `docs/api.md: Idempotency keys`, `docs/answer-cache.md`. */
export function equalCalls(idempotent: IdempotentCalls, cache: AnswerCache): CallFeature<AskedCall> {
  return {
    // Tools may have effects, and their answers change.
    concerns: ({ options }, endpoint) => options.cache !== undefined && endpoint !== 'tool',
    read: (incoming, settings) => idempotent.of(incoming, settings),
    answer: (request, incoming, ways) => cache.answer(request, incoming, ways),
    head(asked, _, headers) {
      headers['x-gateway-cache'] = asked === 'bypass' ? 'bypass' : 'miss'
    },
    settled(asked, { plan }, { settlement }) {
      if (asked !== 'bypass') asked.made = { settlement, model: plan.request.model }
    },
    close() {
      idempotent.close()
      void cache.close()
    },
  }
}
