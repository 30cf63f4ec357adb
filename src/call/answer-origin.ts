import type { AnswerOrigin, ContinuedCall } from './dialects/answer-reader.ts'
import type { AttemptTarget } from './request-stages.ts'
import type { RunningCall } from './running-call.ts'
import { cacheLifetimeOfSentRequest, serviceToCharge } from './service-tier-rates.ts'

/** Where the answer of an attempt comes from. */
export function answerOrigin(
  { hold, plan }: Pick<RunningCall, 'hold' | 'plan'>,
  { channel, key, request }: AttemptTarget,
): AnswerOrigin {
  return {
    userId: hold.account.user.id,
    model: plan.request.model,
    group: plan.group.name,
    channel: channel.name,
    key,
    protocol: request.protocol,
  }
}

/** The call of an answer that is generated without its client. */
export async function continuedCall(call: RunningCall, target: AttemptTarget): Promise<ContinuedCall> {
  const { incoming, hold, session, plan } = call
  return {
    origin: answerOrigin(call, target),
    incoming,
    hold,
    session,
    isStreamed: plan.request.stream,
    rate: plan.rate,
    sent: {
      ...serviceToCharge(call, target),
      upstreamModel: target.request.upstreamModel,
      cacheLifetime: cacheLifetimeOfSentRequest(target),
      rowFacts: call.rowFacts(),
      dropped: target.request.dropped,
      delays: call.attempts.delays,
      isIdempotent: incoming.isIdempotent,
    },
    rowFacts: () => call.rowFacts(),
    promptTokens: await call.countChargedPrompt(),
    isPriceIncomplete: call.noteUnlisted(target),
  }
}
