import type { OpenHold } from '../../accounts/ledger/open-hold.ts'
import { genAiProvider } from '../../domain/gen-ai-provider.ts'
import type { Settlement } from '../../domain/records/usage.ts'
import type { TracedCall } from '../../telemetry/telemetry.ts'
import type { AdmittedRequest } from '../answer-request.ts'
import type { IncomingCall } from '../request-stages.ts'
import { requestParameters } from './request-parameters.ts'

/**
 * The telemetry record of a call that was answered with the response to another call (a cache hit). No
 * channel was asked.
 */
export function tracedHit(
  { routes, request, settings }: AdmittedRequest,
  { request: { headers } }: IncomingCall,
  { account, facts }: OpenHold,
  settlement: Settlement,
  {
    sessionName,
    awaitsContent,
  }: { readonly sessionName: string | undefined; readonly awaitsContent: boolean },
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
    conversation: sessionName ?? facts.session,
    mayHaveMedia: false,
    parameters: requestParameters(request),
    names: undefined,
    attempts: [],
    awaitsContent,
    chunkGapsMs: [],
  }
}

const NO_CHANNEL = { provider: 'generic', base_url: '', protocol: [] } as const
