import type { Channel } from '../../domain/records/channel.ts'
import type { Settings } from '../../domain/settings.ts'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { encryptedInput } from '@sluice/wire/responses'
import type { RequestReaderContext } from '../../call/dialects/dialect.ts'
import type { ResponseStore } from './response-store.ts'

/** The provider account (channel and key) that created the encrypted reasoning in a request. */
export interface ReasoningAccount {
  readonly channel: string
  readonly keyTag: string
}

/**
 * Finds the provider account that created the encrypted reasoning in a request's input; resolves to undefined
 * if the account is unknown. Returns undefined, not a promise, if the input has no such reasoning, or if all
 * channels use one account.
 */
export function findReasoningAccount(
  scan: ScannedObject,
  { caller, settings }: RequestReaderContext,
  responses: ResponseStore,
): Promise<ReasoningAccount | undefined> | undefined {
  const encrypted = hasSeveralAccounts(settings) ? encryptedInput(scan) : []
  return encrypted.length > 0 ? responses.originOf(caller.user.id, encrypted) : undefined
}

/**
 * Returns only the channel of `origin`, because other channels would refuse the reasoning. Returns all
 * channels if that channel no longer exists, because another one may use the same account.
 */
export function channelsOfReasoningAccount(
  channels: readonly Channel[],
  { channel }: ReasoningAccount,
): readonly Channel[] {
  const own = channels.filter(
    ({ name, protocol: protocols }) => name === channel && protocols.includes('responses'),
  )
  return own.length > 0 ? own : channels
}

/**
 * Whether the channels use more than one provider account. Cached for each list of channels, because every
 * call needs it and the list changes rarely.
 */
const severalAccounts = new WeakMap<Settings['channels'], boolean>()

// With a single provider account, the creator of encrypted reasoning need not be looked up.
function hasSeveralAccounts({ channels }: Settings): boolean {
  const known = severalAccounts.get(channels)
  if (known !== undefined) return known
  const native = channels.filter(({ protocol: protocols }) => protocols.includes('responses'))
  const hasSeveral = native.length > 1 || native.some(({ keys }) => keys.length > 1)
  severalAccounts.set(channels, hasSeveral)
  return hasSeveral
}
