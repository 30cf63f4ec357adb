import { NO_USAGE } from '@sluice/wire/usage'
import type { SettledCall } from '../../src/domain/records/usage.ts'

/** A quick chat call that cost one quota unit. */
export const SETTLED_CALL: SettledCall = {
  id: '0',
  ended_ms: 1000,
  user_id: 2,
  token_id: 3,
  model: 'm',
  requested_model: 'm',
  upstream_model: 'm',
  channel: 'c',
  group: 'default',
  usage: NO_USAGE,
  quota: 1,
  price_version: 'v',
  duration_ms: 5,
  first_byte_ms: 4,
  stream: false,
  reason: 'complete',
  kind: 'chat',
  budgets: '',
  delivered: true,
}
