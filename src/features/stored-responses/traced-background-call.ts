import type { OpenHold } from '../../accounts/ledger/open-hold.ts'
import { genAiProvider } from '../../domain/gen-ai-provider.ts'
import type { Settlement } from '../../domain/records/usage.ts'
import type { Settings } from '../../domain/settings.ts'
import type { TracedCall } from '../../telemetry/telemetry.ts'
import { serverAddress } from '../../call/server-address.ts'

/** Facts about the request that began a call, for telemetry. */
export interface CallOrigin {
  readonly traceparent: string | undefined
  readonly sessionName: string | undefined
}

/**
 * The telemetry record of a call that ended without its client. The attempts of the call are in the record of
 * the request that began it.
 */
export function tracedBackgroundCall(
  { account, facts }: OpenHold,
  settlement: Settlement,
  { channels, options }: Settings,
  origin: CallOrigin | undefined,
): TracedCall {
  const channel = channels.find(({ name }) => name === settlement.channel)
  return {
    facts,
    settlement,
    userId: account.user.id,
    tokenId: account.token.id,
    traceparent: origin?.traceparent,
    provider: genAiProvider(channel ?? NO_CHANNEL, settlement.upstream_model, 'responses'),
    server: channel && serverAddress(channel),
    quotaPerUnit: options.quota_per_unit,
    conversation: origin?.sessionName ?? facts.session,
    mayHaveMedia: false,
    parameters: {},
    names: undefined,
    attempts: [],
    chunkGapsMs: [],
    awaitsContent: false,
  }
}

/** Used in a telemetry record in place of a channel that no longer exists. */
const NO_CHANNEL = { provider: 'generic', base_url: '' } as const
