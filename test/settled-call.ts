import { NO_USAGE } from '../src/domain/usage.ts'
import type { SettledCall } from '../src/store/ledger-writes.ts'

/** A quick chat call that cost one quota unit. */
export const SETTLED_CALL: SettledCall = {
  id: '0',
  endedMs: 1000,
  userId: 2,
  tokenId: 3,
  model: 'm',
  requestedModel: 'm',
  upstreamModel: 'm',
  channel: 'c',
  group: 'default',
  usage: NO_USAGE,
  quota: 1,
  priceVersion: 'v',
  durationMs: 5,
  firstByteMs: 4,
  stream: false,
  reason: 'complete',
  kind: 'chat',
  budgets: '',
  delivered: true,
}
