import { genAiProvider } from '../../domain/gen-ai-provider.ts'
import type { TracedCall } from '../../telemetry/telemetry.ts'
import type { AdmittedRequest, SettledRepeat } from '../../call/answer-request.ts'
import type { IncomingCall } from '../../call/incoming-call.ts'
import { requestParameters } from './request-parameters.ts'

/**
 * The telemetry record of a call that was answered with the response to another call (a cache hit). No
 * channel was asked.
 */
export function tracedHit(
  { routes, request, settings }: AdmittedRequest,
  { request: { headers } }: IncomingCall,
  { hold: { account, facts }, settlement, session, awaitsContent = false }: SettledRepeat,
): TracedCall {
  const channel = routes.resolutions[0]?.channels[0] ?? NO_CHANNEL
  return {
    facts,
    settlement,
    userId: account.user.id,
    tokenId: account.token.id,
    traceparent: headers.traceparent,
    provider: genAiProvider(channel, settlement.model, channel.protocol[0] ?? 'chat'),
    server: undefined,
    quotaPerUnit: settings.options.quota_per_unit,
    conversation: session?.name ?? facts.session,
    mayHaveMedia: false,
    parameters: requestParameters(request),
    names: undefined,
    attempts: [],
    awaitsContent,
    chunkGapsMs: [],
  }
}

const NO_CHANNEL = { provider: 'generic', base_url: '', protocol: [] } as const
