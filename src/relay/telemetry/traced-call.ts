import type { AnswerMetadata } from '@sluice/wire/answer-metadata'
import { genAiProvider } from '../../domain/gen-ai-provider.ts'
import type { Settlement } from '../../domain/records/usage.ts'
import type { TracedCall } from '../../telemetry/telemetry.ts'
import type { Call } from '../call.ts'
import type { ChannelPlan, AttemptTarget } from '../request-stages.ts'
import { requestParameters } from './request-parameters.ts'
import { serverAddress } from './server-address.ts'

const NO_GAPS: readonly number[] = []

/** The telemetry record of a settled call. `target` is undefined if no channel was asked. */
export function tracedCall(
  call: Call,
  target: AttemptTarget | undefined,
  settlement: Settlement,
  names: AnswerMetadata | undefined,
): TracedCall {
  const { hold, plan, incoming } = call
  const { account, facts } = hold
  const { request } = plan
  const channel = target?.channel ?? (plan.channels[0] as ChannelPlan).channel
  const upstreamModel = target?.request.upstreamModel ?? plan.model.name
  const dialect = target?.request.protocol ?? channel.protocol[0] ?? 'chat'
  return {
    facts,
    settlement,
    userId: account.user.id,
    tokenId: account.token.id,
    traceparent: incoming.request.headers.traceparent,
    provider: genAiProvider(channel, upstreamModel, dialect),
    server: target && serverAddress(channel),
    quotaPerUnit: plan.settings.options.quota_per_unit,
    conversation: call.sessionName ?? facts.session,
    mayHaveMedia: request.measuredBounds?.hasMedia === true,
    parameters: requestParameters(request),
    names,
    attempts: call.attempts.traced(call.cut),
    awaitsContent: call.content?.isAwaited === true,
    chunkGapsMs: call.chunkGaps?.ms ?? NO_GAPS,
  }
}
