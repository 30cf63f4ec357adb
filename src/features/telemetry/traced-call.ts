import { genAiProvider } from '../../domain/gen-ai-provider.ts'
import type { TracedCall } from '../../telemetry/telemetry.ts'
import type { RunningCall } from '../../call/running-call.ts'
import type { SettledCall } from '../../call/feature.ts'
import type { ChannelPlan } from '../../call/request-stages.ts'
import { requestParameters } from './request-parameters.ts'
import { serverAddress } from '../../call/server-address.ts'

/** The telemetry record of a settled call, with what was measured while it ran. */
export function tracedCall(
  call: RunningCall,
  { target, settlement, basis, awaitsContent = false }: SettledCall,
  {
    sessionName,
    chunkGapsMs,
  }: { readonly sessionName: string | undefined } & Pick<TracedCall, 'chunkGapsMs'>,
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
    conversation: sessionName ?? facts.session,
    mayHaveMedia: request.measured?.bounds.hasMedia === true,
    parameters: requestParameters(request),
    names: basis?.names?.(),
    attempts: call.attempts.traced(call.cut),
    awaitsContent,
    chunkGapsMs,
  }
}
