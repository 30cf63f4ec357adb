import {
  CHANNEL,
  type ChannelDefinition,
  type ChannelRow,
  type StoredChannel,
} from '../domain/records/channel.ts'
import type { StoredEntry } from '../domain/settings.ts'
import type { StoredSettingRow } from './row-types.ts'
import { type Secrets, seal, hmacOf, unseal } from './secrets.ts'

/** Prefix of the line with the proxy among those with keys; no key begins with it. */
const PROXY_LINE = '\tproxy\t'

/** Converts a stored channel, decrypting its keys and its proxy. */
export function channelFromRow(row: ChannelRow, secrets: Secrets): StoredChannel {
  const lines = unseal(secrets, row.keys_cipher, { table: 'channels', row: row.id }).split('\n')
  const proxy = lines.find((line) => line.startsWith(PROXY_LINE))?.slice(PROXY_LINE.length)
  const { declared, ...values } = CHANNEL.fromRow(row)
  const channel = {
    ...values,
    declared: { ...declared, ...(proxy !== undefined && { proxy }) },
    keys: lines.filter((line) => line !== '' && !line.startsWith(PROXY_LINE)),
  }
  return { ...channel, version: channelVersion(channel, secrets) }
}

/** The version of a channel: an HMAC with the gateway secret, so that it reveals nothing about the keys. */
export function channelVersion(definition: ChannelDefinition, secrets: Secrets): string {
  const { name, declared, keys, status, family } = definition
  const { proxy, ...open } = declared
  return hmacOf(secrets, 'version', JSON.stringify([name, open, proxy, keys, status, family])).slice(0, 16)
}

/** Encrypts the keys of a channel for its row, and its proxy, whose URL may have a password. */
export function sealedKeys(
  secrets: Secrets,
  { keys, declared: { proxy } }: Pick<ChannelDefinition, 'keys' | 'declared'>,
  id: number,
): string {
  const lines = typeof proxy === 'string' ? [...keys, PROXY_LINE + proxy] : keys
  return seal(secrets, lines.join('\n'), { table: 'channels', row: id })
}

/** The part of a channel that is not encrypted. */
export function openDefinition({ name, declared, status, family }: ChannelDefinition) {
  const { proxy: _, ...open } = declared
  return { name, declared: open, status, family }
}

/** Converts a stored setting. */
export function entryFromRow({ section, name, value }: StoredSettingRow): StoredEntry {
  return { section: section as StoredEntry['section'], name, value: JSON.parse(value) }
}
